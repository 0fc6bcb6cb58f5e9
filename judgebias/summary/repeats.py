"""Each repeat by itself: the summary of the records of one repeat alone."""

from __future__ import annotations

import polars as pl

from judgebias.summary.figures import Row
from judgebias.summary.profiles import ALL
from judgebias.summary.rows import compare, rows_of, table


def repeats_table(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute section 2 per judge x task x repeat; no rows where nothing was repeated.

    The columns are those of the summary, with `repeat` after `task`. The family of `q_position` is
    the rows of this table, all repeats together.
    """
    repeats = verdicts.select(pl.col("repeat").unique().sort()).collect()["repeat"].to_list()
    rows: list[Row] = []
    if len(repeats) > 1:
        for repeat in repeats:
            alone = verdicts.filter(pl.col("repeat") == repeat)
            rows += [{**row, "repeat": int(repeat)} for row in rows_of(alone)]
    ordered = sorted(compare(rows), key=_place)
    return table(ordered, extra={"repeat": pl.Int64()})


def _place(row: Row) -> tuple[str, bool, str, int]:
    task = str(row["task"])
    return str(row["judge"]), task == ALL, task, int(row["repeat"] or 0)
