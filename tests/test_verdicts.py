from __future__ import annotations

from itertools import product

import pytest

from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import OUTCOMES, Cell, Order, Slot, Winner, final, flip, settle, unswap

_MIRROR = {Slot.FIRST: Slot.SECOND, Slot.SECOND: Slot.FIRST, Slot.TIE: Slot.TIE}
_SHOWN = {"ab": ("A", "B"), "ba": ("B", "A")}


@pytest.mark.parametrize(("slot", "order"), list(product(Slot, Order)))
def test_unswap_names_the_answer_that_lay_in_the_slot(slot: Slot, order: Order) -> None:
    first, second = _SHOWN[order]
    assert unswap(slot, order) == {"first": first, "second": second, "tie": "tie"}[slot]


@pytest.mark.parametrize("slot", Slot)
def test_swapping_twice_gives_the_slot_back(slot: Slot) -> None:
    assert flip(flip(Order.AB)) is Order.AB
    assert flip(flip(Order.BA)) is Order.BA
    for order in Order:
        assert unswap(slot, flip(order)) is unswap(_MIRROR[slot], order)
        assert unswap(_MIRROR[_MIRROR[slot]], flip(flip(order))) is unswap(slot, order)


@pytest.mark.parametrize(
    ("ab", "ba", "cell", "winner"),
    [
        ("first", "second", "agreed_a", "A"),
        ("second", "first", "agreed_b", "B"),
        ("tie", "tie", "agreed_tie", "tie"),
        ("first", "first", "stuck_first", "tie"),
        ("second", "second", "stuck_second", "tie"),
        ("first", "tie", "half_first", "tie"),
        ("tie", "first", "half_first", "tie"),
        ("second", "tie", "half_second", "tie"),
        ("tie", "second", "half_second", "tie"),
    ],
)
def test_the_nine_outcomes_settle(ab: str, ba: str, cell: str, winner: str) -> None:
    settled = settle(Slot(ab), Slot(ba))
    assert (settled, final(settled)) == (cell, winner)


def test_every_outcome_has_a_cell_and_every_cell_an_outcome() -> None:
    assert len(OUTCOMES) == len(set(OUTCOMES)) == 9
    assert {settle(*outcome) for outcome in OUTCOMES} == set(Cell)


@pytest.mark.parametrize(("ab", "ba"), OUTCOMES)
def test_a_pair_has_a_winner_only_where_both_orders_name_it(ab: Slot, ba: Slot) -> None:
    named = {unswap(ab, Order.AB), unswap(ba, Order.BA)}
    assert final(settle(ab, ba)) == (named.pop() if len(named) == 1 else Winner.TIE)


@pytest.mark.parametrize(("ab", "ba"), OUTCOMES)
def test_exchanging_the_answers_swaps_the_winner_and_keeps_the_lean(ab: Slot, ba: Slot) -> None:
    # With A and B exchanged, what was order ab is order ba.
    cell, exchanged = settle(ab, ba), settle(ba, ab)
    swapped = {Cell.AGREED_A: Cell.AGREED_B, Cell.AGREED_B: Cell.AGREED_A}
    assert exchanged is swapped.get(cell, cell)


def test_a_reply_is_a_slot_or_a_failure() -> None:
    assert Reply(slot=Slot.TIE).failure is None
    assert Reply(failure=FailureKind.EMPTY).slot is None
    with pytest.raises(ValueError, match="a slot or a failure"):
        Reply()
    with pytest.raises(ValueError, match="a slot or a failure"):
        Reply(slot=Slot.FIRST, failure=FailureKind.EMPTY)


def test_the_kinds_of_failure_are_the_closed_list() -> None:
    assert [kind.value for kind in FailureKind] == [
        "recorded",
        "not_recorded",
        "truncated",
        "refused",
        "filtered",
        "empty",
        "invalid",
        "context_length",
        "bad_request",
        "server",
        "timeout",
        "connection",
        "rate_limited",
        "function_error",
    ]
