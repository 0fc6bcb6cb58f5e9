"""What the calls cost, as far as it is known; unknown is null and counted, never 0."""

from __future__ import annotations

from typing import Final

import polars as pl

from judgebias.summary.profiles import ALL

TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
COST_COLUMNS: Final = (
    *("judge", "task", "n_calls", "attempts", *TOKENS),
    *("cost_usd", "n_unpriced", "known_cost_usd", "n_extra", "extra_known_cost_usd"),
)
"""`n_extra`: replies beside the one that counts (failed before it, or bought twice)."""

_NANO: Final = 1_000_000_000


def costs_table(calls: pl.LazyFrame, extra: pl.LazyFrame) -> pl.DataFrame:
    """Add up tokens and dollars per judge x task, and per judge over ALL tasks.

    Parameters
    ----------
    calls
        judge, task, attempts, the columns of `TOKENS` and cost_usd: one row per call that ended.
    extra
        The same columns for replies that are not their call's answer but were paid for.

    Returns
    -------
    DataFrame
        `COST_COLUMNS`, sorted, ALL last. A sum is null where one of its calls is unknown:
        `known_cost_usd` is the sum of the others. Dollars are added in whole nano-dollars, so the
        order of the calls changes no bit.
    """
    answered = _sums(calls, _answer_sums())
    beside = _sums(extra, _extra_sums())
    return (
        answered.join(beside, on=["judge", "task"], how="left")
        .with_columns(pl.col("n_extra").fill_null(0), pl.col("extra_known_cost_usd").fill_null(0.0))
        .select(COST_COLUMNS)
        .sort("judge", pl.col("task") == ALL, "task")
        .collect()
    )


def _sums(rows: pl.LazyFrame, sums: list[pl.Expr]) -> pl.LazyFrame:
    words = rows.with_columns(pl.col("judge", "task").cast(pl.String))
    by_task = words.group_by("judge", "task").agg(sums)
    whole = words.group_by("judge").agg(sums).with_columns(task=pl.lit(ALL))
    return pl.concat([by_task, whole.select(by_task.collect_schema().names())])


def _answer_sums() -> list[pl.Expr]:
    known = [
        pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)
        for name in TOKENS
    ]
    cost = pl.when(pl.col("cost_usd").null_count() == 0).then(_dollars()).alias("cost_usd")
    return [
        pl.len().cast(pl.Int64).alias("n_calls"),
        pl.col("attempts").cast(pl.Int64).sum(),
        *known,
        cost,
        pl.col("cost_usd").null_count().cast(pl.Int64).alias("n_unpriced"),
        _dollars().alias("known_cost_usd"),
    ]


def _extra_sums() -> list[pl.Expr]:
    return [
        pl.len().cast(pl.Int64).alias("n_extra"),
        _dollars().alias("extra_known_cost_usd"),
    ]


def _dollars() -> pl.Expr:
    dollars = (pl.col("cost_usd") * _NANO).round().cast(pl.Int64).sum() / _NANO
    return pl.when(pl.col("cost_usd").count() > 0).then(dollars)
