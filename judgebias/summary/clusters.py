"""Sums of whole numbers over the clusters of pairs, clusters with equal sums together.

For figures that need a few sums per cluster and not its joint outcomes, which are in `profiles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from judgebias.stats.profiles import IntArray
from judgebias.summary.profiles import ALL, Group


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterSums:
    """The clusters of one judge x task: distinct sums and how many clusters have them."""

    sums: dict[str, IntArray]
    """Name -> (K,) sum over the pairs of a cluster of each profile."""
    multiplicity: IntArray
    """(K,) clusters with each profile."""

    @property
    def n_clusters(self) -> int:
        """All clusters."""
        return int(self.multiplicity.sum())

    def total(self, name: str) -> int:
        """The same sum over all clusters."""
        return int(self.sums[name] @ self.multiplicity)


def cluster_sums(pairs: pl.DataFrame, values: Sequence[str]) -> dict[Group, ClusterSums]:
    """Sum values over clusters, per (judge, task) and per (judge, ALL).

    Parameters
    ----------
    pairs
        judge, task, cluster (null: the pair is its own) and the values: one row per pair.
    values
        Columns of whole numbers.
    """
    total = pairs.with_columns(task=pl.lit(ALL))
    counted = pl.concat([_collapsed(part, values) for part in (pairs, total)])
    groups = counted.sort("judge", "task", *values).partition_by(
        "judge", "task", as_dict=True, include_key=False
    )
    return {(str(key[0]), str(key[1])): _sums_of(part, values) for key, part in groups.items()}


def _collapsed(pairs: pl.DataFrame, values: Sequence[str]) -> pl.DataFrame:
    alone = pl.col("cluster").is_null()
    together = (
        pairs.filter(~alone)
        .group_by("judge", "task", "cluster")
        .agg(pl.col(values).cast(pl.Int64).sum())
        .select("judge", "task", *values)
    )
    lone = pairs.filter(alone).select("judge", "task", pl.col(values).cast(pl.Int64))
    return (
        pl.concat([together, lone])
        .group_by("judge", "task", *values)
        .agg(pl.len().cast(pl.Int64).alias("multiplicity"))
    )


def _sums_of(part: pl.DataFrame, values: Sequence[str]) -> ClusterSums:
    return ClusterSums(
        sums={name: part[name].to_numpy() for name in values},
        multiplicity=part["multiplicity"].to_numpy(),
    )
