"""(c) A server that refuses: for ten seconds outright, or whatever is over its limit."""

from __future__ import annotations

import time

from scripts.benches.peers.judging import trial
from scripts.benches.peers.layout import Row
from scripts.benches.peers.scene import LATENCY_S, LONGEST_S, scene
from scripts.benches.peers.ways import Way
from scripts.benches.peers.work import MODEL
from tests.server import Limit, Rule, Setup, faults

STORM_S = 10.0
STORM = Rule(action=faults.too_many("1"))
"""Every request is refused and told to come again in a second."""
PER_MINUTE = 1200


def storm(way: Way, calls: int, calm_rate: float | None) -> Row:
    """Refuse everything for ten seconds, from a third of the calls on.

    `calm_rate` is what the way does in calls per second when nobody refuses; None = try it first.
    """
    calm_s = calls / calm_rate if calm_rate else trial(way, calls).asking_s
    with scene(calls) as stage:
        command = stage.start(way)
        code = command.wait(LONGEST_S, until=lambda: stage.count() >= stage.calls // 3)
        if code is None:
            stage.server.script(STORM)
            over = time.monotonic() + STORM_S
            code = command.wait(LONGEST_S, until=lambda: time.monotonic() > over)
            stage.server.script()
        if code is None:
            code = command.wait(LONGEST_S)
        arrivals, refused = stage.arrivals(), stage.refused()
        stage.finish()
        outcome = way.outcome(stage.folder)
        asking_s = arrivals[-1] - arrivals[0] if arrivals else 0.0
        return {
            "way": way.title,
            "calls": stage.calls,
            "refused": refused,
            "without_verdict": stage.calls - outcome.answered,
            "asking_s": asking_s,
            "calm_s": calm_s,
            # A way that gave up calls ended early, which is no gain.
            "lost_s": asking_s - calm_s if outcome.answered == stage.calls else None,
            "exit": f"{code}",
        }


def limited(way: Way, calls: int) -> Row:
    """Let a server hold to a limit that the way has to find out, unless it is told."""
    limits = {MODEL: Limit(requests_per_minute=PER_MINUTE)}
    with scene(calls, Setup(latency_s=LATENCY_S, limits=limits)) as stage:
        command = stage.start(way)
        code = command.wait(LONGEST_S)
        arrivals, refused, requests = stage.arrivals(), stage.refused(), stage.count()
        stage.finish()
        outcome = way.outcome(stage.folder)
        return {
            "way": f"{way.title}, limit told" if way.told else way.title,
            "calls": stage.calls,
            "requests": requests,
            "refused": refused,
            "without_verdict": stage.calls - outcome.answered,
            "asking_s": arrivals[-1] - arrivals[0] if arrivals else 0.0,
            "ideal_s": stage.calls / PER_MINUTE * 60,
            "exit": f"{code}",
        }
