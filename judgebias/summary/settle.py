"""From calls to verdicts: the two orders of a pair become one row with a cell.

While frames are joined, the end of a call is a small number, its *state*. A larger state wins where
two are known for one call, so a call that is both expected and recorded counts as recorded. States
stay inside this package (`state_ab`, `state_ba`); files hold the words.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import polars as pl

from judgebias.verdicts import Cell, Slot, Winner, final, settle

ABSENT: Final = 0
"""Not asked by design, or not recorded."""
PENDING: Final = 1
"""Expected, and not back yet."""
SLOTS: Final = {Slot.FIRST: 2, Slot.SECOND: 3, Slot.TIE: 4}
FAILED: Final = 5
STATES: Final = 6

KEY: Final = ("judge", "task", "pair_id", "repeat")
PAIR_COLUMNS: Final = ("model_a", "model_b", "gold", "cluster", "len_a", "len_b")
VERDICT_COLUMNS: Final = (*KEY, "slot_ab", "slot_ba", "cell", "final", *PAIR_COLUMNS)
"""The columns of verdicts.parquet."""

_SLOT: Final = {state: str(slot) for slot, state in SLOTS.items()}
_CELL: Final = {
    SLOTS[ab] * STATES + SLOTS[ba]: str(settle(ab, ba)) for ab, ba in product(Slot, repeat=2)
}
_FINAL: Final = {
    SLOTS[ab] * STATES + SLOTS[ba]: str(final(settle(ab, ba))) for ab, ba in product(Slot, repeat=2)
}


def settle_calls(
    calls: pl.LazyFrame, pairs: pl.LazyFrame, expected: pl.LazyFrame | None = None
) -> pl.LazyFrame:
    """Join the calls of each pair: one row per (judge, task, pair_id, repeat).

    Parameters
    ----------
    calls
        judge, task, pair_id, repeat, order, slot: one row per call that ended, slot null where it
        failed. Other columns are ignored.
    pairs
        task, pair_id and the columns of `PAIR_COLUMNS`: one row per pair.
    expected
        judge, task, pair_id, repeat, expects_ab, expects_ba: what a live run asks for. An expected
        call that is not in `calls` is pending; an order that is not expected makes a pair single.
        None: the records are all there is, and an absent order is single.

    Returns
    -------
    LazyFrame
        `VERDICT_COLUMNS` with `state_ab` and `state_ba`, in no particular order. Each table made
        of it runs it again: collect it once where several are made.
    """
    states = _recorded(calls)
    if expected is not None:
        states = pl.concat([states, _expected(expected)])
    settled = states.group_by(KEY).agg(pl.col("state_ab").max(), pl.col("state_ba").max())
    settled = settled.filter((pl.col("state_ab") > ABSENT) | (pl.col("state_ba") > ABSENT))
    outcome = outcome_of(pl.col("state_ab"), pl.col("state_ba"))
    attributes = pairs.select("task", "pair_id", *PAIR_COLUMNS)
    return (
        settled.with_columns(
            _words(pl.col("state_ab"), _SLOT, Slot).alias("slot_ab"),
            _words(pl.col("state_ba"), _SLOT, Slot).alias("slot_ba"),
            _words(outcome, _CELL, Cell).alias("cell"),
            _words(outcome, _FINAL, Winner).alias("final"),
        )
        .join(attributes, on=["task", "pair_id"], how="left", validate="m:1")
        .select(*VERDICT_COLUMNS, "state_ab", "state_ba")
    )


def pair_key(frame: pl.DataFrame | pl.LazyFrame) -> tuple[str, ...]:
    """Name the columns that tell a judge's verdicts apart, in the order in which they sort them.

    A pair that has a number has one over all tasks, and numbers sort as task and id do.
    """
    numbered = frame.collect_schema()["pair_id"].is_integer()
    return KEY[2:] if numbered else KEY[1:]


def outcome_of(ab: pl.Expr, ba: pl.Expr) -> pl.Expr:
    """Both states of a pair as one number."""
    return ab * STATES + ba


def is_slot(state: pl.Expr) -> pl.Expr:
    """Whether a call ended in a slot verdict."""
    return (state > PENDING) & (state < FAILED)


def is_complete() -> pl.Expr:
    """Whether a pair has both slot verdicts."""
    return is_slot(pl.col("state_ab")) & is_slot(pl.col("state_ba"))


def _recorded(calls: pl.LazyFrame) -> pl.LazyFrame:
    slot = pl.col("slot").cast(pl.String)
    state = slot.replace_strict(
        {str(slot): state for slot, state in SLOTS.items()}, default=FAILED, return_dtype=pl.UInt8
    )
    order = pl.col("order").cast(pl.String)
    return calls.select(
        *_key(),
        pl.when(order == "ab").then(state).otherwise(ABSENT).alias("state_ab"),
        pl.when(order == "ba").then(state).otherwise(ABSENT).alias("state_ba"),
    )


def _expected(expected: pl.LazyFrame) -> pl.LazyFrame:
    return expected.select(
        *_key(),
        (pl.col("expects_ab").cast(pl.UInt8) * PENDING).alias("state_ab"),
        (pl.col("expects_ba").cast(pl.UInt8) * PENDING).alias("state_ba"),
    )


def _key() -> list[pl.Expr]:
    texts = [pl.col(name).cast(pl.String) for name in KEY[:2]]
    return [*texts, pl.col("pair_id"), pl.col("repeat").cast(pl.Int32)]


def _words(
    number: pl.Expr, words: dict[int, str], kind: type[Slot] | type[Cell] | type[Winner]
) -> pl.Expr:
    return number.replace_strict(words, default=None, return_dtype=pl.Enum(kind))
