"""The run's owner: hands out blocks and short leases to send, and collects the counters.

A worker may send only under a lease of at most `LEASE_S`, renewed by each beat. The owner grants
leases only while the driver's own beat is fresh, so that nothing is sent for a driver that is gone.
It is an asyncio actor: its methods run on one thread, and a wait in one does not hold the others.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from judgebias.pace.budget import Answer, Grant, Spending
from judgebias.pace.purse import Purse
from judgebias.pace.shares import Shares
from judgebias.pipeline.blocks import Assignment, BlockQueue, TaskBlock
from judgebias.progress import Counters, FormData, Progress

LEASE_S = 2.0
BEAT_S = 0.5
LOST_S = 30.0
"""Seconds without a beat after which a worker counts as dead even if nobody replaced it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What a worker could use of one judge's window."""

    busy: int
    """Calls under way."""
    waiting: int
    window: int = 0
    """The whole cluster's window where it is learned; 0 = as configured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beat:
    """What a worker learns from a beat."""

    lease_s: float
    """Seconds for which it may go on sending; 0 = not now."""
    stopping: bool
    """Whether to send nothing more and let what is in flight land."""
    halted: frozenset[str]
    """Judges that are not to be asked any more."""
    buried: bool
    """Whether this process counts as dead: its blocks may be with another one by now."""
    rank: int
    workers: int
    """This worker is number `rank` (from 0) of `workers`."""
    windows: Mapping[str, int] = field(default_factory=dict[str, int])
    """Judge -> calls that this worker may have under way."""


@dataclass(kw_only=True, slots=True)
class _Worker:
    actor: str
    seen: float
    lease_until: float = 0.0
    counters: Counters = field(default_factory=dict)
    replaced: bool = False
    """Whether another process stands for it; it gets no lease any more."""


class RunOwner:
    """One per run; made into a named Ray actor by `judgebias.pipeline.run`."""

    def __init__(
        self,
        blocks: Iterable[TaskBlock],
        forms: Mapping[str, FormData] | None = None,
        windows: Mapping[str, int] | None = None,
        purse: Purse | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock, self._sleep = clock, sleep
        self._queue = BlockQueue(blocks)
        self._workers: dict[str, _Worker] = {}
        self._dead: dict[str, Counters] = {}
        self._driver_seen = clock()
        self._stopping = False
        self._halted: dict[str, str] = {}
        self._concluded: set[str] = set()
        self._fault = ""
        self._forms: dict[str, FormData] = dict(forms or {})
        self._settling: dict[str, str] = {}
        self._shares = {judge: Shares(size) for judge, size in (windows or {}).items()}
        self._purse = purse

    async def register(self, worker: str, actor: str) -> None:
        """Meet a new worker process; an earlier process of the same actor is dead."""
        for name, other in list(self._workers.items()):
            if other.actor == actor and name != worker:
                await self._outlive(other)
                await self._bury(name)
        self._workers[worker] = _Worker(actor=actor, seen=self._clock())

    async def take(self, worker: str) -> Assignment | None:
        """Wait for a block; None when there is nothing more to do."""
        while not self._stopping and not self._queue.finished and worker in self._workers:
            rank = list(self._workers).index(worker)
            # A worker whose share of a judge's window is nothing could never ask its blocks.
            useless = {judge for judge, shares in self._shares.items() if shares.total <= rank}
            if assignment := self._queue.take(worker, without=useless):
                return assignment
            await self._sleep(BEAT_S / 10)
        return None

    async def announce(self, worker: str, keys: tuple[bytes, ...]) -> None:
        """Hear what a careful worker is about to send, so that its death would accuse only that."""
        if worker in self._workers:
            self._queue.announce(worker, keys)

    async def close_block(self, worker: str, assignment: Assignment) -> None:
        """Close a block whose replies are all on disk."""
        if worker in self._workers:
            self._queue.give_back(worker, assignment)

    async def reserve(self, worker: str, spending: Spending) -> Grant:
        """Settle what a worker spent and reserve what it needs from the run's budget."""
        if self._purse is None:
            msg = "a run without a budget has nothing to reserve"
            raise RuntimeError(msg)
        if worker not in self._workers:
            # A process that counts as dead: all that it held counts as spent already.
            return Grant(answer=Answer.SPENT)
        grant = self._purse.exchange(worker, spending)
        for judge in self._purse.exhausted:
            # Other judges may have pairs that there is room for.
            self._queue.drop(judge)
        return grant

    async def beat(
        self, worker: str, counters: Counters, demand: Mapping[str, Demand] | None = None
    ) -> Beat:
        """Renew a worker's lease, take its counters, and divide the windows anew."""
        now = self._clock()
        state = self._workers.get(worker)
        lease = 0.0
        if state is not None:
            state.seen, state.counters = now, counters
            if not state.replaced:
                lease = max(0.0, min(LEASE_S, self._driver_seen + LEASE_S - now))
                state.lease_until = now + lease
        names = list(self._workers)
        windows = self._divide(worker, demand or {}, now) if state and not state.replaced else {}
        return Beat(
            lease_s=lease,
            stopping=self._stopping,
            halted=frozenset(self._halted) | self._concluded,
            buried=state is None,
            rank=names.index(worker) if state else 0,
            workers=max(1, len(names)),
            windows=windows,
        )

    def _divide(self, worker: str, demand: Mapping[str, Demand], now: float) -> dict[str, int]:
        parts: dict[str, int] = {}
        for judge, wanted in demand.items():
            if (shares := self._shares.get(judge)) is None:
                continue
            shares.total = wanted.window or shares.total
            parts[judge] = shares.ask(
                worker, busy=wanted.busy, waiting=wanted.waiting, now=now, until=now + LEASE_S
            )
        return parts

    async def form(self, worker: str, judge: str) -> FormData | None:
        """Give the judge's settled form; None for the one worker that is to settle it.

        The others wait: what the first call finds out is found out once, not once per worker.
        """
        while judge not in self._forms and not self._stopping and not self._is_over(judge):
            if self._settling.setdefault(judge, worker) not in self._workers:
                self._settling[judge] = worker
            if self._settling[judge] == worker:
                return None
            await self._sleep(BEAT_S / 10)
        return self._forms.get(judge)

    async def settle(self, judge: str, form: FormData | None) -> None:
        """Take a settled form; None lets another worker try."""
        if form is None:
            self._settling.pop(judge, None)
        else:
            self._forms.setdefault(judge, form)

    async def halt(self, judge: str, reason: str) -> None:
        """Ask this judge nothing more; its calls stay pending and the other judges go on."""
        self._halted.setdefault(judge, reason)
        self._queue.drop(judge)

    async def conclude(self, judge: str) -> None:
        """Ask this judge nothing more because its figures are good enough."""
        self._concluded.add(judge)
        self._queue.drop(judge)

    async def fail(self, fault: str) -> None:
        """End the run for a reason that concerns every judge."""
        self._fault = self._fault or fault
        self._stopping = True

    async def stop(self) -> None:
        """Hand out nothing more, and have the workers send nothing more."""
        self._stopping = True

    async def driver_beat(self) -> Progress:
        """Hear from the driver, and tell it where the run stands."""
        now = self._clock()
        if now - self._driver_seen > LEASE_S:
            # The owner itself was held up, and the workers' beats are still in its queue.
            for state in self._workers.values():
                state.seen = now
        self._driver_seen = now
        for name, state in list(self._workers.items()):
            if now - state.seen > LOST_S:
                await self._bury(name)
        return Progress(
            counters=self._totals(),
            workers=len(self._workers),
            deaths=len(self._dead),
            halted=dict(self._halted),
            fault=self._fault,
            forms=dict(self._forms),
            over=self._queue.finished or (self._stopping and self._queue.idle),
            budget_spent=self._purse is not None and bool(self._purse.exhausted),
            budget=None if self._purse is None else self._purse.state,
        )

    def _is_over(self, judge: str) -> bool:
        return judge in self._halted or judge in self._concluded

    def _totals(self) -> dict[str, dict[str, float]]:
        totals: dict[str, Counter[str]] = {}
        living = [state.counters for state in self._workers.values()]
        for counters in (*living, *self._dead.values()):
            for judge, counts in counters.items():
                totals.setdefault(judge, Counter()).update(counts)
        return {judge: dict(counts) for judge, counts in totals.items()}

    async def _bury(self, worker: str) -> None:
        if (state := self._workers.pop(worker, None)) is None:
            # Buried as lost while its successor waited for its lease.
            return
        finished = {
            judge: {what: n for what, n in counts.items() if what != "in_flight"}
            for judge, counts in state.counters.items()
        }
        self._dead[worker] = finished
        self._queue.bury(worker)
        for shares in self._shares.values():
            shares.drop(worker)
        if self._purse is not None:
            self._purse.forget(worker)
        for judge, reason in self._queue.hopeless.items():
            await self.halt(judge, reason)

    async def _outlive(self, worker: _Worker) -> None:
        """Wait until the lease of a dead process has lapsed: an orphan may still be sending."""
        # Its beats go on as well, and each would renew the lease that is waited for.
        worker.replaced = True
        while (left := worker.lease_until - self._clock()) > 0:
            await self._sleep(left)
