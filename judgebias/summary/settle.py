"""From calls to verdicts: the two orders of a pair become one row with a cell.

The end of a call is a small number, its *state*. A larger state wins where two are known for one
call, so a call that is both expected and recorded counts as recorded. States stay inside this
package (`state_ab`, `state_ba`); files hold the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from itertools import product
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judgebias.verdicts import Cell, Order, Slot, Winner, final, settle

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


def _words(kind: type[StrEnum], names: Mapping[int, StrEnum], numbers: int) -> pl.Series:
    return pl.Series([names.get(number) for number in range(numbers)], dtype=pl.Enum(kind))


_SETTLED: Final = {
    SLOTS[ab] * STATES + SLOTS[ba]: settle(ab, ba) for ab, ba in product(Slot, repeat=2)
}
_SLOT_OF: Final = _words(Slot, {state: slot for slot, state in SLOTS.items()}, STATES)
"""State -> slot, null where there is none."""
_CELL_OF: Final = _words(Cell, _SETTLED, STATES**2)
"""Both states as one number -> cell, null where a verdict is missing."""
_FINAL_OF: Final = _words(Winner, {n: final(cell) for n, cell in _SETTLED.items()}, STATES**2)


def settle_calls(
    calls: pl.LazyFrame, pairs: pl.LazyFrame, expected: pl.LazyFrame | None = None
) -> pl.LazyFrame:
    """Put the two orders of each pair together: one row per (judge, task, pair_id, repeat).

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
        `VERDICT_COLUMNS` with `state_ab` and `state_ba`, sorted by their key.
    """
    texts = [pl.col(name).cast(pl.String) for name in KEY[:3]]
    told = [frame.with_columns(texts).collect() for frame in (calls, expected) if frame is not None]
    known = pairs.select(*texts[1:], *PAIR_COLUMNS).collect()
    pair = list(KEY[1:3])
    named = pl.concat([known.select(pair), *(frame.select(pair) for frame in told)])
    numbers = named.unique().sort(pair).with_row_index("number")
    rows = numbers.join(known, on=pair, how="left", validate="1:1", maintain_order="left")
    found = [settle_numbered("", told[0].clear().with_columns(pair_id=pl.lit(0)), rows)]
    for judge in pl.concat([frame["judge"] for frame in told]).unique().sort():
        mine = [
            frame.filter(pl.col("judge") == judge)
            .join(numbers, on=pair, how="left")
            .with_columns(pair_id="number")
            for frame in told
        ]
        found.append(settle_numbered(judge, mine[0], rows, *mine[1:]))
    settled = pl.concat(found)
    return settled.with_columns(pair_id=numbers["pair_id"].gather(settled["pair_id"])).lazy()


def settle_numbered(
    judge: str, calls: pl.DataFrame, pairs: pl.DataFrame, expected: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Settle the calls of one judge on pairs that have numbers; see `settle_calls`.

    Every call has its place, the number of its pair and repeat, so nothing is looked up.

    Parameters
    ----------
    judge
        Whose calls they are.
    calls
        pair_id (a row of `pairs`), repeat, order, slot.
    pairs
        task and the columns of `PAIR_COLUMNS`.
    expected
        pair_id (a row of `pairs`), repeat, expects_ab, expects_ba.
    """
    asked = calls.clear() if expected is None else expected
    repeats = pl.concat([calls["repeat"], asked["repeat"]]).unique().sort().cast(pl.Int32)
    states = {order: np.zeros(pairs.height * len(repeats), np.uint8) for order in Order}
    if expected is not None:
        at = _places(expected, repeats)
        for order, known in states.items():
            known[at] = expected[f"expects_{order}"].to_numpy() * PENDING
    ends, at = _ends(calls["slot"]), _places(calls, repeats)
    for order, known in states.items():
        mine = (calls["order"] == str(order)).to_numpy()
        np.maximum.at(known, at[mine], ends[mine])
    there = np.flatnonzero((states[Order.AB] > ABSENT) | (states[Order.BA] > ABSENT))
    ab, ba = (states[order][there] for order in Order)
    row, repeat = np.divmod(there, max(1, len(repeats)))
    outcome = ab * STATES + ba
    about = pairs.select("task", *PAIR_COLUMNS)
    # Columns of a judge that has a verdict on every pair are the pairs' own, and take no memory.
    one_each = len(repeats) == 1 and there.size == pairs.height
    return (about if one_each else about[row]).select(
        pl.lit(judge).alias("judge"),
        "task",
        pl.Series("pair_id", row),
        repeats.gather(repeat).alias("repeat"),
        _SLOT_OF.gather(ab).alias("slot_ab"),
        _SLOT_OF.gather(ba).alias("slot_ba"),
        _CELL_OF.gather(outcome).alias("cell"),
        _FINAL_OF.gather(outcome).alias("final"),
        *PAIR_COLUMNS,
        pl.Series("state_ab", ab),
        pl.Series("state_ba", ba),
    )


def pair_key(frame: pl.DataFrame | pl.LazyFrame) -> tuple[str, ...]:
    """Name the columns that tell a judge's verdicts apart, in the order in which they sort them.

    A pair that has a number has one over all tasks, and numbers sort as task and id do.
    """
    return KEY[2:] if is_numbered(frame) else KEY[1:]


def in_order(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Sort a judge's verdicts by their key; those of numbered pairs mostly are."""
    if is_numbered(verdicts) and _ascends(verdicts["pair_id"]):
        return verdicts
    return verdicts.sort(pair_key(verdicts))


def _ascends(numbers: pl.Series) -> bool:
    values = numbers.to_numpy()
    return bool((values[1:] > values[:-1]).all())


def is_numbered(frame: pl.DataFrame | pl.LazyFrame) -> bool:
    """Whether pairs have numbers in the place of names."""
    return frame.collect_schema()["pair_id"].is_integer()


def outcome_of(ab: pl.Expr, ba: pl.Expr) -> pl.Expr:
    """Both states of a pair as one number."""
    return ab * STATES + ba


def is_slot(state: pl.Expr) -> pl.Expr:
    """Whether a call ended in a slot verdict."""
    return (state > PENDING) & (state < FAILED)


def is_complete() -> pl.Expr:
    """Whether a pair has both slot verdicts."""
    return is_slot(pl.col("state_ab")) & is_slot(pl.col("state_ba"))


def _places(rows: pl.DataFrame, repeats: pl.Series) -> NDArray[np.int64]:
    """Number the verdicts that rows belong to: by pair, then repeat."""
    repeat = np.searchsorted(repeats.to_numpy(), rows["repeat"].to_numpy())
    return rows["pair_id"].to_numpy().astype(np.int64) * len(repeats) + repeat


def _ends(slots: pl.Series) -> NDArray[np.uint8]:
    """Give the states of calls that ended."""
    named = slots.cast(pl.Enum(Slot)).to_physical().fill_null(len(Slot))
    states = np.array([*(SLOTS[slot] for slot in Slot), FAILED], np.uint8)
    return states[named.to_numpy()]
