"""What is learned from answers and refusals, step by step."""

from __future__ import annotations

import pytest

from judgebias.pace.learning import FIRST_WINDOW, LONGEST_PAUSE_S, LONGEST_PROBE_S, Learner, Size
from judgebias.pace.lease import Report
from judgebias.pace.limits import MOST_IN_FLIGHT


def grow(rate_of: dict[int, float]) -> int:
    """Let a window grow at a server that gives so many answers a second at each size."""
    size, now = Size(0.0), 0.0
    for _ in range(2000):
        now += 0.25
        size.full = True
        known = max(window for window in rate_of if window <= size.window)
        size.answered(round(rate_of[known] * 0.25), now)
    return int(size.window)


def test_a_window_doubles_as_long_as_that_brings_more_answers() -> None:
    windows = [64, 128, 256, 512, 1024, 2000]
    assert grow({window: 5.0 * window for window in windows}) == MOST_IN_FLIGHT


def test_a_window_that_only_fills_the_servers_queue_goes_back() -> None:
    # A single machine: from 128 calls at once on it answers no more of them.
    assert grow({64: 320.0, 128: 600.0, 256: 610.0}) == 128


def test_a_window_that_is_not_used_teaches_nothing() -> None:
    size = Size(0.0)
    for turn in range(1000):
        size.answered(100, turn * 0.25)
    assert size.window == FIRST_WINDOW


def test_a_refusal_cuts_the_window_and_it_grows_by_one_per_round() -> None:
    size = Size(0.0)
    size.cut(1.0)
    assert size.window == pytest.approx(0.8 * FIRST_WINDOW)
    size.full = True
    size.answered(51, 2.0)
    assert size.window == pytest.approx(0.8 * FIRST_WINDOW + 1, abs=0.01)


def learner() -> Learner:
    return Learner(0.0, draw=lambda: 1.0)


def test_pauses_grow_and_a_burst_of_refusals_is_one() -> None:
    found, now, pauses = learner(), 0.0, list[float]()
    for _ in range(9):
        for _ in range(20):
            found.note(Report(worker="w", limited=1), now, bounded=False)
        pauses.append(found.pause_left(now))
        now += pauses[-1]
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, LONGEST_PAUSE_S]


def test_a_told_pause_is_kept_and_never_shortened() -> None:
    found = learner()
    found.note(Report(worker="w", limited=1, after_s=7.0), 0.0, bounded=False)
    found.note(Report(worker="v", limited=1, after_s=1.0), 0.1, bounded=False)
    assert found.pause_left(0.1) == pytest.approx(6.9)


def test_a_server_that_fails_is_probed_at_short_intervals_until_it_answers() -> None:
    found, now = learner(), 0.0
    found.note(Report(worker="w", failed=5, trouble=True), now, bounded=False)
    for _ in range(6):
        assert found.probing
        now += found.pause_left(now)
        found.note(Report(worker="w", failed=1), now, bounded=False)
    assert found.pause_left(now) == LONGEST_PROBE_S
    now += LONGEST_PROBE_S
    found.note(Report(worker="w", accepted=1), now, bounded=False)
    assert not found.probing
    # The ramp: at least one request a second, and no bound after it.
    assert 0 < found.rate(now) <= 1
    assert found.rate(now + 60) == 0


def test_a_single_slip_under_a_kept_limit_cuts_nothing() -> None:
    found = learner()
    found.note(Report(worker="w", accepted=1), 1.0, bounded=True, bound=1.0)
    found.note(Report(worker="w", limited=1, after_s=0.1), 1.1, bounded=True, bound=1.0)
    # One refusal, after one answer, is no half of all.
    assert (found.ceiling, found.window) == (0.0, FIRST_WINDOW)


def test_many_refusals_under_a_kept_limit_mean_that_others_use_it_too() -> None:
    found = learner()
    found.note(Report(worker="w", accepted=50), 1.0, bounded=True, bound=20.0)
    found.note(Report(worker="w", limited=10, after_s=0.1), 1.1, bounded=True, bound=20.0)
    assert found.ceiling == pytest.approx(16)


def test_the_ceiling_starts_at_what_was_accepted_and_grows_again() -> None:
    found = learner()
    for tenth in range(50):
        found.note(Report(worker="w", accepted=2), tenth / 10, bounded=False)
    found.note(Report(worker="w", limited=3, after_s=1.0), 5.0, bounded=False)
    assert found.ceiling == pytest.approx(20, rel=0.05)
    for tenth in range(60, 120):
        found.note(Report(worker="w", accepted=2), tenth / 10, bounded=False)
    assert 20 < found.ceiling < 40
