"""The run itself: turns out to Ray's workers, the owner beside them, the main thread watching."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from types import FrameType

import ray
import ray.data
from ray.data import ActorPoolStrategy
from ray.exceptions import RayError

from judgebias.config import JudgeConfig
from judgebias.errors import RayLost
from judgebias.pace.limits import Group, groups_of
from judgebias.pace.purse import Purse
from judgebias.pipeline.blocks import OPEN
from judgebias.pipeline.cluster import connected
from judgebias.pipeline.handle import OwnerHandle
from judgebias.pipeline.health import Health
from judgebias.pipeline.nodes import check_nodes
from judgebias.pipeline.pacers import PacerHandle, start_pacers
from judgebias.pipeline.plan import window_of
from judgebias.pipeline.pool import Pool, pool_of
from judgebias.pipeline.ready import Ready
from judgebias.pipeline.spent import bounded, spent_so_far
from judgebias.pipeline.stopping import StopWatch
from judgebias.pipeline.worker import Worker
from judgebias.progress import Progress, RunEnd

WATCH_S = 0.25
WAITING = 3
"""Turns that wait in each worker for a block to be closed: Ray takes long to bring another one, and
a judge that answers at once would stand still meanwhile."""
LAST_TURNS_S = 10.0
"""Seconds for the last turns to come back once no block is left; a turn in the hands of an actor
that finds no node to be restarted on would never come back."""


def ask_missing(ready: Ready, watch: Callable[[Progress], None]) -> RunEnd:
    """Ask every missing call on Ray; `watch` sees the progress a few times a second."""
    engine = ready.plan.config.engine
    end = RunEnd()
    shared = ready.done.nbytes
    with connected(engine.address, workers=engine.workers, shared_bytes=shared) as cpus:
        windows = {name: window_of(judge) for name, judge in _judges(ready).items()}
        check_nodes(ready)
        owner = OwnerHandle.start(ready.blocks, ready.plan.forms, windows, _purse(ready))
        pacers = start_pacers(_groups(ready))
        pool = pool_of(engine, cpus, len(ready.blocks))
        turns = _Turns(ready, owner, pool, pacers)
        health = Health()
        rule = StopWatch(ready.plan, ready.survey, _asked(ready), owner.conclude)
        with _interrupts(owner.stop) as interrupted, closing(health), rule.watching():
            turns.start()
            _follow(turns, owner, health, end, watch)
        end.interrupted, end.concluded = interrupted.is_set(), rule.concluded
        owner.close()
        for pacer in pacers.values():
            pacer.close()
    # What the owner knows says more than what became of the dataset.
    if turns.error is not None and not end.fault:
        raise turns.error
    end.asked, end.pending = turns.asked, sum(ready.missing.values()) - turns.asked
    return end


def _follow(
    turns: _Turns,
    owner: OwnerHandle,
    health: Health,
    end: RunEnd,
    watch: Callable[[Progress], None],
) -> None:
    """Watch until the last turn is used, and keep the workers' leases alive by doing so.

    Raises
    ------
    RayLost
        When the owner cannot be reached, or Ray itself is gone.
    """
    try:
        leave = math.inf
        while turns.is_alive() and time.monotonic() < leave:
            health.check()
            progress = owner.driver_beat()
            _see(progress, end, watch)
            if progress.over:
                leave = min(leave, time.monotonic() + LAST_TURNS_S)
            turns.join(WATCH_S)
        _see(owner.driver_beat(), end, watch)
    except RayError as error:
        raise RayLost(
            f"the Ray cluster was lost: {type(error).__name__}",
            do="start Ray again; the same command goes on from here",
        ) from error


def _groups(ready: Ready) -> list[Group]:
    """Find the limit groups of the judges that have something to ask."""
    groups = groups_of(ready.plan.config.judges)
    return [group for group in groups if any(ready.missing.get(name) for name in group.judges)]


def _asked(ready: Ready) -> list[str]:
    return [name for name, calls in ready.missing.items() if calls]


def _purse(ready: Ready) -> Purse | None:
    budget = ready.plan.config.budget
    return Purse(budget, spent_so_far(ready)) if bounded(budget) else None


def _judges(ready: Ready) -> dict[str, JudgeConfig]:
    return {judge.name: judge for judge in ready.plan.config.judges}


class _Turns(threading.Thread):
    """Consumes the dataset, so that the main thread stays free for signals and progress."""

    def __init__(
        self, ready: Ready, owner: OwnerHandle, pool: Pool, pacers: Mapping[str, PacerHandle]
    ) -> None:
        super().__init__(name="turns", daemon=True)
        self.asked = 0
        self.error: Exception | None = None
        self._dataset = _dataset(ready, owner, pool, pacers)

    def run(self) -> None:
        try:
            for row in self._dataset.iter_rows():
                self.asked += int(row["asked"])
        except Exception as error:  # noqa: BLE001 - carried to the main thread, raised there
            self.error = error


def _dataset(
    ready: Ready, owner: OwnerHandle, pool: Pool, pacers: Mapping[str, PacerHandle]
) -> ray.data.Dataset:
    """Make a turn per block that has something to ask; who gets a turn takes the next block."""
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    at_once = max(OPEN, 2 * len(ready.missing)) + WAITING
    # More turns than blocks: a turn that waits in a worker which can do nothing is one too few.
    turns = [{"turn": number} for number in range(len(ready.blocks) + pool.most * at_once)]
    context.autoscaling_config.actor_pool_util_upscaling_threshold = 1.0
    actors = ActorPoolStrategy(
        min_size=pool.least,
        max_size=pool.most,
        initial_size=pool.first,
        max_tasks_in_flight_per_actor=at_once,
        max_concurrent_calls_per_actor=at_once,
        enable_true_multi_threading=True,
    )
    dataset = ray.data.from_items(turns, override_num_blocks=len(turns))
    return dataset.map_batches(
        Worker,
        fn_constructor_args=(
            ready.plan,
            owner,
            [ray.put(ready.done), ray.put(dict(ready.tried))],
            pacers,
        ),
        batch_size=None,
        num_cpus=pool.cpus,
        compute=actors,
    )


def _see(progress: Progress, end: RunEnd, watch: Callable[[Progress], None]) -> None:
    end.halted, end.fault, end.forms = progress.halted, progress.fault, progress.forms
    end.budget_spent, end.budget = progress.budget_spent, progress.budget
    watch(progress)


@contextmanager
def _interrupts(stop: Callable[[], object]) -> Generator[threading.Event]:
    """Turn the first SIGINT or SIGTERM into a stop, and the second into leaving at once."""
    seen = threading.Event()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if seen.is_set():
            # Nothing is torn: replies are on disk or in a worker that stops with its lease.
            os._exit(130)
        seen.set()
        stop()

    # After ray.init: Ray puts its own handlers in place when it starts.
    handlers = {signal.SIGINT: handle, signal.SIGTERM: handle, signal.SIGHUP: signal.SIG_IGN}
    # A closed terminal (SIGHUP) is no reason to stop what has been paid for.
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
