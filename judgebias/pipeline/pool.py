"""How many workers a run starts with, and how many it may grow to as nodes join."""

from __future__ import annotations

from dataclasses import dataclass

from judgebias.config.run import Engine
from judgebias.pipeline.place import runs_here

LOCAL_CPUS = 0.5
"""A worker mostly waits; whole CPUs would leave none for the rest of the job."""
CLUSTER_CPUS = 0.9
"""One worker per CPU: a pool that grows takes all that the cluster has."""
MOST = 64
"""Workers that a pool grows to on a cluster that is smaller at the start: turns are made for all
of them beforehand."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Bounds of the worker pool."""

    least: int
    first: int
    """Workers to start with."""
    most: int
    cpus: float
    """Of the cluster, per worker."""


def pool_of(engine: Engine, cpus: int, blocks: int) -> Pool:
    """Size the pool: one worker per CPU at most, and no more than the blocks need."""
    if runs_here(engine.address):
        workers = min(engine.workers or cpus, blocks)
        return Pool(least=workers, first=workers, most=workers, cpus=LOCAL_CPUS)
    # Least = 1: what a lost node takes along is started again only where there is room.
    most = min(engine.workers or max(cpus, MOST), blocks)
    return Pool(least=1, first=min(cpus, most), most=most, cpus=CLUSTER_CPUS)
