"""Clusters as numbers, and counts that keep pairs of a cluster together.

A pair without a cluster is its own; its repeats share it. `cluster_id` is null where a pair stands
alone, so that ten million lone pairs need no ten million groups.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from judgebias.summary.clusters import Counted, cluster_numbers, count_vectors

LABELS: Final = {"A": 1, "B": 2, "tie": 3}
"""A label as a small number; 0 is no label."""
_ALONE: Final = -1
"""The cluster of a pair that stands alone."""


def with_cluster_id(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `cluster_id` to a frame with task, pair_id, repeat and cluster; see `cluster_numbers`."""
    return frame.with_columns(cluster_numbers(frame).alias("cluster_id"))


def label_number(column: str | pl.Expr) -> pl.Expr:
    """Turn A, B, tie or null into 1, 2, 3 or 0."""
    words = pl.col(column) if isinstance(column, str) else column
    return words.cast(pl.String).replace_strict(LABELS, default=0, return_dtype=pl.Int8)


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
