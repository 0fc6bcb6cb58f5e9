"""The words of a verdict, and the one place where slots become answers.

A judge names a *slot* (first, second, tie). `unswap` turns the slot back into an answer, and
`settle` joins the two orders of a pair into one of seven *cells*. Everything is a table: there is
no arithmetic on verdicts, so a failure cannot become a number.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import product


class Order(StrEnum):
    """Which answer a call shows first."""

    AB = "ab"
    BA = "ba"


class Slot(StrEnum):
    """What a judge prefers, named by place and not by answer."""

    FIRST = "first"
    SECOND = "second"
    TIE = "tie"


class Winner(StrEnum):
    """What a verdict says about the answers."""

    A = "A"
    B = "B"
    TIE = "tie"


class Cell(StrEnum):
    """Where a complete pair lies: both orders agree, or one slot pulls."""

    AGREED_A = "agreed_a"
    AGREED_B = "agreed_b"
    AGREED_TIE = "agreed_tie"
    STUCK_FIRST = "stuck_first"
    STUCK_SECOND = "stuck_second"
    HALF_FIRST = "half_first"
    HALF_SECOND = "half_second"


_UNSWAP: dict[tuple[Slot, Order], Winner] = {
    (Slot.FIRST, Order.AB): Winner.A,
    (Slot.SECOND, Order.AB): Winner.B,
    (Slot.TIE, Order.AB): Winner.TIE,
    (Slot.FIRST, Order.BA): Winner.B,
    (Slot.SECOND, Order.BA): Winner.A,
    (Slot.TIE, Order.BA): Winner.TIE,
}

_CELL: dict[tuple[Slot, Slot], Cell] = {
    (Slot.FIRST, Slot.SECOND): Cell.AGREED_A,
    (Slot.SECOND, Slot.FIRST): Cell.AGREED_B,
    (Slot.TIE, Slot.TIE): Cell.AGREED_TIE,
    (Slot.FIRST, Slot.FIRST): Cell.STUCK_FIRST,
    (Slot.SECOND, Slot.SECOND): Cell.STUCK_SECOND,
    (Slot.FIRST, Slot.TIE): Cell.HALF_FIRST,
    (Slot.TIE, Slot.FIRST): Cell.HALF_FIRST,
    (Slot.SECOND, Slot.TIE): Cell.HALF_SECOND,
    (Slot.TIE, Slot.SECOND): Cell.HALF_SECOND,
}

OUTCOMES: tuple[tuple[Slot, Slot], ...] = tuple(product(Slot, Slot))
"""The nine joint outcomes (ab, ba) of a complete pair, in a fixed order."""

_FINAL: dict[Cell, Winner] = {Cell.AGREED_A: Winner.A, Cell.AGREED_B: Winner.B}


def unswap(slot: Slot, order: Order) -> Winner:
    """Turn a slot back into the answer that was shown there."""
    return _UNSWAP[slot, order]


def settle(ab: Slot, ba: Slot) -> Cell:
    """Join the verdicts of both orders: a pair counts for A or B only when they agree."""
    return _CELL[ab, ba]


def final(cell: Cell) -> Winner:
    """Say who won: every disagreement between the orders is a tie."""
    return _FINAL.get(cell, Winner.TIE)


def flip(order: Order) -> Order:
    """Name the other order."""
    return Order.BA if order is Order.AB else Order.AB
