"""The callable class that Ray runs: one per worker process, with its judges and its journal.

Ray Data gives a worker *turns*; for each turn it takes the next block from the run's owner, asks
the block's judge what is missing, waits until every reply is on disk, and returns one small row.
Ray's threads only wait: all work happens on one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import ray
import uvloop

from judgebias.calls import Call
from judgebias.config import JudgeConfig, WireJudge
from judgebias.errors import JudgebiasError, JudgeHalted
from judgebias.journal import GroupCommit, JournalWriteError, Segment, row_of
from judgebias.judges.asker import Asker
from judgebias.judges.judge import Judge
from judgebias.judges.opening import open_any
from judgebias.pace.gate import Bought, PacedGate
from judgebias.pace.judge import PacedJudge
from judgebias.pace.limits import group_by_judge, groups_of
from judgebias.pipeline.blocks import Assignment
from judgebias.pipeline.files import allow_files
from judgebias.pipeline.handle import OwnerHandle
from judgebias.pipeline.missing import missing_calls
from judgebias.pipeline.owner import Beat, Demand
from judgebias.pipeline.pacers import PacerHandle
from judgebias.pipeline.permit import Lease
from judgebias.pipeline.plan import RunPlan, is_learned, most_in_flight
from judgebias.pipeline.spent import open_wallet
from judgebias.pipeline.suspects import groups, lethal_reply
from judgebias.pipeline.window import Window
from judgebias.replies import Reply

FAREWELL_S = 5.0

T = TypeVar("T")
Columns = dict[str, npt.NDArray[Any]]


class Worker:
    """Asks blocks of calls; made once per Ray actor."""

    def __init__(
        self,
        plan: RunPlan,
        owner: OwnerHandle,
        shared: list[Any],
        pacers: Mapping[str, PacerHandle],
    ) -> None:
        allow_files()
        context = ray.get_runtime_context()
        self._plan = plan
        self._owner = owner
        self._done: npt.NDArray[np.uint64] = ray.get(shared[0])
        self._tried: dict[bytes, int] = ray.get(shared[1])
        # Process ids come round again; segments are named by worker.
        self._name = f"{context.get_node_id()[:8]}-{os.getpid()}-{token_hex(2)}"
        self._counts: dict[str, defaultdict[str, float]] = {}
        self._windows: dict[str, Window] = {}
        # One per judge: a judge whose first call takes long keeps no other from opening.
        self._opening: dict[str, asyncio.Lock] = {}
        self._pacers = pacers
        self._groups = group_by_judge(groups_of(plan.config.judges))
        self._gates: dict[str, PacedGate] = {}
        self._keeping: set[asyncio.Task[None]] = set()
        self._grace: asyncio.TimerHandle | None = None
        self._told: set[str] = set()
        self._messages: set[asyncio.Task[None]] = set()
        self._loop = uvloop.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="judges", daemon=True).start()
        self._run(self._start(context.get_actor_id()))

    def __call__(self, _turns: Columns) -> Columns:
        """Use one turn; the block's counts come back as one row."""
        asked, pending = self._run(self._turn())
        return {
            "asked": np.array([asked], dtype=np.int64),
            "pending": np.array([pending], dtype=np.int64),
        }

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _start(self, actor: str | None) -> None:
        await self._owner.register(self._name, actor or self._name)
        folder = Path(self._plan.journal)
        segment = Segment.create(folder, epoch=self._plan.epoch, worker=self._name)
        self._journal = GroupCommit(segment)
        self._lease = Lease(self._owner, self._name, self._counters, self._journal, self._demand)
        self._wallet = open_wallet(self._plan, partial(self._owner.reserve, self._name))
        self._beats = asyncio.create_task(self._lease.keep(self._heed))

    async def _turn(self) -> tuple[int, int]:
        assignment = await self._owner.take(self._name)
        if assignment is None:
            return 0, 0
        try:
            tally = await self._ask_block(assignment)
        except JudgebiasError as error:
            # The input changed or the disk is full: a matter for the whole run, not for Ray.
            await self._owner.fail(str(error))
            await self._keep_trying()
            return 0, assignment.block.n_calls
        await self._owner.close_block(self._name, assignment)
        return tally

    async def _keep_trying(self) -> None:
        """Try to write down what was received, as long as a stop may take: room may be made."""
        until = self._loop.time() + self._plan.config.engine.grace_s
        while self._journal.error is not None and self._loop.time() < until:
            await asyncio.sleep(1)
            try:
                await self._journal.flush()
            except JournalWriteError:
                continue

    async def _ask_block(self, assignment: Assignment) -> tuple[int, int]:
        judge = assignment.block.judge
        window = await self._window(judge)
        calls = await asyncio.to_thread(
            missing_calls, self._plan, assignment, self._done, self._tried
        )
        pending = await self._ask(assignment, calls, window)
        await self._tell_spending()
        await self._tell_form(judge, ended=True)
        return len(calls) - pending, pending

    async def _ask(self, assignment: Assignment, calls: list[Call], window: Window) -> int:
        """Ask the calls; every reply is on disk when this returns how many stay pending."""
        judge, care = assignment.block.judge, assignment.care
        record = self._recorder(judge)
        if care is None:
            pending = await window.ask(calls, record)
            await self._journal.durable()
            return pending
        pending = 0
        for call in calls:
            if deaths := care.lethal.get(call.key):
                record(call, lethal_reply(self._config(judge), deaths))
        for group in groups([call for call in calls if call.key not in care.lethal], care):
            await self._owner.announce(self._name, tuple(call.key for call in group))
            pending += await window.ask(group, record)
            await self._journal.durable()
        await self._journal.durable()
        return pending

    def _recorder(self, judge: str) -> Callable[[Call, Reply], None]:
        fingerprint = self._plan.fingerprints[judge].hex()
        keep_raw, counts = self._plan.config.keep_raw, self._counts[judge]

        def record(call: Call, reply: Reply) -> None:
            if reply.raw is not None and not keep_raw:
                reply = replace(reply, raw=None)
            digest = call.digest
            self._journal.record(
                row_of(call, reply, digest=digest, judge=judge, fingerprint=fingerprint)
            )
            counts["verdicts" if reply.failure is None else reply.failure] += 1
            counts["cost_usd"] += reply.cost_usd or 0.0

        return record

    async def _window(self, judge: str) -> Window:
        async with self._opening.setdefault(judge, asyncio.Lock()):
            if judge not in self._windows:
                config = self._config(judge)
                self._counts[judge] = defaultdict(float)
                self._windows[judge] = Window(
                    judge=await self._open(config),
                    permit=self._lease,
                    size=0,
                    on_halt=lambda reason: self._halt(judge, reason),
                    name=judge,
                    wallet=self._wallet,
                    on_short=self._lease.soon,
                )
        return self._windows[judge]

    def _config(self, judge: str) -> JudgeConfig:
        return next(config for config in self._plan.config.judges if config.name == judge)

    async def _open(self, config: JudgeConfig) -> Judge:
        form = None
        if isinstance(config, WireJudge):
            form = await self._owner.form(self._name, config.name)
        gate = self._gate(config.name)
        judge = await asyncio.to_thread(
            open_any,
            config,
            self._plan.base,
            window=most_in_flight(config),
            form=form,
            gate=self._bought(config.name, gate),
        )
        return judge if gate is None or isinstance(judge, Asker) else PacedJudge(judge, gate)

    def _gate(self, judge: str) -> PacedGate | None:
        """Find the gate of a judge's limit group, or make it; a judge without one has no gate."""
        if (group := self._groups.get(judge)) is None:
            return None
        if group.name not in self._gates:
            exchange = self._pacers[group.name].exchange
            busy = partial(self._under_way, group.judges)
            gate = PacedGate(self._name, exchange, busy, paced=group.limits.known)
            self._gates[group.name] = gate
            keeping = asyncio.get_running_loop().create_task(gate.keep())
            keeping.add_done_callback(self._gate_ended)
            self._keeping.add(keeping)
        return self._gates[group.name]

    def _gate_ended(self, keeping: asyncio.Task[None]) -> None:
        """Stop the run rather than wait for slots that nobody asks for any more."""
        if not keeping.cancelled() and (fault := keeping.exception()) is not None:
            self._tell(self._owner.fail(f"the pace of a limit group failed: {fault!r}"))

    def _bought(self, judge: str, gate: PacedGate | None) -> PacedGate | Bought | None:
        if gate is None or self._wallet is None:
            return gate
        return Bought(gate, partial(self._wallet.again, judge))

    def _under_way(self, judges: tuple[str, ...]) -> int:
        return sum(self._windows[judge].in_flight for judge in judges if judge in self._windows)

    def _held(self, judge: str) -> int:
        """Count the calls that wait at the gate of a judge that shares it with no other."""
        group = self._groups.get(judge)
        alone = group is not None and len(group.judges) == 1 and group.name in self._gates
        return self._gates[group.name].waiting if group is not None and alone else 0

    def _demand(self) -> dict[str, Demand]:
        """Say what this worker could use of each window."""
        return {
            name: Demand(busy=window.in_flight, waiting=window.waiting, window=self._learned(name))
            for name, window in self._windows.items()
        }

    def _learned(self, judge: str) -> int:
        """Give a judge's part of its group's window, where that is learned."""
        if not is_learned(self._config(judge)):
            return 0
        group = self._groups[judge]
        window = self._gates[group.name].window
        return max(1, window // len(group.judges)) if window else 0

    async def _tell_spending(self) -> None:
        if self._wallet is not None:
            idle = not any(window.waiting for window in self._windows.values())
            await self._wallet.report(idle=idle)

    async def _tell_form(self, judge: str, *, ended: bool = False) -> None:
        """Share what the first call found out; a block that ended without it lets others try."""
        asker = self._windows[judge].judge
        if judge in self._told or not isinstance(asker, Asker):
            return
        if asker.settled is not None:
            self._told.add(judge)
            await self._owner.settle(judge, asker.settled.to_json())
        elif ended:
            await self._owner.settle(judge, None)

    def _counters(self) -> dict[str, dict[str, float]]:
        counters: dict[str, dict[str, float]] = {}
        for judge, window in self._windows.items():
            busy = window.in_flight - self._held(judge)
            counters[judge] = {**self._counts[judge], "in_flight": busy}
        return counters

    def _heed(self, beat: Beat) -> None:
        """Follow what the owner says: shares, halted judges, and the end."""
        if beat.buried:
            self._tell(self._die())
            return
        for judge in self._plan.config.judges:
            if (window := self._windows.get(judge.name)) is None:
                continue
            window.halted = window.halted or judge.name in beat.halted
            window.resize(beat.windows.get(judge.name, 0))
            self._tell(self._tell_form(judge.name))
        self._tell(self._tell_spending())
        if beat.stopping and not self._grace:
            for gate in self._gates.values():
                gate.stop()
            self._grace = asyncio.get_running_loop().call_later(
                self._plan.config.engine.grace_s, self._give_up
            )

    async def _die(self) -> None:
        """End this process: its blocks are with another one, and Ray starts a new one for it."""
        with contextlib.suppress(TimeoutError, JournalWriteError):
            # What has arrived is kept, even if it has been asked for again meanwhile.
            async with asyncio.timeout(FAREWELL_S):
                await self._journal.flush()
        os._exit(1)

    def _give_up(self) -> None:
        for window in self._windows.values():
            window.cancel()

    def _halt(self, judge: str, reason: JudgeHalted) -> None:
        self._tell(self._owner.halt(judge, str(reason)))

    def _tell(self, message: Coroutine[Any, Any, None]) -> None:
        """Send a message to the owner without waiting for it."""
        task = asyncio.get_running_loop().create_task(message)
        self._messages.add(task)
        task.add_done_callback(self._messages.discard)
