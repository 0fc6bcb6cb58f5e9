"""Clusters of pairs as numbers, and counts and sums over them, clusters with equal ones together.

A pair without a cluster is its own; its repeats share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import polars as pl

from judgebias.stats.profiles import IntArray, dense

ALL: Final = "ALL"
"""The name of the row over all tasks; no task may have it."""
Group: TypeAlias = tuple[str, str]
"""(judge, task)"""
WORD_BITS: Final = 63
_PAIR: Final = ("task", "pair_id")


def cluster_numbers(frame: pl.DataFrame) -> pl.Series:
    """Number the clusters of a frame with task, pair_id, repeat and cluster.

    The numbers follow the sorted names, so they do not depend on the order of the rows; clusters
    that are numbers already stay as they are. Null where a pair stands alone, so that ten million
    lone pairs need no ten million groups.
    """
    numbers = _numbers(frame["cluster"])
    if numbers.null_count() == 0 or frame["repeat"].min() == frame["repeat"].max():
        return numbers
    largest = numbers.max()
    alone = frame.filter(numbers.is_null()).select(_PAIR).unique().sort(_PAIR)
    above = int(largest) + 1 if isinstance(largest, int) else 0
    pairs = alone.with_row_index("number", offset=above)
    own = frame.select(_PAIR).join(pairs, on=_PAIR, how="left", maintain_order="left")["number"]
    return numbers.fill_null(own.cast(pl.Int64))


def _numbers(clusters: pl.Series) -> pl.Series:
    if clusters.dtype.is_integer():
        return clusters.cast(pl.Int64)
    words = clusters.cast(pl.String)
    return words.cast(pl.Enum(words.drop_nulls().unique().sort())).to_physical().cast(pl.Int64)


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


def count_vectors(cluster: IntArray, kind: IntArray, kinds: int) -> Counted:
    """Count by cluster and kind; clusters with the same counts are one profile, in sorted order.

    Parameters
    ----------
    cluster, kind
        (pairs,) whole numbers, kinds from 0 to `kinds` - 1.
    """
    places, _ = dense(cluster)
    size = np.bincount(places, minlength=1)[places]
    # Most clusters hold one pair or two, which are told by their kinds alone.
    one, two, more = size == 1, size == 2, size > 2
    parts = [
        _ones(kind[one], kinds),
        _twos(places[two], kind[two], kinds),
        _several(*dense(places[more]), kind[more], kinds),
    ]
    counts, multiplicity = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort(counts.T[::-1])
    return Counted(counts=counts[order], multiplicity=multiplicity[order])


def _ones(kind: IntArray, kinds: int) -> tuple[IntArray, IntArray]:
    """Count clusters of one pair."""
    clusters = np.bincount(kind, minlength=kinds)
    met = np.flatnonzero(clusters)
    return np.eye(kinds, dtype=np.int64)[met], clusters[met]


def _twos(places: IntArray, kind: IntArray, kinds: int) -> tuple[IntArray, IntArray]:
    """Count clusters of two pairs."""
    both = kind[np.argsort(places, kind="stable")].reshape(-1, 2).astype(np.int64)
    clusters = np.bincount(both.min(axis=1) * kinds + both.max(axis=1), minlength=kinds**2)
    met = np.flatnonzero(clusters)
    unit = np.eye(kinds, dtype=np.int64)
    return unit[met // kinds] + unit[met % kinds], clusters[met]


def _several(
    places: IntArray, n_clusters: int, kind: IntArray, kinds: int
) -> tuple[IntArray, IntArray]:
    """Count as `count_vectors` does; the profiles are in no particular order.

    A cluster's counts travel packed into 64-bit words, with as many bits for a count as the largest
    cluster needs: sums of words are then sums of vectors, exactly.
    """
    largest = int(np.bincount(places, minlength=1).max())
    bits = largest.bit_length() or 1
    per_word = WORD_BITS // bits
    words = [np.zeros(n_clusters, np.int64) for _ in range(-(-kinds // per_word))]
    for number, word in enumerate(words):
        shift = (kind - number * per_word) * bits
        unit = np.where((shift >= 0) & (shift < per_word * bits), 1 << (shift % 64), 0)
        np.add.at(word, places, unit)
    names = [f"word_{number}" for number in range(len(words))]
    alike = pl.DataFrame(words, schema=dict.fromkeys(names, pl.Int64)).group_by(names).len()
    mask = (1 << bits) - 1
    columns = [
        (alike[names[k // per_word]].to_numpy() >> ((k % per_word) * bits)) & mask
        for k in range(kinds)
    ]
    return np.column_stack(columns).astype(np.int64), alike["len"].to_numpy().astype(np.int64)


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
    pairs = pairs.with_columns(pl.col("task").cast(pl.String))
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
