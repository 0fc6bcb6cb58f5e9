"""Pairs as numbers while tables are made, and their names again in the files.

A pair's number is its place among all, sorted by task and id; a cluster's its place among the
sorted names. So numbers sort as the names do, every table is the same, and a million pairs need a
few bytes each where names need a hundred. Names of which there are few, as tasks, are enumerated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.leaks import LEAK_COLUMNS
from judgebias.summary.settle import PAIR_COLUMNS
from judgebias.tone import DENSITY_COLUMNS

_KEY: Final = ("task", "pair_id")
_FEW: Final = (("task",), ("model_a", "model_b"), ("gold",))
"""Columns of few names, those together that have the same ones."""
Ints = npt.NDArray[np.int64]
_CARRIED: Final = (*_KEY, *PAIR_COLUMNS, *DENSITY_COLUMNS, *LEAK_COLUMNS)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedPairs:
    """Pairs by number."""

    pairs: pl.DataFrame
    """One row per pair, row n of pair n: task, the numbers in `pair_id` and `cluster`, and what
    tables need."""
    numbers: pl.Series
    """The number of each pair in the order given."""
    names: pl.Series
    """Number -> pair_id."""
    clusters: pl.Series
    """Number -> cluster."""

    @classmethod
    def of(cls, pairs: pl.LazyFrame) -> CodedPairs:
        """Number pairs, and their clusters.

        Parameters
        ----------
        pairs
            task, pair_id and, of the columns that tables need, those there are: one row per pair.
        """
        there = pairs.collect_schema().names()
        few = [_enumerated(pairs, names) for names in _FEW if set(names) <= set(there)]
        kept = [name for name in _CARRIED if name in there and name not in chain(*_FEW)]
        frame = pairs.select(*few, *kept).collect()
        order = _order(frame)
        cluster, clusters = _by_name(frame["cluster"])
        rows = frame.drop("pair_id").with_columns(cluster=cluster)[order]
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        return cls(
            pairs=rows.with_columns(pair_id=pl.int_range(pl.len(), dtype=pl.Int64)),
            numbers=pl.Series("pair_id", numbers),
            names=frame["pair_id"].gather(order),
            clusters=clusters,
        )

    def named(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Put names in the place of numbers."""
        found = {"pair_id": self.names, "cluster": self.clusters}
        return rows.with_columns(
            names.gather(rows[column]).alias(column)
            for column, names in found.items()
            if column in rows.columns
        )


def _enumerated(pairs: pl.LazyFrame, columns: Sequence[str]) -> pl.Expr:
    """Enumerate the names of columns in their order, so that they sort as they did."""
    known = pl.concat([pairs.select(name=column).drop_nulls().unique() for column in columns])
    return pl.col(columns).cast(pl.Enum(known.unique().sort("name").collect()["name"]))


def _order(pairs: pl.DataFrame) -> Ints:
    """Give the rows in the order of task and id: by id, then by task with equal ones as they are.

    One text column and then small numbers are sorted in a tenth of the time of both together.
    """
    by_id = pairs["pair_id"].arg_sort().to_numpy()
    task = pairs["task"].to_physical().to_numpy()
    return by_id[np.argsort(task[by_id], kind="stable")].astype(np.int64)


def _by_name(clusters: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Number clusters by their place among the sorted names, and give these."""
    known = clusters.is_not_null().arg_true()
    names = clusters.gather(known)
    order = names.arg_sort()
    ordered = names.gather(order)
    begins = (ordered != ordered.shift()).fill_null(value=True)
    numbers = np.empty(len(order), np.int64)
    numbers[order.to_numpy()] = np.cumsum(begins.to_numpy()) - 1
    none = pl.repeat(None, len(clusters), dtype=pl.Int64, eager=True)
    return none.scatter(known, numbers), ordered.filter(begins)
