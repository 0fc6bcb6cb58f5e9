"""Slots of any workers, taken at any times, never make a minute of more than the limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.pace.schedule import (
    AHEAD_S,
    CATCH_UP_S,
    FORGET_SLIPS_S,
    MOST_MORE,
    NO_SLOTS,
    SINGLE_MORE,
    SLIP_MORE,
    TRANSIT_S,
    USE_WITHIN_S,
    Schedule,
    interval_of,
)
from tests.pace.fleet import most_within


@given(
    limit=st.integers(1, 900),
    turns=st.lists(
        st.tuples(st.floats(0, 7), st.integers(0, 60), st.floats(0, 1)), min_size=1, max_size=200
    ),
)
def test_whoever_asks_and_however_late_slots_are_used_no_minute_exceeds_the_limit(
    limit: int, turns: list[tuple[float, int, float]]
) -> None:
    schedule, now, sent = Schedule(0.0), 0.0, list[float]()
    for passes, most, lateness in turns:
        now += passes
        slots = schedule.take(most, interval_of(limit), now)
        for number in range(slots.count):
            at = now + slots.first_s + number * slots.interval_s
            used = max(now, at) + lateness * (at + USE_WITHIN_S - max(now, at))
            assert used <= at + USE_WITHIN_S + 1e-6
            sent.append(used + lateness * TRANSIT_S)
    assert most_within(sorted(sent), 60.0) <= limit


def test_what_is_ahead_and_what_may_be_caught_up_is_bounded() -> None:
    schedule = Schedule(0.0)
    late = schedule.take(1000, 0.01, 100.0)
    assert late.first_s == pytest.approx(-CATCH_UP_S)
    assert late.count == 1 + int((CATCH_UP_S + AHEAD_S) / 0.01 + 1e-9)
    assert schedule.take(1000, 0.01, 100.0) == NO_SLOTS


def test_slow_slots_come_one_by_one_each_after_the_last_was_used() -> None:
    schedule = Schedule(0.0)
    assert schedule.take(5, 1.0, 0.0).count == 1
    assert schedule.take(5, 1.0, 0.5) == NO_SLOTS
    schedule.shift(0.3)
    assert schedule.take(5, 1.0, 1.0) == NO_SLOTS
    assert schedule.take(5, 1.0, 1.2).first_s == pytest.approx(1 + SINGLE_MORE + 0.3 - 1.2)


def test_single_slots_lie_further_apart_after_slips_and_closer_again_in_time() -> None:
    def gap(schedule: Schedule, now: float) -> float:
        schedule.not_before(now)
        first = schedule.take(1, 1.0, now).first_s
        return schedule.wait(now) - first

    schedule = Schedule(0.0)
    assert gap(schedule, 10.0) == pytest.approx(1 + SINGLE_MORE)
    for _ in range(3):
        schedule.slip(20.0)
    assert gap(schedule, 20.0) == pytest.approx(1 + SINGLE_MORE + 3 * SLIP_MORE)
    between = 1 + SINGLE_MORE + SLIP_MORE
    assert between < gap(schedule, 20.0 + FORGET_SLIPS_S) < between + SLIP_MORE
    for _ in range(100):
        schedule.slip(1000.0)
    assert gap(schedule, 1000.0) == pytest.approx(1 + MOST_MORE)


@pytest.mark.parametrize("limit", [1, 60, 6000])
def test_at_least_97_percent_of_a_limit_can_be_used(limit: int) -> None:
    assert 60 / interval_of(limit) >= 0.97 * limit


def test_no_limit_has_no_interval() -> None:
    assert interval_of(0) == 0.0
