"""Pairs as numbers while tables are made, and their names again in the files.

A pair's number is its place among all, sorted by task and id; a cluster's its place among the
sorted names. So numbers sort as the names do, every table is the same, and a million pairs need a
few bytes each where names need a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from judgebias.leaks import LEAK_COLUMNS
from judgebias.summary.settle import PAIR_COLUMNS
from judgebias.tone import DENSITY_COLUMNS

_KEY: Final = ("task", "pair_id")
_CARRIED: Final = (*_KEY, *PAIR_COLUMNS, *DENSITY_COLUMNS, *LEAK_COLUMNS)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodedPairs:
    """Pairs by number."""

    pairs: pl.DataFrame
    """One row per pair in the order given: task, the numbers in `pair_id` and `cluster`, and what
    tables need."""
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
        frame = pairs.select(name for name in _CARRIED if name in there).collect()
        order = frame.select(pl.arg_sort_by(_KEY)).to_series()
        places = pl.DataFrame({"place": order}).with_row_index("number").sort("place")["number"]
        clusters = frame["cluster"].drop_nulls().unique().sort()
        by_name = pl.DataFrame({"cluster": clusters}).with_row_index("number")
        joined = frame.select("cluster").join(
            by_name, on="cluster", how="left", maintain_order="left"
        )
        return cls(
            pairs=frame.with_columns(
                places.cast(pl.Int64).alias("pair_id"),
                joined["number"].cast(pl.Int64).alias("cluster"),
            ),
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
