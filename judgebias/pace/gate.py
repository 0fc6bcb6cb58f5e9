"""The worker's side of a limit group: a gate that spends leases of a quarter second's worth.

Where no limit is known and nothing is wrong, a request passes at once, and the pacer is told four
times a second what happened. Otherwise a request waits for a slot.

A pacer that died is no reason to stop: a worker goes on with its part of the last rate. One that
does not answer, though it may live, gives nothing: others may be sending in our place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from judgebias.calls import Call
from judgebias.pace.headers import limits_told
from judgebias.pace.lease import Known, Lease, Report
from judgebias.pace.line import Line, Slot, now
from judgebias.pace.schedule import AHEAD_S, CATCH_UP_S, SINGLE_S, USE_WITHIN_S

ANSWER_S = 2.0
ALONE_S = 0.25
SOON_S = 0.01
_READ_EVERY = 16
"""Headers are read of one response in so many: they say the same for all."""
_FORGET = 0.98


class PacerGone(Exception):
    """The pacer's process ended; Ray starts another one."""


class PacedGate:
    """One per worker and limit group; lives on the worker's event loop."""

    def __init__(
        self,
        worker: str,
        exchange: Callable[[Report], Awaitable[Lease]],
        in_flight: Callable[[], int],
        *,
        paced: bool,
    ) -> None:
        """Make a gate.

        Parameters
        ----------
        worker
            This worker's name.
        exchange
            Asks the pacer; raises `PacerGone` when its process has ended.
        in_flight
            Counts the calls under way of all judges of the group, those that wait here included.
        paced
            Whether a limit is configured: then nothing passes while no pacer was ever heard.
        """
        self._worker = worker
        self._exchange = exchange
        self._in_flight = in_flight
        self._limited = paced
        self._line = Line(self._use)
        self._pacer = ""
        self._known = Known()
        self._interval, self._workers = 0.0, 1
        self._report = Report(worker=worker)
        self._news = asyncio.Event()
        self._used, self._guessed = 0.0, 0.0
        self._seen = 0
        self._last_at = self._single_used = 0.0
        self._is_alone = False
        self._admitted, self._asked_at = 0, 0.0
        self._all_given = False
        """Whether the pacer gave all that was asked for: then there may be more at once."""

    @property
    def window(self) -> int:
        """Calls that may be in flight in the whole cluster, as learned; 0 = not known yet."""
        return self._known.window

    @property
    def waiting(self) -> int:
        """Requests that wait for a slot."""
        return len(self._line)

    async def admit(self, tokens: int) -> None:
        """Wait for the end of a pause and for a slot, where one is needed.

        Raises
        ------
        NotSent
            When the run stops meanwhile.
        """
        self._admitted += 1
        waiter = self._line.join(tokens)
        if waiter is None:
            return
        if self._all_given and self._line.short > 0:
            self._all_given = False
            self._news.set()
        await waiter

    async def again(self, call: Call) -> bool:  # noqa: ARG002 - a limit is no budget
        """Everything may be bought."""
        return True

    async def clear(self, call: Call) -> bool:  # noqa: ARG002 - a limit is no budget
        """Whatever was admitted may go."""
        return True

    def rate_limited(self, after_s: float | None) -> None:
        """Stop here at once, and have the pacer stop the others."""
        self._report.limited += 1
        self._report.after_s = max(self._report.after_s, after_s or 0.0)
        self._pause(after_s or ALONE_S)

    def failed(self, *, trouble: bool) -> None:
        """Take note of a request that failed for a moment."""
        self._report.failed += 1
        if trouble:
            self._report.trouble = True
            self._pause(ALONE_S)

    def observed(
        self, headers: Mapping[str, str], tokens: int | None, estimated: int | None = None
    ) -> None:
        """Take note of an accepted request."""
        self._report.accepted += 1
        if self._seen % _READ_EVERY == 0:
            told = limits_told(headers)
            if told.known:
                self._report.told = told
        self._seen += 1
        if tokens is not None and estimated:
            self._report.owed += tokens - estimated * self._ratio
            self._used = _FORGET * self._used + tokens
            self._guessed = _FORGET * self._guessed + estimated

    @property
    def _ratio(self) -> float:
        return self._used / self._guessed if self._guessed else 1.0

    def _pause(self, seconds: float) -> None:
        self._line.pause(now() + seconds)
        self._news.set()

    def stop(self) -> None:
        """Send nothing more: who waits here goes back."""
        self._line.stop()

    async def keep(self) -> None:
        """Exchange reports for leases until cancelled."""
        ask_s = 0.0
        while True:
            if ask_s:
                await self._news_within(ask_s)
            self._news.clear()
            ask_s = await self._ask()

    async def _news_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return

    async def _ask(self) -> float:
        """Ask once; returns when to ask again."""
        asked, report = now(), self._take_report()
        try:
            async with asyncio.timeout(ANSWER_S):
                lease = await self._exchange(report)
        except PacerGone:
            self._put_back(report)
            self._alone()
            return ALONE_S
        except TimeoutError:
            self._put_back(report)
            return ALONE_S
        self._heed(lease, asked)
        self._all_given = lease.slots.count >= report.waiting
        # Whoever came meanwhile is not kept waiting for the next turn.
        return SOON_S if self._all_given and self._line.short > 0 else lease.ask_s

    def _take_report(self) -> Report:
        report, self._report = self._report, Report(worker=self._worker)
        report.pacer = self._pacer
        report.waiting = self._wanted()
        report.tokens = report.waiting * self._line.mean_tokens * self._ratio
        report.busy = max(0, self._in_flight() - len(self._line))
        report.known = replace(self._known, pause_s=max(0.0, self._line.until - now()))
        return report

    def _wanted(self) -> int:
        """Count the slots that are wanted: for those that wait and, by the last turn, will come."""
        moment = now()
        coming = round(self._admitted * AHEAD_S / 2 / max(SOON_S, moment - self._asked_at))
        self._admitted, self._asked_at = 0, moment
        if not self._line.paced or self._interval >= SINGLE_S:
            coming = 0
        # What slots are in hand for is not asked for again.
        return max(0, self._line.short + coming)

    def _put_back(self, report: Report) -> None:
        """Keep what the pacer did not hear."""
        mine = self._report
        mine.accepted += report.accepted
        mine.limited += report.limited
        mine.failed += report.failed
        mine.owed += report.owed
        mine.after_s = max(mine.after_s, report.after_s)
        mine.trouble |= report.trouble
        if report.told.known and not mine.told.known:
            mine.told = report.told

    def _heed(self, lease: Lease, asked: float) -> None:
        line, moment = self._line, now()
        line.paced, self._pacer, self._known = lease.paced, lease.pacer, lease.known
        self._interval, self._workers = lease.interval_s, lease.workers
        if self._is_alone:
            self._is_alone = False
            line.forget()
        if lease.known.pause_s:
            line.pause(asked + lease.known.pause_s)
        elif not self._report.limited and not self._report.trouble:
            # The pacer knows of every pause of ours, and may have ended it.
            line.until = min(line.until, moment)
        single = lease.slots.interval_s >= SINGLE_S
        for number in range(lease.slots.count):
            after = lease.slots.first_s + number * lease.slots.interval_s
            # Never earlier than the pacer meant, never later than it counts on.
            until = asked + max(after, -CATCH_UP_S) + USE_WITHIN_S
            self._last_at = moment + after
            if single:
                self._last_at = self._single_at(lease, asked)
            line.give(Slot(at=self._last_at, until=until, tokens=lease.tokens, single=single))
        line.release()

    def _single_at(self, lease: Lease, asked: float) -> float:
        """Guess when the pacer meant a single slot, but an interval after our own last one.

        Half of the time of an exchange counts as its answer's.
        """
        meant = (asked + now()) / 2 + lease.slots.first_s
        return max(meant, self._single_used + lease.slots.interval_s)

    def _alone(self) -> None:
        """Go on without a pacer, with this worker's part of the last rate."""
        line, moment = self._line, now()
        line.paced &= self._limited or bool(self._pacer)
        if line.paced and self._interval and line.until <= moment:
            interval = self._interval * self._workers
            # The first one after whatever the pacer may have given to others before it died.
            last = self._last_at if self._is_alone else max(self._last_at, moment + AHEAD_S)
            self._is_alone = True
            tokens = line.mean_tokens * self._ratio
            while (at := max(moment, last + interval)) < moment + 2 * ALONE_S:
                line.give(Slot(at=at, until=at + USE_WITHIN_S, tokens=tokens))
                last = self._last_at = at
        line.release()

    def _use(self, slot: Slot, tokens: float, moment: float) -> None:
        self._report.owed += tokens * self._ratio - slot.tokens
        if slot.single:
            self._single_used = moment
            self._report.late_s = max(0.0, moment - slot.at)
            self._news.set()
