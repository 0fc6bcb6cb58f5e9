from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from judgebias.stats.binomial import sign_test_p, wilson_of_rate
from judgebias.stats.interval import Z95
from judgebias.stats.sampling import (
    Estimate,
    first_call_p,
    sample_size,
    sampled_swing,
    sampled_win_rate,
)

SLOTS = {"first": 0, "second": 1, "tie": 2}
BOTH = [[4, 9, 1], [7, 3, 0], [2, 0, 4]]
REST = [[20, 15, 3], [11, 17, 5]]
SIGN = {0: 1.0, 1: -1.0, 2: 0.0}


def expanded(table: list[list[int]]) -> list[tuple[int, int]]:
    return [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]


def score(order: int, slot: int) -> float:
    return 0.5 + (SIGN[slot] if order == 0 else -SIGN[slot]) / 2


def slow_swing(sample: list[tuple[int, int]], rest: list[tuple[int, int]]) -> tuple[float, float]:
    x = [(SIGN[ab] + SIGN[ba]) / 2 for ab, ba in sample]
    s = [SIGN[slot] for _, slot in rest]
    weights = [len(x) / np.var([*x, 1.0, -1.0], ddof=1), len(s) / np.var(s, ddof=1)]
    return np.average([np.mean(x), np.mean(s)], weights=weights), 1 / sqrt(sum(weights))


def slow_win_rate(
    sample: list[tuple[int, int]], rest: list[tuple[int, int]]
) -> tuple[float, float, float]:
    w = np.array([(score(0, ab) + score(1, ba)) / 2 for ab, ba in sample])
    final = np.array([{(0, 1): 1.0, (1, 0): 0.0}.get(pair, 0.5) for pair in sample])
    y = np.array([score(order, slot) for order, slot in rest])
    precise = len(w) / np.var([*w, 1.0, 0.0], ddof=1), len(y) / np.var(y, ddof=1)
    a, e = precise[0] / sum(precise), final - w
    variance = np.var(a * w + e, ddof=1) / len(w) + (1 - a) ** 2 * np.var(y, ddof=1) / len(y)
    return a, a * w.mean() + (1 - a) * y.mean() + e.mean(), sqrt(variance)


def available(estimate: Estimate | None) -> Estimate:
    assert estimate is not None
    return estimate


def test_the_swing_follows_its_definition() -> None:
    estimate = available(sampled_swing(BOTH, REST))
    value, se = slow_swing(expanded(BOTH), expanded(REST))
    assert (estimate.value, estimate.se) == pytest.approx((value, se), rel=1e-12)
    assert estimate.interval is not None
    assert estimate.interval.low == pytest.approx(value - Z95 * se)


def test_the_win_rate_follows_its_definition() -> None:
    estimate = available(sampled_win_rate(BOTH, REST))
    expected = slow_win_rate(expanded(BOTH), expanded(REST))
    assert (estimate.weight, estimate.value, estimate.se) == pytest.approx(expected, rel=1e-12)


def test_without_a_rest_the_sample_speaks_alone() -> None:
    nothing = np.zeros((2, 3), dtype=np.int64)
    win_rate, swing = sampled_win_rate(BOTH, nothing), sampled_swing(BOTH, nothing)
    assert available(win_rate).value == pytest.approx((9 + 0.5 * 14) / 30)
    assert available(swing).value == pytest.approx((4 - 3 + 0.5 * (1 + 2)) / 30)
    assert available(win_rate).weight == available(swing).weight == 1.0


@pytest.mark.parametrize("both", [np.zeros((3, 3), dtype=int), np.eye(3, dtype=int) * [1, 0, 0]])
def test_fewer_than_two_sampled_pairs_are_not_available(both: np.ndarray) -> None:
    assert sampled_swing(both, REST) is None
    assert sampled_win_rate(both, REST) is None


def test_a_rest_that_is_all_alike_has_a_value_but_no_interval() -> None:
    always_first = [[30, 0, 0], [0, 0, 0], [0, 0, 0]]
    swing = available(sampled_swing(always_first, [[40, 0, 0], [35, 0, 0]]))
    assert (swing.value, swing.se, swing.interval) == (1.0, None, None)
    always_a = [[0, 30, 0], [0, 0, 0], [0, 0, 0]]
    win_rate = available(sampled_win_rate(always_a, [[40, 0, 0], [0, 35, 0]]))
    assert (win_rate.value, win_rate.se, win_rate.interval) == (1.0, None, None)


def test_tables_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"expected \(3, 3\)"):
        sampled_swing(REST, BOTH)


def test_the_first_calls_take_the_sign_test() -> None:
    assert first_call_p(661, 1340) == sign_test_p(661, 1340)
    assert first_call_p(0, 0) is None


@pytest.mark.parametrize("consistency", [0.0, 0.3, 0.5, 0.8, 0.97, 1.0])
@pytest.mark.parametrize("width", [0.02, 0.05, 0.1, 0.3])
def test_the_sample_size_is_the_smallest_that_is_narrow_enough(
    consistency: float, width: float
) -> None:
    def got(n: int) -> float:
        interval = wilson_of_rate(consistency, n, Z95)
        assert interval.low is not None
        assert interval.high is not None
        return interval.high - interval.low

    m = sample_size(consistency, width)
    assert got(m) <= width < got(m - 1)


def test_an_impossible_sample_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"consistency 1\.2"):
        sample_size(1.2, 0.1)


def test_the_known_half_cost_design(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "sampled.json").read_text())
    both, rest = np.zeros((3, 3), dtype=np.int64), np.zeros((2, 3), dtype=np.int64)
    first_calls = [pair[pair["first_order"]] for pair in golden["pairs"]]
    for pair, first_call in zip(golden["pairs"], first_calls, strict=True):
        if pair["both"]:
            both[SLOTS[pair["ab"]], SLOTS[pair["ba"]]] += 1
        else:
            rest[int(pair["first_order"] == "ba"), SLOTS[first_call]] += 1
    win_rate, swing = available(sampled_win_rate(both, rest)), available(sampled_swing(both, rest))
    assert win_rate.interval is not None
    firsts = first_calls.count("first")
    decisive = firsts + first_calls.count("second")
    got = {
        "weight": win_rate.weight,
        "win_rate_a": win_rate.value,
        "win_rate_a_se": win_rate.se,
        "win_rate_a_low": win_rate.interval.low,
        "win_rate_a_high": win_rate.interval.high,
        "swing": swing.value,
        "swing_se": swing.se,
        "first_call_first": firsts,
        "first_call_decisive": decisive,
        "first_call_p": first_call_p(firsts, decisive),
    }
    assert got == pytest.approx({key: golden["estimates"][key] for key in got}, rel=1e-9)
    for case in golden["sample_size"]:
        assert sample_size(case["consistency"], case["width"]) == case["m"]
