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
from secrets import token_hex
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import ray
import uvloop

from judgebias.calls import Call
from judgebias.config import JudgeConfig, WireJudge
from judgebias.crash import crash_point
from judgebias.errors import ConfigError, JudgebiasError, JudgeHalted
from judgebias.journal import JournalWriteError, open_commit, row_of
from judgebias.judges.asker import Asker
from judgebias.judges.judge import Judge
from judgebias.judges.opening import open_any
from judgebias.pace.judge import PacedJudge
from judgebias.pipeline.blocks import Assignment
from judgebias.pipeline.collector import search_rarely
from judgebias.pipeline.files import allow_files
from judgebias.pipeline.gates import Gates
from judgebias.pipeline.handle import OwnerHandle
from judgebias.pipeline.missing import missing_calls
from judgebias.pipeline.nodes import this_node, unseen_run
from judgebias.pipeline.owner import Beat
from judgebias.pipeline.pacers import PacerHandle
from judgebias.pipeline.permit import Lease
from judgebias.pipeline.plan import RunPlan, most_in_flight
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
        search_rarely()
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
        judges = plan.config.judges
        self._gates = Gates(self._name, judges, pacers, self._windows, self._fail)
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
        plan = self._plan
        if fault := await asyncio.to_thread(unseen_run, plan):
            # A journal that nobody reads would be bought for nothing. No error is raised: it would
            # end the dataset, and with it what others have in flight. The owner gives no block now.
            await self._owner.fail(fault)
            return
        self._journal = open_commit(plan.journal, epoch=plan.epoch, worker=self._name)
        self._lease = Lease(
            self._owner, self._name, self._counters, self._journal, self._gates.demand
        )
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
        crash_point("block:before_close")
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
            crash_point("reply:before_record")
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
        gate = self._gates.open(config.name, self._wallet)
        try:
            judge = await asyncio.to_thread(
                open_any,
                config,
                self._plan.base,
                window=most_in_flight(config),
                form=form,
                gate=gate,
            )
        except ConfigError as error:
            # The node joined after the others had been asked whether they have the key.
            raise ConfigError(
                f"{this_node()}: {error.given}", expected=error.expected, do=error.do
            ) from error
        return judge if gate is None or isinstance(judge, Asker) else PacedJudge(judge, gate)

    def _fail(self, fault: str) -> None:
        self._tell(self._owner.fail(fault))

    async def _tell_spending(self) -> None:
        if self._wallet is not None:
            # What lies here while nothing can be asked may be what another worker waits for.
            idle = not any(window.ready and window.size for window in self._windows.values())
            await self._wallet.report(idle=idle)

    async def _tell_form(self, judge: str, *, ended: bool = False) -> None:
        """Share what the first call found out; a block that ended without it lets others try."""
        asker = self._windows[judge].judge
        if judge in self._told or not isinstance(asker, Asker):
            return
        if asker.settled is not None:
            self._told.add(judge)
            crash_point("form:before_settle")
            await self._owner.settle(judge, asker.settled.to_json())
        elif ended:
            await self._owner.settle(judge, None)

    def _counters(self) -> dict[str, dict[str, float]]:
        counters: dict[str, dict[str, float]] = {}
        for judge, window in self._windows.items():
            busy = window.in_flight - self._gates.held(judge)
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
            self._gates.stop()
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
