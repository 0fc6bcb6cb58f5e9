"""Which rows compare more than one pair of models, so that "A wins" has no single meaning."""

from __future__ import annotations

import polars as pl

from judgebias.summary.profiles import ALL, Group


def several_models(verdicts: pl.LazyFrame) -> set[Group]:
    """Name the (judge, task), ALL included, in which A and B are not one model each."""
    met = verdicts.select("judge", "task", "model_a", "model_b").unique().collect()
    pairings = met.with_columns(pl.col("task").cast(pl.String))
    tasks = pairings.group_by("judge", "task").len()
    judges = (
        pairings.unique(["judge", "model_a", "model_b"])
        .group_by("judge")
        .len()
        .select("judge", pl.lit(ALL).alias("task"), "len")
    )
    several = pl.concat([tasks, judges]).filter(pl.col("len") > 1)
    return {(judge, task) for judge, task in several.select("judge", "task").iter_rows()}
