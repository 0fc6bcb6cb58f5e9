"""Calls that ended without a verdict, by kind and order, and the coverage they leave.

Failures that fall unevenly on the two orders bias every figure, so the table shows the coverage of
each order and says where they differ.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from judgebias.judges.secrets import redact
from judgebias.summary.settle import FAILED, PENDING, SLOTS, is_slot
from judgebias.verdicts import Slot

FAILURE_COLUMNS: Final = (
    *("judge", "task", "order", "kind", "n"),
    *("n_expected", "n_verdicts", "n_failed", "n_pending", "coverage", "warning"),
    "example",
)
_GROUP: Final = ("judge", "task", "order")
_LONGEST: Final = 200
_MEMORY: Final = re.compile(r"\b0x[0-9a-fA-F]+\b")
PROBE: Final = "self_pair"
"""In the place of an order: both slots held one text."""


def failures_table(calls: pl.LazyFrame, verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Count failures per judge x task x order x kind, beside the coverage of the order.

    Parameters
    ----------
    calls
        judge, task, order, failure: one row per call that ended; with pair_id, repeat and message
        where there are messages.
    verdicts
        What `settle_calls` returns for the same calls.

    Returns
    -------
    DataFrame
        `FAILURE_COLUMNS`, sorted; an order without a failure has one row, `kind` null and `n` 0.
        `example` is the message of the first call by pair and repeat that has one, shortened and
        without what looks like a key. `coverage` is n_verdicts / n_expected; `warning` is null
        where both orders are covered alike, or only one was asked.
    """
    return _by_kind(coverage(verdicts), _kinds(calls))


def _kinds(calls: pl.LazyFrame) -> pl.LazyFrame:
    has_messages = "message" in calls.collect_schema().names()
    first = pl.col("message").sort_by("pair_id", "repeat").drop_nulls().first()
    return (
        calls.filter(pl.col("failure").is_not_null())
        .group_by(
            *(pl.col(name).cast(pl.String) for name in _GROUP),
            pl.col("failure").cast(pl.String).alias("kind"),
        )
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            (first if has_messages else pl.lit(None, pl.String)).alias("example"),
        )
    )


def _by_kind(covered: pl.LazyFrame, kinds: pl.LazyFrame) -> pl.DataFrame:
    table = (
        covered.join(kinds, on=_GROUP, how="left")
        .with_columns(pl.col("n").fill_null(0))
        .select(FAILURE_COLUMNS)
        .sort("judge", "task", "order", "kind")
        .collect()
    )
    examples = [None if text is None else shown_message(text) for text in table["example"]]
    return table.with_columns(pl.Series("example", examples, pl.String))


def shown_message(text: str) -> str:
    """Shorten a message to one line, without keys and without places in some process's memory."""
    line = " ".join(_MEMORY.sub("0x...", redact(text)).split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def probe_failures(judge: str, calls: pl.LazyFrame, pending: pl.LazyFrame) -> pl.DataFrame:
    """Count a judge's failures on two identical texts, as rows whose order is `self_pair`.

    Parameters
    ----------
    judge
        Whose calls they are.
    calls
        task, slot, failure: one row per call that ended.
    pending
        task: one row per call that is to be asked.
    """
    state = pl.when(pl.col("slot").is_null()).then(FAILED).otherwise(SLOTS[Slot.TIE])
    states = pl.concat(
        [
            calls.select(pl.col("task").cast(pl.String), state=state),
            pending.select("task", state=pl.lit(PENDING)),
        ]
    )
    counts = (
        states.group_by("task")
        .agg(_counts(pl.col("state")))
        .with_columns(judge=pl.lit(judge), order=pl.lit(PROBE), warning=pl.lit(None, pl.String))
    )
    kinds = _kinds(calls.with_columns(judge=pl.lit(judge), order=pl.lit(PROBE)))
    return _by_kind(_covered(counts), kinds)


def coverage(verdicts: pl.LazyFrame) -> pl.LazyFrame:
    """Count per judge x task x order the calls that were expected and how they ended."""
    orders = [_order(verdicts, order) for order in ("ab", "ba")]
    counted = _covered(pl.concat(orders))
    by_order = {
        order: pl.col("coverage").filter(pl.col("order") == order).first().over("judge", "task")
        for order in ("ab", "ba")
    }
    words = pl.format(
        "coverage differs between orders (ab {}, ba {}): figures may be biased",
        by_order["ab"].round(4),
        by_order["ba"].round(4),
    )
    return counted.with_columns(warning=pl.when(by_order["ab"] != by_order["ba"]).then(words))


def _covered(counted: pl.LazyFrame) -> pl.LazyFrame:
    return counted.with_columns(
        coverage=pl.col("n_verdicts") / pl.col("n_expected").replace(0, None)
    )


def _order(verdicts: pl.LazyFrame, order: str) -> pl.LazyFrame:
    return (
        verdicts.group_by("judge", pl.col("task").cast(pl.String))
        .agg(_counts(pl.col(f"state_{order}")))
        .with_columns(order=pl.lit(order))
        .filter(pl.col("n_expected") > 0)
    )


def _counts(state: pl.Expr) -> list[pl.Expr]:
    counts = {
        "n_expected": state >= PENDING,
        "n_verdicts": is_slot(state),
        "n_failed": state == FAILED,
        "n_pending": state == PENDING,
    }
    return [rule.cast(pl.Int64).sum().alias(name) for name, rule in counts.items()]
