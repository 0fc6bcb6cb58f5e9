"""The calls under way of one judge in one worker: a window that blocks do not drain.

Runners take calls from one queue that all open blocks of the judge share, so the tail of a block
leaves no gap. A runner costs a task once, not per call.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from judgebias.calls import Call
from judgebias.errors import JudgeHalted
from judgebias.judges.gate import NotSent
from judgebias.judges.judge import Judge
from judgebias.pace.wallet import Wallet
from judgebias.replies import Reply

_YIELD_EVERY = 64
"""A judge that answers at once would never let the journal and the beats run."""


class Permit(Protocol):
    """Whether this worker may send: the lease, as the window sees it."""

    @property
    def granted(self) -> bool:
        """Whether a call may be sent now."""
        ...

    @property
    def closed(self) -> bool:
        """Whether nothing is to be sent any more."""
        ...

    async def changed(self) -> None:
        """Wait until it may be worth looking again."""
        ...


@dataclass(kw_only=True, slots=True, eq=False)
class _Batch:
    """The calls of one block: done when each one is recorded or left pending."""

    record: Callable[[Call, Reply], None]
    left: int
    done: asyncio.Future[int]
    pending: int = 0

    def end(self, *, pending: bool, calls: int = 1) -> None:
        self.left -= calls
        self.pending += calls * pending
        if self.left == 0 and not self.done.done():
            self.done.set_result(self.pending)


@dataclass(kw_only=True, eq=False)
class Window:
    """Asks one judge, with at most `size` calls under way."""

    judge: Judge
    permit: Permit
    size: int
    on_halt: Callable[[JudgeHalted], None]
    name: str = ""
    """The judge's name, for the wallet."""
    wallet: Wallet | None = None
    """Reserves calls before they are asked, where the run has a budget."""
    on_short: Callable[[], None] = lambda: None
    """Told when there are more calls than may be under way."""
    in_flight: int = 0
    halted: bool = False
    _unfed: int = 0
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _feeds: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _queue: deque[tuple[Call, _Batch]] = field(default_factory=deque[tuple[Call, _Batch]])
    _runners: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def ask(self, calls: Sequence[Call], record: Callable[[Call, Reply], None]) -> int:
        """Ask the calls and record each reply; returns how many stay pending.

        Raises
        ------
        BaseException
            Whatever a judge raised that is neither a reply nor `JudgeHalted`: a fault of ours.
        """
        if not calls:
            return 0
        done = asyncio.get_running_loop().create_future()
        batch = _Batch(record=record, left=len(calls), done=done)
        if self.wallet is None:
            self._queue.extend((call, batch) for call in calls)
            self._fill()
        else:
            feed = asyncio.get_running_loop().create_task(self._feed(self.wallet, calls, batch))
            self._feeds.add(feed)
            feed.add_done_callback(self._feeds.discard)
        if self.waiting and len(self._runners) >= self.size:
            self.on_short()
        return await done

    @property
    def waiting(self) -> int:
        """Calls that nobody is asking yet."""
        return len(self._queue) + self._unfed

    @property
    def ready(self) -> int:
        """Calls that could be asked at once: those that wait for money need no part of a window."""
        poor = self.wallet is not None and self.name in self.wallet.poor
        return len(self._queue) + (0 if poor else self._unfed)

    async def _feed(self, wallet: Wallet, calls: Sequence[Call], batch: _Batch) -> None:
        """Queue calls as the budget has room for them, a pair's together or not at all."""
        self._unfed += (left := len(calls))
        for pair in _pairs(calls):
            # Nothing is reserved for calls that cannot be asked yet: others may be short of it.
            while len(self._queue) >= self.size and not self._over:
                self._room.clear()
                await self._room.wait()
            if self._over or batch.done.done() or not await wallet.afford(self.name, pair):
                break
            self._unfed -= len(pair)
            left -= len(pair)
            self._queue.extend((call, batch) for call in pair)
            self._fill()
        if left:
            self._unfed -= left
            batch.end(pending=True, calls=left)

    def resize(self, size: int) -> None:
        """Change the number of calls that may be under way."""
        self.size = size
        self._room.set()
        self._fill()

    def cancel(self) -> None:
        """Give up the calls that are under way and those that wait; they stay pending."""
        self._abandon()
        for runner in self._runners:
            runner.cancel()

    @property
    def _over(self) -> bool:
        return self.halted or self.permit.closed

    def _fill(self) -> None:
        if self._over:
            # A window of size 0 has no runner that would notice.
            self._abandon()
            return
        wanted = min(self.size - len(self._runners), len(self._queue))
        for _ in range(wanted):
            runner = asyncio.get_running_loop().create_task(self._run())
            self._runners.add(runner)
            runner.add_done_callback(self._ended)

    def _ended(self, runner: asyncio.Task[None]) -> None:
        self._runners.discard(runner)
        if not runner.cancelled() and (fault := runner.exception()) is not None:
            self._fail(fault)
        else:
            self._fill()

    def _fail(self, fault: BaseException) -> None:
        """Let every open block end with the fault rather than wait for ever."""
        while self._queue:
            _, batch = self._queue.popleft()
            if not batch.done.done():
                batch.done.set_exception(fault)

    async def _run(self) -> None:
        served = 0
        while self._queue and len(self._runners) <= self.size:
            if self._over:
                self._abandon()
                return
            if not self.permit.granted:
                # The queue and the size may be others after a wait.
                await self.permit.changed()
                continue
            call, batch = self._queue.popleft()
            self._room.set()
            await self._serve(call, batch)
            served += 1
            if served % _YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def _serve(self, call: Call, batch: _Batch) -> None:
        self.in_flight += 1
        pending = True
        try:
            reply = await self.judge.ask(call)
            # Nothing is awaited between the reply and its record: a reply in hand is never lost.
            batch.record(call, reply)
            pending = False
            if self.wallet is not None:
                self.wallet.settle(self.name, call, reply)
        except NotSent:
            # The run stops, or its budget is used up; that is told elsewhere.
            return
        except JudgeHalted as reason:
            if not self.halted:
                self.halted = True
                self.on_halt(reason)
        except Exception as fault:
            if not batch.done.done():
                batch.done.set_exception(fault)
            raise
        finally:
            self.in_flight -= 1
            if pending and self.wallet is not None:
                self.wallet.lose(self.name, call)
            batch.end(pending=pending)

    def _abandon(self) -> None:
        """Leave everything that waits pending."""
        self._room.set()
        while self._queue:
            call, batch = self._queue.popleft()
            if self.wallet is not None:
                self.wallet.unsent(self.name, call)
            batch.end(pending=True)


def _pairs(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Group neighbours that are the two orders of one pair."""
    for _, both in groupby(calls, key=lambda call: (call.digest, call.pair.pair_id, call.repeat)):
        yield list(both)
