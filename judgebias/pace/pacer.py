"""The mind of a limit group: one for all workers, asked a few times a second by each.

It may die at any time. A new one starts with an empty schedule, a moment later than any slot the
old one gave can be used, and takes what had been learned from the workers' first reports.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

from judgebias.pace.learning import Learner
from judgebias.pace.lease import Lease, Report
from judgebias.pace.limits import Limits
from judgebias.pace.schedule import (
    AHEAD_S,
    NO_SLOTS,
    USE_WITHIN_S,
    Schedule,
    Slots,
    interval_of,
)

GONE_S = 2.0
"""A worker that was not heard for so long has no part in the limit any more."""
QUARTER_S = 0.25
ASK_S = 0.12
PROBE_S = 5.0
"""So long the answer to a probe is waited for before another one is sent."""


class Pacer:
    """Shares one limit among the workers that ask."""

    def __init__(
        self,
        limits: Limits,
        name: str,
        clock: Callable[[], float],
        draw: Callable[[], float] = random.random,
        *,
        reborn: bool = False,
    ) -> None:
        self._configured = limits
        self._told = Limits()
        self._name = name
        self._clock = clock
        now = clock()
        # An earlier life may have given slots up to there.
        self._schedule = Schedule(now + (AHEAD_S + USE_WITHIN_S if reborn else 0.0))
        self._learner = Learner(now, draw)
        self._seen: dict[str, float] = {}
        self._busy: dict[str, int] = {}
        self._wanted: dict[str, float] = {}
        self._probe_until = 0.0

    def exchange(self, report: Report) -> Lease:
        """Take a worker's report and give it its next slots."""
        now = self._clock()
        since = now - self._seen.get(report.worker, now)
        self._meet(report, now)
        limits = self._configured.and_(self._told)
        self._learner.note(report, now, bounded=limits.known, bound=limits.requests / 60)
        if report.failed or report.limited:
            self._probe_until = now
        if report.limited and limits.known:
            self._schedule.slip(now)
        if report.late_s > 0:
            self._schedule.shift(report.late_s)
        self._schedule.shift(report.owed * interval_of(limits.tokens))
        tokens = report.tokens / max(1, report.waiting)
        interval = self._interval(limits, tokens, now)
        pause = self._learner.pause_left(now)
        if pause:
            self._schedule.not_before(now + pause)
        slots = NO_SLOTS if pause else self._slots(report, interval, since, now)
        return Lease(
            pacer=self._name,
            paced=bool(limits.known or interval or pause or self._learner.probing),
            slots=slots,
            tokens=tokens,
            interval_s=interval,
            workers=len(self._seen),
            ask_s=self._ask_s(report, slots, pause, now),
            known=replace(self._learner.known(now), told=self._told),
        )

    def _meet(self, report: Report, now: float) -> None:
        if report.pacer not in ("", self._name):
            self._succeed(report, now)
        if report.told.known:
            self._told = report.told
        self._seen[report.worker] = now
        self._busy[report.worker] = report.busy
        if report.waiting:
            self._wanted[report.worker] = now
        for worker in [name for name, seen in self._seen.items() if seen < now - GONE_S]:
            del self._seen[worker], self._busy[worker]
            self._wanted.pop(worker, None)
        self._learner.busy(sum(self._busy.values()))

    def _succeed(self, report: Report, now: float) -> None:
        """Take over from a pacer that died: what it knew, and not at once."""
        known = report.known
        if known.told.known:
            self._told = known.told
        self._learner.adopt(known, now)
        self._schedule.not_before(now + AHEAD_S + USE_WITHIN_S)

    def _interval(self, limits: Limits, tokens: float, now: float) -> float:
        rate = self._learner.rate(now)
        return max(
            interval_of(limits.requests),
            tokens * interval_of(limits.tokens),
            1 / rate if rate else 0.0,
        )

    def _slots(self, report: Report, interval: float, since: float, now: float) -> Slots:
        if not report.waiting:
            return NO_SLOTS
        if self._learner.probing:
            return self._probe(now)
        if not interval:
            return NO_SLOTS
        hungry = sum(wanted > now - 1.0 for wanted in self._wanted.values())
        # Who could ask only so long after the last time will not ask sooner the next time.
        until = max(QUARTER_S, min(AHEAD_S, since))
        share = max(1, math.ceil(until / interval / max(1, hungry)))
        return self._schedule.take(min(report.waiting, share), interval, now)

    def _probe(self, now: float) -> Slots:
        if now < self._probe_until:
            return NO_SLOTS
        self._probe_until = now + PROBE_S
        return Slots(count=1)

    def _ask_s(self, report: Report, slots: Slots, pause: float, now: float) -> float:
        if pause:
            return min(pause + 0.01, QUARTER_S)
        if not report.waiting:
            return QUARTER_S
        if slots.count or not slots.interval_s:
            return ASK_S
        return min(QUARTER_S, max(0.02, self._schedule.wait(now) - AHEAD_S))
