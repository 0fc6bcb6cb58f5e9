"""Clusters as numbers, and counts that keep pairs of a cluster together.

A pair without a cluster is its own; its repeats share it. `cluster_id` is null where a pair stands
alone, so that ten million lone pairs need no ten million groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from judgebias.stats.profiles import IntArray

LABELS: Final = {"A": 1, "B": 2, "tie": 3}
"""A label as a small number; 0 is no label."""
_PAIR: Final = ("task", "pair_id")


def with_cluster_id(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `cluster_id` to a frame with task, pair_id, repeat and cluster.

    The numbers follow the sorted names, so they do not depend on the order of the rows; clusters
    that are numbers already stay as they are.
    """
    result = frame.with_columns(_numbers(frame["cluster"]).alias("cluster_id"))
    if frame["repeat"].n_unique() < 2:
        return result
    largest = result["cluster_id"].max()
    lone = frame.filter(pl.col("cluster").is_null()).select(_PAIR).unique().sort(_PAIR)
    lone = lone.with_row_index("lone_id", offset=largest + 1 if isinstance(largest, int) else 0)
    joined = result.join(lone, on=_PAIR, how="left", maintain_order="left")
    own = pl.when(pl.col("cluster").is_null()).then(pl.col("lone_id").cast(pl.Int64))
    return joined.with_columns(pl.coalesce("cluster_id", own).alias("cluster_id")).drop("lone_id")


def _numbers(clusters: pl.Series) -> pl.Series:
    if clusters.dtype.is_integer():
        return clusters.cast(pl.Int64)
    words = clusters.cast(pl.String)
    return words.cast(pl.Enum(words.drop_nulls().unique().sort())).to_physical().cast(pl.Int64)


def label_number(column: str | pl.Expr) -> pl.Expr:
    """Turn A, B, tie or null into 1, 2, 3 or 0."""
    words = pl.col(column) if isinstance(column, str) else column
    return words.cast(pl.String).replace_strict(LABELS, default=0, return_dtype=pl.Int8)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """Clusters by the pairs of each kind that they hold."""

    counts: IntArray
    """(profiles, kinds) pairs."""
    multiplicity: IntArray
    """(profiles,) clusters."""

    @property
    def n(self) -> int:
        """All pairs."""
        return int((self.counts.sum(axis=1) * self.multiplicity).sum())

    @property
    def n_clusters(self) -> int:
        """All clusters."""
        return int(self.multiplicity.sum())


def count_kinds(frame: pl.DataFrame, kind: pl.Expr, kinds: int) -> Counted:
    """Count pairs by cluster and kind, clusters with the same counts together.

    Parameters
    ----------
    frame
        A row per pair, with `cluster_id`.
    kind
        0 to kinds - 1; pairs where it is null are left out.
    kinds
        How many there are.
    """
    coded = frame.select("cluster_id", kind.cast(pl.Int64).alias("kind")).drop_nulls("kind")
    names = [f"kind_{place}" for place in range(kinds)]
    lone = coded.filter(pl.col("cluster_id").is_null()).group_by("kind").len().sort("kind")
    sums = [
        (pl.col("kind") == place).sum().cast(pl.Int64).alias(n) for place, n in enumerate(names)
    ]
    clusters = (
        coded.filter(pl.col("cluster_id").is_not_null())
        .group_by("cluster_id")
        .agg(sums)
        .group_by(names)
        .len()
        .sort(names)
    )
    alone = np.eye(kinds, dtype=np.int64)[lone["kind"].to_numpy()]
    together = clusters.select(names).to_numpy().astype(np.int64).reshape(-1, kinds)
    sizes: Sequence[IntArray] = [
        part["len"].to_numpy().astype(np.int64) for part in (lone, clusters)
    ]
    return Counted(counts=np.concatenate([alone, together]), multiplicity=np.concatenate(sizes))
