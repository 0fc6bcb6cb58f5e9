"""Learning what a server bears: additive increase, multiplicative decrease, slow after a pause.

Three things are learned. The *window* of calls in flight doubles as long as that brings more
answers, and is cut by a refusal. The *ceiling* of the rate appears with the first refusals, at the
rate that was being accepted, and grows bit by bit. A *pause* holds everybody: as long as the server
says, or for a growing, random time; after it requests come at half the rate and up.

A server that fails (an outage) is asked by single probes until it answers.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from judgebias.pace.lease import Known, Report
from judgebias.pace.limits import MOST_IN_FLIGHT

FIRST_WINDOW = 64
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_PROBE_S = 2.0
"""Between two probes of a server that fails; each costs one request."""
LONGEST_RAMP_S = 10.0
_MEMORY_S = 5.0
_CUT = 0.8
_SHARE_REFUSED = 0.05
"""Refusals below this share of the requests are slips, not a limit that is too high."""
_EVIDENCE = 40
"""Requests that must be known before a limit that is being kept counts as too high."""
_GROWTH, _MOST_GROWTH, _DOUBLES_S = 0.02, 0.5, 5.0
"""Of the ceiling, per second; doubled for every few seconds without a refusal."""
_LEAST_RATE = 1.0
"""Requests per second after a pause where nothing was accepted before it."""
_WORTH_IT = 1.3
"""A doubled window must bring so many times the answers, or it only fills queues."""


class Learner:
    """What one limit group has learned."""

    def __init__(self, now: float, draw: Callable[[], float] = random.random) -> None:
        self._draw = draw
        self._born = now
        self._events: deque[tuple[float, int, int]] = deque()
        self._until = now
        """End of the pause."""
        self._ramp_s = 0.0
        self._strikes = 0
        self._steady = 0.0
        """Requests per second that were accepted before the pause."""
        self._episode = False
        """Whether nothing was accepted since the last cut."""
        self._cut_at = self._grown = now
        self.probing = False
        """Whether the server fails, and is asked by one request at a time."""
        self.ceiling = 0.0
        """Requests per second; 0 = no bound."""
        self._size = Size(now)

    @property
    def window(self) -> int:
        """Calls that may be in flight."""
        return int(self._size.window)

    def adopt(self, known: Known, now: float) -> None:
        """Take over what an earlier life had learned."""
        ceilings = [ceiling for ceiling in (self.ceiling, known.ceiling) if ceiling]
        self.ceiling = min(ceilings, default=0.0)
        self._size.window = known.window or self._size.window
        self._steady = max(self._steady, known.steady)
        if known.pause_s > self.pause_left(now):
            self._pause(known.pause_s, now)

    def known(self, now: float) -> Known:
        """Say what a later life is to take over."""
        steady = self._steady if self._ramp_part(now) < 1 else self.accepted_rate(now)
        return Known(
            ceiling=self.ceiling, window=self.window, pause_s=self.pause_left(now), steady=steady
        )

    def pause_left(self, now: float) -> float:
        """Seconds of the pause that are left."""
        return max(0.0, self._until - now)

    def rate(self, now: float) -> float:
        """Requests per second that may be sent; 0 = no bound."""
        part = self._ramp_part(now)
        base = self.ceiling or (max(self._steady, _LEAST_RATE) if part < 1 else 0.0)
        return base * part

    def note(self, report: Report, now: float, *, bounded: bool, bound: float = 0.0) -> None:
        """Learn from what a worker met.

        Parameters
        ----------
        report
            Of the worker.
        now
            Seconds on the learner's clock.
        bounded
            Whether a known limit is being kept.
        bound
            That limit in requests per second; 0 = none, or one in tokens.
        """
        self._events.append((now, report.accepted, report.limited))
        while self._events[0][0] < now - _MEMORY_S:
            self._events.popleft()
        if report.limited:
            self._refused(report, now, bounded=bounded, bound=bound)
        elif report.trouble or (report.failed and self.probing and not report.accepted):
            self._fails(now)
        elif report.accepted and now >= self._until:
            self._answered(report, now)

    def _refused(self, report: Report, now: float, *, bounded: bool, bound: float) -> None:
        if now >= self._until:
            self._steady = self.accepted_rate(now)
        slip = bounded and self._share_refused() < _SHARE_REFUSED
        if not slip and not self._episode:
            self._episode, self._cut_at = True, now
            # What was accepted until now is what the server bears.
            known = self.ceiling or bound
            self.ceiling = known * _CUT if known else self._steady
            self._size.cut(now)
        # A limit that is kept needs no ramp to come back to: the next slot is where it was.
        if report.after_s:
            self._pause(report.after_s, now, ramp=not slip)
        elif now >= self._until:
            self._pause(self._backoff(LONGEST_PAUSE_S), now, ramp=not slip)

    def _fails(self, now: float) -> None:
        if now < self._until:
            return
        if not self.probing:
            self._steady = self.accepted_rate(now)
        self.probing = True
        self._pause(self._backoff(LONGEST_PROBE_S), now)
        self._ramp_s = max(self._ramp_s, 2.0)

    def _answered(self, report: Report, now: float) -> None:
        if self.probing:
            # The ramp starts when the server is back, not when it was asked.
            self._until = now
            self.probing = False
        self._strikes = 0
        self._episode = False
        if self.ceiling and self.accepted_rate(now) > 0.8 * self.ceiling:
            calm = (now - self._cut_at) / _DOUBLES_S
            growth = min(_MOST_GROWTH, _GROWTH * 2 ** min(calm, 10.0))
            self.ceiling *= 1 + growth * min(1.0, now - self._grown)
        self._grown = now
        self._size.answered(report.accepted, now)

    def busy(self, busy: int) -> None:
        """Hear how many requests are on the wire: a window that is not full teaches nothing."""
        self._size.full = busy >= 0.7 * self._size.window

    def _pause(self, seconds: float, now: float, *, ramp: bool = True) -> None:
        self._until = max(self._until, now + seconds)
        if not ramp:
            return
        ramp_s = min(LONGEST_RAMP_S, seconds / 2)
        self._ramp_s = ramp_s if self.ceiling else max(1.0, ramp_s)

    def _backoff(self, longest: float) -> float:
        pause = min(longest, FIRST_PAUSE_S * 2**self._strikes) * (0.5 + 0.5 * self._draw())
        self._strikes += 1
        return pause

    def _ramp_part(self, now: float) -> float:
        passed = max(0.0, now - self._until)
        if passed >= self._ramp_s:
            return 1.0
        return 0.5 + 0.5 * passed / self._ramp_s

    def accepted_rate(self, now: float) -> float:
        """Requests per second that were accepted lately."""
        accepted = sum(event[1] for event in self._events)
        return accepted / min(_MEMORY_S, max(1.0, now - self._born))

    def _share_refused(self) -> float:
        limited = sum(event[2] for event in self._events)
        accepted = sum(event[1] for event in self._events)
        return limited / max(_EVIDENCE, limited + accepted)


class Size:
    """The window: rounds of answers, doubled as long as a round brings more of them a second."""

    def __init__(self, now: float) -> None:
        self.window = float(FIRST_WINDOW)
        self.full = False
        self._searching = True
        self._most = float(MOST_IN_FLIGHT)
        self._before = 0.0
        self._answers = 0
        self._since = now

    def cut(self, now: float) -> None:
        """Take a refusal."""
        self.window = max(1.0, self.window * _CUT)
        self._searching = False
        self._restart(now)

    def answered(self, accepted: int, now: float) -> None:
        """Take answers."""
        if not self.full:
            self._restart(now)
        elif not self._searching:
            self.window = min(self._most, self.window + accepted / self.window)
        else:
            self._search(accepted, now)

    def _search(self, accepted: int, now: float) -> None:
        self._answers += accepted
        if self._answers < 2 * self.window or now - self._since < 1.0:
            return
        rate = self._answers / (now - self._since)
        if rate >= _WORTH_IT * self._before:
            self._before = rate
            self._searching = self.window < self._most
            self.window = min(self._most, 2 * self.window)
        else:
            # The last doubling only filled the server's queue.
            self._most = self.window = max(FIRST_WINDOW, self.window / 2)
            self._searching = False
        self._restart(now)

    def _restart(self, now: float) -> None:
        self._answers, self._since = 0, now
