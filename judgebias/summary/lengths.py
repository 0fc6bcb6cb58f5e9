"""Mean lengths beside the win rates of the summary; what length does to a judge is length.csv's."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import polars as pl

from judgebias.summary.columns import NUMBER, typed
from judgebias.summary.profiles import ALL
from judgebias.summary.settle import is_complete

MEAN_LENGTHS: Final = typed(NUMBER, "mean_len_a", "mean_len_b")
"""The last columns of summary.*: mean code points of the complete pairs whose lengths are known."""


def mean_lengths(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute the mean lengths per judge x task, and per judge over ALL.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns.

    Returns
    -------
    DataFrame
        judge, task and `MEAN_LENGTHS`, of the groups that have a complete pair of known lengths.
    """
    lengths = [pl.col("len_a", "len_b").cast(pl.Int64).sum(), pl.len().alias("n")]
    known = pl.all_horizontal(pl.col("len_a", "len_b").is_not_null())
    complete = verdicts.filter(is_complete() & known)
    counted = complete.group_by("judge", "task").agg(lengths).collect()
    by_task = counted.with_columns(pl.col("task").cast(pl.String))
    whole = by_task.group_by("judge").agg(pl.col("len_a", "len_b", "n").sum(), task=pl.lit(ALL))
    return pl.concat([by_task, whole.select(by_task.columns)]).select(
        *(pl.col(name).cast(pl.String) for name in ("judge", "task")),
        *((pl.col(f"len_{side}") / pl.col("n")).alias(f"mean_len_{side}") for side in ("a", "b")),
    )


def with_mean_lengths(
    summary: pl.DataFrame, lengths: Sequence[pl.DataFrame], asked: Collection[str]
) -> pl.DataFrame:
    """Add `MEAN_LENGTHS` to the summary, for the judges that were asked.

    A recorded judge has none here: records carry no texts, and a run that replays them gives the
    bytes that they give alone. Where the pairs are given, length.csv has the means of every judge.

    Parameters
    ----------
    summary
        One row per (judge, task).
    lengths
        What `mean_lengths` gives for each judge.
    asked
        The judges that were asked.
    """
    none = pl.DataFrame(schema={"judge": pl.String, "task": pl.String, **MEAN_LENGTHS})
    known = pl.concat([none, *lengths]).filter(pl.col("judge").is_in(sorted(asked)))
    return summary.join(known, on=["judge", "task"], how="left", maintain_order="left")
