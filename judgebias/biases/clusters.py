"""Clusters as numbers, and counts that keep pairs of a cluster together.

A pair without a cluster is its own; its repeats share it. `cluster_id` is null where a pair stands
alone, so that ten million lone pairs need no ten million groups.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from judgebias.stats.comparisons import NONE
from judgebias.summary.clusters import Counted, cluster_numbers, count_vectors
from judgebias.summary.words import place_of
from judgebias.verdicts import Slot, Winner

LABELS: Final = {str(label): place for place, label in enumerate(Winner, start=1)}
"""A label as a small number; 0 is no label."""
_ALONE: Final = -1
"""The cluster of a pair that stands alone."""


def with_cluster_id(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `cluster_id` to a frame with task, pair_id, repeat and cluster; see `cluster_numbers`."""
    return frame.with_columns(cluster_numbers(frame).alias("cluster_id"))


def label_number(column: str | pl.Expr) -> pl.Expr:
    """Turn A, B, tie or null into 1, 2, 3 or 0."""
    return (place_of(column, Winner) + 1).fill_null(0)


def slot_number(column: str) -> pl.Expr:
    """Turn first, second, tie or null into the numbers of `stats.comparisons`."""
    return place_of(column, Slot).fill_null(NONE)


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
