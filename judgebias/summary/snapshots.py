"""Pairs whose two orders were answered by different models, as a server names them.

A model's name may stand for one snapshot today and another tomorrow. Where it changed between the
two calls of a pair, what looks like an effect of the order may be one of the model.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from judgebias.summary.settle import KEY

MODEL_CHANGE_COLUMNS: Final = (*KEY, "model_ab", "model_ba")
_NAMED: Final = 6


def model_changes(calls: pl.LazyFrame) -> pl.DataFrame:
    """List the pairs whose two verdicts come from models with different names.

    Parameters
    ----------
    calls
        judge, task, pair_id, repeat, order, slot, model: one row per call that ended.

    Returns
    -------
    DataFrame
        `MODEL_CHANGE_COLUMNS`, sorted; a call without a verdict, or whose model the server did not
        name, is compared with none.
    """
    told = _told(calls).select(
        *(pl.col(name).cast(pl.String) for name in ("judge", "task")),
        *("pair_id", "repeat", "order", "model"),
    )
    sides = [
        pl.col("model").filter(pl.col("order") == order).first().alias(f"model_{order}")
        for order in ("ab", "ba")
    ]
    pairs = told.group_by(KEY).agg(sides).filter(pl.col("model_ab") != pl.col("model_ba"))
    return pairs.select(MODEL_CHANGE_COLUMNS).sort(KEY).collect()


def snapshot_warnings(calls: pl.LazyFrame, changes: pl.DataFrame) -> list[str]:
    """Say of each judge that several models answered for, how often and in how many pairs."""
    counted = (
        _told(calls)
        .group_by(pl.col("judge").cast(pl.String), "model")
        .len()
        .sort("judge", -pl.col("len").cast(pl.Int64), "model")
        .collect()
    )
    mixed = dict(changes.group_by("judge").len().iter_rows())
    by_judge = counted.partition_by("judge", as_dict=True, maintain_order=True)
    return [
        _warning(str(judge), rows, int(mixed.get(judge, 0)))
        for (judge,), rows in by_judge.items()
        if rows.height > 1
    ]


def _told(calls: pl.LazyFrame) -> pl.LazyFrame:
    said = calls.filter(pl.col("slot").is_not_null() & pl.col("model").is_not_null())
    return said.with_columns(pl.col("model", "order").cast(pl.String))


def _warning(judge: str, models: pl.DataFrame, mixed: int) -> str:
    shown = [f"{model} {n:,}" for _, model, n in models.head(_NAMED).iter_rows()]
    more = [f"and {models.height - _NAMED} more"] if models.height > _NAMED else []
    answered = f"{judge}: {models.height} models answered its calls ({', '.join([*shown, *more])})"
    if not mixed:
        return f"{answered}, never both in one pair"
    return (
        f"{answered}; in {mixed:,} pairs the two orders come from different models, so what "
        "differs there may be the model and not the order: see tables/model_changes.csv"
    )
