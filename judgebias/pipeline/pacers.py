"""The pacers of a run: a named actor per limit group, beside the driver."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from secrets import token_hex
from typing import Any

import ray
from ray.exceptions import RayActorError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from judgebias.pace.gate import PacerGone
from judgebias.pace.lease import Lease, Report
from judgebias.pace.limits import Group, Limits
from judgebias.pace.pacer import Pacer


class PacerActor:
    """Holds the mind of one limit group; Ray restarts it, and it starts anew."""

    def __init__(self, limits: Limits) -> None:
        reborn = bool(ray.get_runtime_context().was_current_actor_reconstructed)
        self._pacer = Pacer(limits, token_hex(4), time.monotonic, reborn=reborn)

    async def exchange(self, report: Report) -> Lease:
        """See `Pacer.exchange`."""
        return self._pacer.exchange(report)


class PacerHandle:
    """Travels to every worker; holds the actor's handle and nothing else."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    @classmethod
    def start(cls, group: Group, run: str) -> PacerHandle:
        """Start a pacer beside the driver; it takes no CPU of the cluster."""
        here = ray.get_runtime_context().get_node_id()
        actor_class: Any = ray.remote(PacerActor)
        named = hashlib.blake2b(group.name.encode(), digest_size=6).hexdigest()
        options = actor_class.options(
            name=f"judgebias-pacer-{run}-{named}",
            num_cpus=0,
            max_restarts=-1,
            max_task_retries=0,
            # Ray keeps a record of every call, and this actor is called many times a second.
            enable_task_events=False,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=here, soft=False),
        )
        return cls(options.remote(group.limits))

    async def exchange(self, report: Report) -> Lease:
        """See `Pacer.exchange`.

        Raises
        ------
        PacerGone
            When the actor's process has ended; a new one is on its way.
        """
        try:
            return await self._actor.exchange.remote(report)
        except RayActorError as error:
            raise PacerGone from error

    def close(self) -> None:
        """End the actor: a Ray that was connected before the run outlives it."""
        ray.kill(self._actor)


def start_pacers(groups: Iterable[Group]) -> Mapping[str, PacerHandle]:
    """Start a pacer for each group, by the group's name."""
    run = token_hex(4)
    return {group.name: PacerHandle.start(group, run) for group in groups}
