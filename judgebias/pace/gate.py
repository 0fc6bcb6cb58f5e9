"""The worker's side of a limit group: a gate that spends leases of a quarter second's worth.

Where no limit is known and nothing is wrong, a request passes at once, and the pacer is told four
times a second what happened. Otherwise a request waits for a slot.

A pacer that died is no reason to stop: a worker goes on with its part of the last rate. One that
does not answer, though it may live, gives nothing: others may be sending in our place.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from judgebias.calls import Call
from judgebias.judges.gate import Gate, NotSent
from judgebias.pace.headers import limits_told
from judgebias.pace.lease import Known, Lease, Report
from judgebias.pace.schedule import AHEAD_S, CATCH_UP_S, SINGLE_S, USE_WITHIN_S

ANSWER_S = 2.0
ALONE_S = 0.25
SOON_S = 0.01
_READ_EVERY = 16
"""Headers are read of one response in so many: they say the same for all."""
_FORGET = 0.98


class PacerGone(Exception):
    """The pacer's process ended; Ray starts another one."""


@dataclass(frozen=True, slots=True)
class _Slot:
    at: float
    until: float
    tokens: float
    single: bool


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
        # Nothing passes before the first lease: there may be a pause that others know of.
        self._paced = True
        self._limited = paced
        self._pacer = ""
        self._known = Known()
        self._interval, self._workers = 0.0, 1
        self._until = 0.0
        self._waiters: deque[tuple[asyncio.Future[None], float]] = deque()
        self._tokens_waiting = self._last_tokens = 0.0
        self._slots: deque[_Slot] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._report = Report(worker=worker)
        self._news = asyncio.Event()
        self._used, self._guessed = 0.0, 0.0
        self._seen = 0
        self._last_at = 0.0
        self._is_alone = False
        self._stopped = False
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
        return len(self._waiters)

    async def admit(self, tokens: int) -> None:
        """Wait for the end of a pause and for a slot, where one is needed.

        Raises
        ------
        NotSent
            When the run stops meanwhile.
        """
        if self._stopped:
            raise NotSent
        self._admitted += 1
        if not self._paced and self._until <= _now():
            return
        self._last_tokens = tokens
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((waiter, tokens))
        self._tokens_waiting += tokens
        self._release()
        if self._all_given and len(self._waiters) > len(self._slots):
            self._all_given = False
            self._news.set()
        await waiter

    async def again(self, call: Call) -> bool:  # noqa: ARG002 - a limit is no budget
        """Everything may be bought."""
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
    def _mean_tokens(self) -> float:
        """Estimate the tokens of the next requests by those that wait, or by the last one."""
        mean = self._tokens_waiting / len(self._waiters) if self._waiters else self._last_tokens
        return mean * self._ratio

    @property
    def _ratio(self) -> float:
        return self._used / self._guessed if self._guessed else 1.0

    def _pause(self, seconds: float) -> None:
        self._until = max(self._until, _now() + seconds)
        self._slots.clear()
        self._news.set()

    def stop(self) -> None:
        """Send nothing more: who waits here goes back."""
        self._stopped = True
        while self._waiters:
            waiter, _ = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(NotSent())

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
        asked, report = _now(), self._take_report()
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
        short = len(self._waiters) > len(self._slots)
        return SOON_S if self._all_given and short else lease.ask_s

    def _take_report(self) -> Report:
        report, self._report = self._report, Report(worker=self._worker)
        report.pacer = self._pacer
        report.waiting = self._wanted()
        report.tokens = report.waiting * self._mean_tokens
        report.busy = max(0, self._in_flight() - len(self._waiters))
        report.known = replace(self._known, pause_s=max(0.0, self._until - _now()))
        return report

    def _wanted(self) -> int:
        """Count the slots that are wanted: for those that wait and, by the last turn, will come."""
        now = _now()
        coming = round(self._admitted * AHEAD_S / 2 / max(SOON_S, now - self._asked_at))
        self._admitted, self._asked_at = 0, now
        if not self._paced or self._interval >= SINGLE_S:
            coming = 0
        # What slots are in hand for is not asked for again.
        return max(0, len(self._waiters) + coming - len(self._slots))

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
        now = _now()
        self._paced, self._pacer, self._known = lease.paced, lease.pacer, lease.known
        self._interval, self._workers = lease.interval_s, lease.workers
        if self._is_alone:
            self._is_alone = False
            self._slots.clear()
        if lease.known.pause_s:
            self._until = max(self._until, asked + lease.known.pause_s)
            self._slots.clear()
        elif not self._report.limited and not self._report.trouble:
            # The pacer knows of every pause of ours, and may have ended it.
            self._until = min(self._until, now)
        single = lease.slots.interval_s >= SINGLE_S
        for number in range(lease.slots.count):
            after = lease.slots.first_s + number * lease.slots.interval_s
            # Never earlier than the pacer meant, never later than it counts on.
            until = asked + max(after, -CATCH_UP_S) + USE_WITHIN_S
            self._slots.append(_Slot(now + after, until, lease.tokens, single))
            self._last_at = now + after
        self._release()

    def _alone(self) -> None:
        """Go on without a pacer, with this worker's part of the last rate."""
        self._paced &= self._limited or bool(self._pacer)
        if not self._paced or not self._interval or self._until > _now():
            self._release()
            return
        interval, now = self._interval * self._workers, _now()
        # The first one after whatever the pacer may have given to others before it died.
        last = self._last_at if self._is_alone else max(self._last_at, now + AHEAD_S)
        self._is_alone = True
        while (at := max(now, last + interval)) < now + 2 * ALONE_S:
            self._slots.append(_Slot(at, at + USE_WITHIN_S, self._mean_tokens, single=False))
            last = self._last_at = at
        self._release()

    def _release(self) -> None:
        """Let go whoever has a slot, or needs none, and come back for the next."""
        now = _now()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            if self._until > now:
                self._come_back(self._until)
                return
            if self._paced and not self._open_slot(now):
                return
            waiter, tokens = self._waiters.popleft()
            self._tokens_waiting = max(0.0, self._tokens_waiting - tokens)
            if waiter.done():
                continue  # its call was cancelled: the slot is for the next one
            if self._paced:
                self._use(self._slots.popleft(), tokens, now)
            waiter.set_result(None)

    def _open_slot(self, now: float) -> bool:
        """Tell whether the first slot is open; drop those that nobody used in time."""
        while self._slots and self._slots[0].until < now:
            self._slots.popleft()
        if not self._slots:
            return False
        if self._slots[0].at > now:
            self._come_back(self._slots[0].at)
            return False
        return True

    def _use(self, slot: _Slot, tokens: float, now: float) -> None:
        self._report.owed += tokens * self._ratio - slot.tokens
        if slot.single:
            self._report.late_s = max(0.0, now - slot.at)
            self._news.set()

    def _come_back(self, at: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(at, self._release)


class Bought:
    """A judge's gate under a budget: every request after the first is reserved here."""

    def __init__(self, gate: Gate, again: Callable[[Call], Awaitable[bool]]) -> None:
        self._again = again
        self.admit = gate.admit
        self.rate_limited = gate.rate_limited
        self.failed = gate.failed
        self.observed = gate.observed

    async def again(self, call: Call) -> bool:
        """Reserve one more request of a call."""
        return await self._again(call)


def _now() -> float:
    return asyncio.get_running_loop().time()
