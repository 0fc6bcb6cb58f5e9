"""Pairs as numbers while tables are made, and their names again in the files.

A pair's number is its place among all, sorted by task and id; a cluster's is told by the first of
its pairs. So pairs sort as their names do, clusters of a task lie together, and a million pairs
need a few bytes each where names need a hundred. Names of which there are few, as tasks, are
enumerated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

_FEW: Final = (("task",), ("model_a", "model_b"), ("gold",))
"""Columns of few names, those together that have the same ones."""
Ints = npt.NDArray[np.int64]
Namer: TypeAlias = Callable[[pl.DataFrame], pl.DataFrame]
"""Puts the names of pairs and clusters in the place of the numbers in `pair_id` and `cluster`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedPairs:
    """Pairs by number."""

    pairs: pl.DataFrame
    """One row per pair, row n of pair n: task, the numbers in `pair_id` and `cluster`, and the
    other columns of `PAIR_COLUMNS`."""
    numbers: pl.Series
    """The number of each pair in the order given."""
    source: pl.LazyFrame
    """The pairs as they were given; read again where few tables need a column."""

    @classmethod
    def of(cls, pairs: pl.LazyFrame) -> CodedPairs:
        """Number pairs, and their clusters.

        Parameters
        ----------
        pairs
            task, pair_id and `PAIR_COLUMNS`, one row per pair, and whatever is told of them beside.
        """
        few = [_enumerated(pairs, columns) for columns in _FEW]
        frame = pairs.select(*few, "pair_id").collect()
        order = _order(frame)
        rest = pairs.select("len_a", "len_b", "cluster").collect()
        rows = frame.drop("pair_id").hstack(rest.with_columns(_numbered(rest["cluster"], order)))
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        return cls(
            pairs=rows[order].with_columns(pair_id=pl.int_range(pl.len(), dtype=pl.Int64)),
            numbers=pl.Series("pair_id", numbers),
            source=pairs,
        )

    def told(self, columns: Sequence[str]) -> pl.LazyFrame | None:
        """Give columns beside `pair_id` in the order given, None where one is not told."""
        if not set(columns) <= set(self.source.collect_schema().names()):
            return None
        told = [self.numbers.to_frame().lazy(), self.source.select(columns)]
        return pl.concat(told, how="horizontal")

    def names(self) -> Namer:
        """Read the names, and give what puts them in the place of numbers."""
        names = self.source.select("pair_id", "cluster").collect()
        order = np.empty(len(self.numbers), np.int64)
        order[self.numbers.to_numpy()] = np.arange(len(order))

        def named(rows: pl.DataFrame) -> pl.DataFrame:
            places = order[rows["pair_id"].to_numpy()]
            return rows.with_columns(
                names[column].gather(places) for column in names.columns if column in rows.columns
            )

        return named


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


def _numbered(clusters: pl.Series, order: Ints) -> pl.Series:
    """Number clusters by the first of their pairs, so that those of a task lie together."""
    known = clusters.gather(order).is_not_null().arg_true()
    names = clusters.gather(order[known.to_numpy()])
    found = pl.DataFrame({"name": names}).with_row_index("row")
    first = pl.col("row").first().over("name").rank("dense").cast(pl.Int64) - 1
    numbers = found.select(first)["row"]
    none = pl.repeat(None, len(clusters), dtype=pl.Int64, eager=True)
    return none.scatter(order[known.to_numpy()], numbers).alias(clusters.name)
