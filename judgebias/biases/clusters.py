"""Clusters as numbers, and counts that keep pairs of a cluster together.

A pair without a cluster is its own; its repeats share it. `cluster_id` is null where a pair stands
alone, so that ten million lone pairs need no ten million groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from judgebias.stats.profiles import IntArray, dense

LABELS: Final = {"A": 1, "B": 2, "tie": 3}
"""A label as a small number; 0 is no label."""
WORD_BITS: Final = 63
_PAIR: Final = ("task", "pair_id")
_ALONE: Final = -1
"""The cluster of a pair that stands alone."""


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
    coded = frame.select(
        pl.col("cluster_id").fill_null(_ALONE).alias("cluster"),
        kind.cast(pl.Int64).fill_null(kinds).alias("kind"),
    )
    cluster, place = coded["cluster"].to_numpy(), coded["kind"].to_numpy()
    told, alone = place < kinds, cluster == _ALONE
    lone = np.bincount(place[told & alone], minlength=kinds)
    there = np.flatnonzero(lone)
    together = count_vectors(cluster[told & ~alone], place[told & ~alone], kinds)
    return Counted(
        counts=np.concatenate([np.eye(kinds, dtype=np.int64)[there], together.counts]),
        multiplicity=np.concatenate([lone[there], together.multiplicity]),
    )


def count_vectors(cluster: IntArray, kind: IntArray, kinds: int) -> Counted:
    """Count by cluster and kind; clusters with the same counts are one profile, in sorted order.

    A cluster's counts travel packed into 64-bit words, with as many bits for a count as the largest
    cluster needs: sums of words are then sums of vectors, exactly.

    Parameters
    ----------
    cluster, kind
        (pairs,) whole numbers, kinds from 0 to `kinds` - 1.
    """
    places, n_clusters = dense(cluster)
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
    counts = np.column_stack(columns).astype(np.int64)
    order = np.lexsort(counts.T[::-1])
    return Counted(
        counts=counts[order], multiplicity=alike["len"].to_numpy().astype(np.int64)[order]
    )
