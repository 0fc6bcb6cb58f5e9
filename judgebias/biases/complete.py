"""The complete pairs of each judge x task as columns of numbers, in one fixed order.

Sums of rounded numbers depend on their order, so rows are sorted by their key and clusters are
numbered by their names: the same verdicts give the same bits, whatever order they came in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judgebias.biases.clusters import LABELS, label_number, with_cluster_id
from judgebias.stats.length import log_length_ratio
from judgebias.stats.logistic import FloatArray
from judgebias.stats.profiles import IntArray
from judgebias.summary.profiles import ALL, Group
from judgebias.summary.settle import SLOTS, STATES, in_order, is_complete
from judgebias.verdicts import Slot

BoolArray: TypeAlias = NDArray[np.bool_]

SmallArray: TypeAlias = NDArray[np.int8]

_LEAD: Final = np.zeros(STATES, np.int8)
"""State -> what a call says for the answer that it shows first, in halves."""
_LEAD[[SLOTS[Slot.FIRST], SLOTS[Slot.TIE]]] = 2, 1


@dataclass(frozen=True, kw_only=True, slots=True)
class CompletePairs:
    """Complete pairs whose lengths are known, in the order of their key."""

    n_complete: int
    """Complete pairs, of known lengths or not."""
    len_a: IntArray
    len_b: IntArray
    ab: SmallArray
    """What the call that showed A first says for A, in halves: 2, 1 for a tie, 0."""
    ba: SmallArray
    """The same of the call that showed B first."""
    final: SmallArray
    """1 A, 2 B, 3 tie."""
    gold: SmallArray
    """1 A, 2 B, 3 tie, 0 unknown."""
    cluster: IntArray
    """Number of the cluster; a pair without one has its own."""
    frame: pl.DataFrame
    """The rows themselves, with the columns that were asked for besides."""

    @property
    def log_ratio(self) -> FloatArray:
        """Logarithm of (len_a + 1)/(len_b + 1)."""
        return log_length_ratio(self.len_a, self.len_b)

    @property
    def longer(self) -> SmallArray:
        """1 where A is longer, 2 where B is, 0 where they are equally long."""
        return (self.len_a > self.len_b) + np.int8(2) * (self.len_a < self.len_b)

    @property
    def decided(self) -> BoolArray:
        """Where both orders agree on A or B."""
        return self.final != LABELS["tie"]


def complete_pairs(
    verdicts: pl.LazyFrame, *, extra: tuple[str, ...] = ()
) -> Iterator[tuple[Group, CompletePairs]]:
    """Yield the complete pairs of each judge x task, and of each judge over ALL, ALL last.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, in any order.
    extra
        Further columns to carry along.

    Yields
    ------
    group, pairs
        Every (judge, task) of the verdicts, also one without a complete pair.
    """
    groups = _groups(verdicts)
    for judge, tasks in groups.items():
        mine = verdicts.filter(pl.col("judge").cast(pl.String) == judge, is_complete())
        rows = in_order(mine.select(*_columns(), *extra).collect())
        numbered = with_cluster_id(rows).drop("pair_id", "repeat", "cluster")
        sizes = {str(task): n for task, n in numbered.group_by("task").len().iter_rows()}
        first = 0
        for task in tasks:
            size = sizes.get(task, 0)
            yield (judge, task), _pairs(numbered.slice(first, size))
            first += size
        yield (judge, ALL), _pairs(numbered)


def _groups(verdicts: pl.LazyFrame) -> dict[str, list[str]]:
    names = [pl.col(name).cast(pl.String) for name in ("judge", "task")]
    tasks: dict[str, list[str]] = {}
    for judge, task in verdicts.select(names).unique().collect().sort("judge", "task").iter_rows():
        tasks.setdefault(judge, []).append(task)
    return tasks


def _columns() -> list[pl.Expr | str]:
    return [
        *("task", "pair_id", "cluster", "repeat"),
        *(pl.col(name).cast(pl.Int64) for name in ("len_a", "len_b")),
        *("state_ab", "state_ba"),
        label_number("final").alias("final_label"),
        label_number("gold").alias("gold_label"),
    ]


def _pairs(frame: pl.DataFrame) -> CompletePairs:
    known = frame.drop_nulls(["len_a", "len_b"])

    def numbers(name: str) -> SmallArray:
        return known[name].to_numpy()

    return CompletePairs(
        n_complete=frame.height,
        len_a=known["len_a"].to_numpy(),
        len_b=known["len_b"].to_numpy(),
        ab=_LEAD[numbers("state_ab")],
        ba=2 - _LEAD[numbers("state_ba")],
        final=numbers("final_label"),
        gold=numbers("gold_label"),
        cluster=_cluster_numbers(known),
        frame=known,
    )


def _cluster_numbers(frame: pl.DataFrame) -> IntArray:
    """Give pairs that stand alone numbers of their own: below 0, where no cluster's number is."""
    alone = -1 - pl.int_range(pl.len(), dtype=pl.Int64)
    numbers = frame.select(pl.coalesce("cluster_id", alone).alias("cluster"))["cluster"]
    return numbers.to_numpy().astype(np.int64)
