"""The parts that run on Ray against the counting server: (a) latency, (c) limits, (d) recovery."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import uvloop

from scripts.benches.world import FILLER, asked
from tests.server import Limit, Rule, ServerProcess, Setup, faults

Row = dict[str, Any]
BLOCK = 512
LATENCIES = ((0.05, 4), (0.2, 16), (2.0, 160), (0.05, 8), (0.2, 32), (2.0, 320))
"""Latency in seconds, and calls in flight: 80 and 160 calls a second."""


def judge(server: ServerProcess, model: str, **more: Any) -> Mapping[str, Any]:
    """Configure a judge on the server; its form is given, so that no call goes alone."""
    url = server.openai_url
    common = {"provider": "openai", "base_url": url, "verdict": "text", "max_tokens": 64}
    return {"name": model, "model": model, **common, **more}


def times(server: ServerProcess, model: str, *, accepted: bool = False) -> list[float]:
    """List when a model's requests arrived."""
    log = [entry for entry in server.log() if entry["model"] == model]
    kept = [entry for entry in log if not accepted or entry["status"] == 200]
    return sorted(float(str(entry["time"])) for entry in kept)


def rate(arrivals: list[float], start: float, end: float) -> float:
    """Count arrivals per second of a stretch."""
    return sum(start <= time < end for time in arrivals) / max(1e-9, end - start)


def most_within(arrivals: list[float], width: float) -> int:
    """Count the most arrivals of any half-open window."""
    most, first = 0, 0
    for last, moment in enumerate(arrivals):
        while arrivals[first] <= moment - width:
            first += 1
        most = max(most, last - first + 1)
    return most


def latency(seconds: float) -> list[Row]:
    """(a) Calls per second of the ideal, which is calls in flight over the latency."""
    rows: list[Row] = []
    for latency_s, window in LATENCIES:
        for workers in (1, 2):
            ideal = window / latency_s
            pairs = int(ideal * (seconds + 2 * latency_s) / 2)
            with (
                TemporaryDirectory() as name,
                ServerProcess(Path(name), Setup(latency_s=latency_s)) as server,
            ):
                judges = [judge(server, "m", max_in_flight=window)]
                asked(Path(name) / "run", judges, pairs, workers=workers, block=BLOCK)
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    runner.run(bare(server.openai_url, window, 4 + 2 * latency_s))
                arrivals, plain = times(server, "m"), times(server, "bare")
            reached = _steady(arrivals, latency_s)
            rows.append(
                {
                    "latency_ms": latency_s * 1000,
                    "in_flight": window,
                    "workers": workers,
                    "calls_per_s": reached,
                    "ideal": ideal,
                    "share": reached / ideal,
                    "bare_client": _steady(plain, latency_s) / ideal,
                }
            )
    return rows


def _steady(arrivals: list[float], latency_s: float) -> float:
    """Count per second, without the start and the end, where the last calls land."""
    # Calls that began together end together: only whole rounds are counted.
    start = arrivals[0] + 1.0 + latency_s
    rounds = max(1, int((arrivals[-1] - 0.3 - start) / latency_s))
    return rate(arrivals, start, start + latency_s * rounds)


async def bare(url: str, window: int, seconds: float) -> None:
    """Ask the same server with nothing but aiohttp: what this machine allows at this hour."""
    message = {"role": "user", "content": FILLER * 20}
    body = {"model": "bare", "max_tokens": 64, "messages": [message]}
    until = time.monotonic() + seconds
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def work() -> None:
            while time.monotonic() < until:
                headers = {"Authorization": "Bearer bench"}
                async with session.post(
                    f"{url}/chat/completions", json=body, headers=headers
                ) as response:
                    await response.read()

        await asyncio.gather(*(work() for _ in range(window)))


def limits(seconds: float) -> list[Row]:
    """(c) What the server counts per second and per minute, against the configured limits."""
    rows: list[Row] = []
    for workers in (1, 2, 4):
        slow, fast = Limit(requests_per_minute=60), Limit(requests_per_minute=6000)
        setup = Setup(limits={"slow": slow, "fast": fast}, latency_s=0.05)
        with TemporaryDirectory() as name, ServerProcess(Path(name), setup) as server:
            judges = [
                judge(server, "slow", requests_per_minute=60, max_in_flight=16),
                judge(server, "fast", requests_per_minute=6000, max_in_flight=64),
            ]
            stop_after = _Stop(seconds)
            pairs = int(seconds * 50)
            asked(
                Path(name) / "run",
                judges,
                pairs,
                workers=workers,
                block=BLOCK,
                on_progress=stop_after,
            )
            rows += [
                _limit_row(server, "slow", 60, workers),
                _limit_row(server, "fast", 6000, workers),
            ]
    return rows


class _Stop:
    """Interrupts the run once the judges have been asked for so long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0

    def __call__(self, progress: Any) -> None:
        ended = sum(counts.get("verdicts", 0) for counts in progress.counters.values())
        if ended and not self._until:
            self._until = time.monotonic() + self._seconds
        if self._until and time.monotonic() > self._until:
            self._until = float("inf")
            threading.Thread(target=_interrupt, daemon=True).start()


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _limit_row(server: ServerProcess, model: str, limit: int, workers: int) -> Row:
    arrivals = times(server, model)
    bill: Any = server.bill()
    steady = [moment for moment in arrivals if moment >= arrivals[0] + 2]
    used = (len(steady) - 1) / (steady[-1] - steady[0]) * 60 / limit
    return {
        "limit_per_minute": limit,
        "workers": workers,
        "requests": len(arrivals),
        "most_in_60_s": most_within(arrivals, 60.0),
        "most_in_1_s": most_within(arrivals, 1.0),
        "refused": bill["limits"][model]["refused"],
        "used": used,
    }


def recovery(seconds: float) -> list[Row]:
    """(d) What an outage and a storm of refusals cost beyond their own length."""
    return [
        _trouble("outage", lambda s: s.outage("unavailable", seconds), seconds),
        _trouble("refusals", lambda s: s.script(_STORM), seconds / 3, lambda s: s.script()),
    ]


_STORM = Rule(action=faults.too_many("1"))


def _trouble(
    kind: str,
    begin: Callable[[ServerProcess], None],
    seconds: float,
    finish: Callable[[ServerProcess], None] = lambda _: None,
) -> Row:
    """Let a server fail for a while in the middle of a run."""
    window, latency_s = 32, 0.2
    ideal = window / latency_s
    with (
        TemporaryDirectory() as name,
        ServerProcess(Path(name), Setup(latency_s=latency_s)) as server,
    ):
        marks: list[float] = []

        def trouble() -> None:
            marks.append(time.monotonic())
            begin(server)
            time.sleep(seconds)
            finish(server)
            marks.append(time.monotonic())

        timer = _Once(8.0, trouble)
        judges = [judge(server, "m", max_in_flight=window)]
        asked(
            Path(name) / "run",
            judges,
            int(ideal * 25 / 2),
            workers=2,
            block=BLOCK,
            on_progress=timer,
        )
        arrivals, good = times(server, "m"), times(server, "m", accepted=True)
    start, end = marks
    steady = rate(good, good[0] + 3, start)
    after = [moment for moment in good if moment >= end]
    missed = steady * 10 - sum(end <= moment < end + 10 for moment in good)
    return {
        "trouble": kind,
        "seconds": seconds,
        "steady_per_s": steady,
        "back_after_s": after[0] - end,
        "first_second": sum(after[0] <= moment < after[0] + 1 for moment in arrivals),
        "lost_s_in_10": missed / steady,
        "wasted": sum(start <= moment < end for moment in arrivals)
        - sum(start <= moment < end for moment in good),
    }


class _Once:
    """Does something in a thread, so many seconds after the first verdict."""

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self._seconds, self._action = seconds, action
        self._begun = False

    def __call__(self, progress: Any) -> None:
        ended = sum(counts.get("verdicts", 0) for counts in progress.counters.values())
        if ended and not self._begun:
            self._begun = True
            threading.Timer(self._seconds, self._action).start()
