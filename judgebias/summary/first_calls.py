"""The first call of each pair, and the counts that the half-cost estimates are computed from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import polars as pl

from judgebias.stats.profiles import IntArray
from judgebias.summary.profiles import ALL, Group
from judgebias.summary.settle import ABSENT, FAILED, PENDING, SLOTS
from judgebias.verdicts import Order, Slot

_ORDERS: Final = tuple(Order)
_PLACE: Final = {state: number for number, state in enumerate(SLOTS.values())}
_FIRST, _SECOND, _TIE = (SLOTS[slot] for slot in (Slot.FIRST, Slot.SECOND, Slot.TIE))


_Counted: TypeAlias = tuple[int, int, int, int]
"""State of ab, state of ba, place of the first order, pairs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallCounts:
    """Calls of one judge x task by design and slot; slots in the order first, second, tie."""

    both: IntArray
    """(3, 3) pairs with both verdicts, by (slot in ab, slot in ba)."""
    rest: IntArray
    """(2, 3) pairs asked once, by (order, slot)."""
    first: IntArray
    """(2, 3) first calls of all pairs, by (order, slot)."""
    n_incomplete: int
    """Pairs that miss a verdict they were asked for."""
    n_calls: int
    """Calls that ended, failures included."""
    n_failed: int

    @classmethod
    def of(cls, counted: Iterable[_Counted]) -> CallCounts:
        """Add up pairs by their states and first order."""
        both, rest, first = (np.zeros((rows, 3), dtype=np.int64) for rows in (3, 2, 2))
        n_incomplete = n_calls = n_failed = 0
        for ab, ba, place, n in counted:
            states = (ab, ba)
            n_calls += n * sum(state > PENDING for state in states)
            n_failed += n * states.count(FAILED)
            slot = _PLACE.get(states[place])
            if slot is not None:
                first[place, slot] += n
            if ab in _PLACE and ba in _PLACE:
                both[_PLACE[ab], _PLACE[ba]] += n
            elif slot is not None and ABSENT in states:
                rest[place, slot] += n
            else:
                n_incomplete += n
        return cls(
            both=both,
            rest=rest,
            first=first,
            n_incomplete=n_incomplete,
            n_calls=n_calls,
            n_failed=n_failed,
        )

    @property
    def n_both(self) -> int:
        """Pairs with both verdicts."""
        return int(self.both.sum())

    @property
    def n_single(self) -> int:
        """Pairs with the one verdict they were asked for."""
        return int(self.rest.sum())

    @property
    def firsts(self) -> tuple[int, int]:
        """First calls that named the first slot, and those that named either."""
        firsts, seconds, _ = (int(n) for n in self.first.sum(axis=0))
        return firsts, firsts + seconds

    @property
    def shown_first(self) -> Order | None:
        """The order of all first calls where it is one and the same."""
        seen = [order for order, row in zip(_ORDERS, self.first, strict=True) if row.any()]
        return seen[0] if len(seen) == 1 else None


def call_counts(verdicts: pl.DataFrame) -> dict[Group, CallCounts]:
    """Count calls per (judge, task) and per (judge, ALL).

    Parameters
    ----------
    verdicts
        judge, task, state_ab, state_ba, first_order: one row per pair and repeat.

    Raises
    ------
    ValueError
        A pair asked in both orders has no first order.
    """
    ended = verdicts.select("judge", "task", "state_ab", "state_ba", first_place())
    groups: dict[Group, list[_Counted]] = {}
    for judge, task, ab, ba, first, n in ended.group_by(ended.columns).len().iter_rows():
        if first is None:
            msg = (
                f"{n} pairs of judge {judge}, task {task}, were asked in both orders and have no "
                "first_order; expected ab or ba: pass the order that the design gives first"
            )
            raise ValueError(msg)
        for group in ((judge, task), (judge, ALL)):
            groups.setdefault(group, []).append((ab, ba, first, n))
    return {group: CallCounts.of(counted) for group, counted in groups.items()}


def first_place() -> pl.Expr:
    """Place of the first call (0: ab, 1: ba): the only one asked, else what the design says."""
    order = pl.col("first_order").cast(pl.String)
    names = {str(name): number for number, name in enumerate(_ORDERS)}
    return (
        pl.when(pl.col("state_ba") == ABSENT)
        .then(0)
        .when(pl.col("state_ab") == ABSENT)
        .then(1)
        .otherwise(order.replace_strict(names, default=None, return_dtype=pl.Int32))
        .alias("first_place")
    )


def first_scores(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Score A in the first call of each pair: 2 won, 1 tie, 0 lost; repeats of a pair added up.

    Returns
    -------
    DataFrame
        judge, task, pair_id, cluster, score, n: one row per pair whose first call has a verdict.
    """
    ab_first = first_place() == 0
    state = pl.when(ab_first).then(pl.col("state_ab")).otherwise(pl.col("state_ba"))
    shown_first = {_FIRST: 2, _SECOND: 0, _TIE: 1}
    step = state.replace_strict(shown_first, default=None, return_dtype=pl.Int64)
    scored = verdicts.select(
        *("judge", "task", "pair_id", "cluster"),
        pl.when(ab_first).then(step).otherwise(2 - step).alias("score"),
        pl.lit(1, pl.Int64).alias("n"),
    ).drop_nulls("score")
    if verdicts["repeat"].n_unique() < 2:
        return scored
    return scored.group_by("judge", "task", "pair_id", "cluster").agg(
        pl.col("score").sum(), pl.col("n").sum()
    )
