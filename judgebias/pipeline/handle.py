"""The owner as its callers see it: typed calls to a Ray actor that lives on the driver's node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from judgebias.pace.budget import Grant, Spending
from judgebias.pace.purse import Purse
from judgebias.pipeline.blocks import Assignment, TaskBlock
from judgebias.pipeline.owner import Beat, Demand, RunOwner
from judgebias.progress import Counters, FormData, Progress


class OwnerHandle:
    """Travels to every worker; holds the actor's handle and nothing else."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @classmethod
    def start(
        cls,
        blocks: Iterable[TaskBlock],
        forms: Mapping[str, FormData],
        windows: Mapping[str, int],
        purse: Purse | None,
    ) -> OwnerHandle:
        """Start the owner beside the driver; it takes no CPU of the cluster."""
        here = ray.get_runtime_context().get_node_id()
        actor_class: Any = ray.remote(RunOwner)
        options = actor_class.options(
            num_cpus=0,
            # Ray keeps a record of every call, and this actor is called many times a second.
            enable_task_events=False,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=here, soft=False),
        )
        return cls(options.remote(tuple(blocks), dict(forms), dict(windows), purse))

    async def register(self, worker: str, actor: str) -> None:
        """See `RunOwner.register`."""
        await self._actor.register.remote(worker, actor)

    async def take(self, worker: str) -> Assignment | None:
        """See `RunOwner.take`."""
        return await self._actor.take.remote(worker)

    async def announce(self, worker: str, keys: tuple[bytes, ...]) -> None:
        """See `RunOwner.announce`."""
        await self._actor.announce.remote(worker, keys)

    async def close_block(self, worker: str, assignment: Assignment) -> None:
        """See `RunOwner.close_block`."""
        await self._actor.close_block.remote(worker, assignment)

    async def beat(self, worker: str, counters: Counters, demand: Mapping[str, Demand]) -> Beat:
        """See `RunOwner.beat`."""
        return await self._actor.beat.remote(worker, counters, demand)

    async def reserve(self, worker: str, spending: Spending) -> Grant:
        """See `RunOwner.reserve`."""
        return await self._actor.reserve.remote(worker, spending)

    async def form(self, worker: str, judge: str) -> FormData | None:
        """See `RunOwner.form`."""
        return await self._actor.form.remote(worker, judge)

    async def settle(self, judge: str, form: FormData | None) -> None:
        """See `RunOwner.settle`."""
        await self._actor.settle.remote(judge, form)

    async def halt(self, judge: str, reason: str) -> None:
        """See `RunOwner.halt`."""
        await self._actor.halt.remote(judge, reason)

    def conclude(self, judge: str) -> None:
        """See `RunOwner.conclude`; returns at once."""
        self._actor.conclude.remote(judge)

    async def fail(self, fault: str) -> None:
        """See `RunOwner.fail`."""
        await self._actor.fail.remote(fault)

    def driver_beat(self) -> Progress:
        """See `RunOwner.driver_beat`; waits for the answer."""
        return ray.get(self._actor.driver_beat.remote())

    def close(self) -> None:
        """End the actor: a Ray that was connected before the run outlives it."""
        ray.kill(self._actor)

    def stop(self) -> None:
        """See `RunOwner.stop`; returns at once."""
        self._actor.stop.remote()
