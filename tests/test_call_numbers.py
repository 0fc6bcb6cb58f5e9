"""Calls that stand there more than once, found by marks or by their keys."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.call_numbers import is_repeated
from judgebias.verdicts import Order

CALLS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 3), st.sampled_from(list(Order))), max_size=40
)


def found(calls: list[tuple[int, int, Order]]) -> list[bool]:
    pair, repeat, order = zip(*calls, strict=True) if calls else ((), (), ())
    columns = (
        pl.Series(pair, dtype=pl.UInt32),
        pl.Series(repeat, dtype=pl.Int32),
        pl.Series(order, dtype=pl.Enum(Order)),
    )
    return is_repeated(*columns).tolist()


@given(CALLS, st.sampled_from([1, 10**6]))
def test_every_call_of_a_key_that_comes_again_is_named(
    calls: list[tuple[int, int, Order]], far: int
) -> None:
    spread = [(pair * far, repeat, order) for pair, repeat, order in calls]
    times = Counter(spread)
    assert found(spread) == [times[call] > 1 for call in spread]


@pytest.mark.parametrize("largest", [0, 10**7])
def test_calls_that_differ_in_one_thing_are_different(largest: int) -> None:
    calls = [
        (pair, repeat, order) for pair in (0, largest + 1) for repeat in (1, 2) for order in Order
    ]
    assert not any(found(calls))
    assert found([*calls, calls[0]]) == [True, *[False] * 7, True]
