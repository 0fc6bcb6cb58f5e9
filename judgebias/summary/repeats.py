"""Each repeat by itself: the summary of the records of one repeat alone."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from judgebias.summary.columns import Row
from judgebias.summary.profiles import ALL
from judgebias.summary.rows import compare, rows_of, table


def repeats_table(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute the summary's figures per judge x task x repeat; no rows where nothing was repeated.

    The columns are those of the summary, with `repeat` after `task`. The family of `q_position` is
    the rows of this table, all repeats together.
    """
    repeats = verdicts.select(pl.col("repeat").unique().sort()).collect()["repeat"].to_list()
    return compare_repeats(repeat_rows(verdicts, repeats))


def repeat_rows(verdicts: pl.LazyFrame, repeats: Sequence[int]) -> list[Row]:
    """Compute the rows of each repeat, each by itself; none where there is only one."""
    if len(repeats) < 2:
        return []
    return [
        {**row, "repeat": int(repeat)}
        for repeat in repeats
        for row in rows_of(verdicts.filter(pl.col("repeat") == repeat))
    ]


def compare_repeats(rows: Sequence[Row]) -> pl.DataFrame:
    """Make the table of the rows of all judges and repeats."""
    return table(sorted(compare(rows), key=_place), extra={"repeat": pl.Int64()})


def _place(row: Row) -> tuple[str, bool, str, int]:
    task = str(row["task"])
    return str(row["judge"]), task == ALL, task, int(row["repeat"] or 0)
