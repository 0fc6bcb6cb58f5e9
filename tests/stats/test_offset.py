from __future__ import annotations

import json
from math import exp, log
from pathlib import Path

import pytest
from scipy import stats

from judgebias.stats.offset import detectable_offset, position_offset


def test_the_offset_mirrors_with_the_slots() -> None:
    estimate, interval = position_offset(22, 3)
    mirrored, mirror = position_offset(3, 22)
    assert estimate == pytest.approx(0.5 * log(22.5 / 3.5))
    assert mirrored == pytest.approx(-0.5 * log(22.5 / 3.5))
    assert interval.low is not None
    assert interval.high is not None
    assert (mirror.low, mirror.high) == pytest.approx((-interval.high, -interval.low))


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [(0, 0, False, False), (9, 0, True, False), (0, 9, False, True), (1, 1, True, True)],
)
def test_an_empty_side_leaves_an_end_open(first: int, second: int, *, low: bool, high: bool):
    estimate, interval = position_offset(first, second)
    assert (estimate is not None) == (first > 0 and second > 0)
    assert (interval.low is not None, interval.high is not None) == (low, high)


@pytest.mark.parametrize("n", range(6))
def test_fewer_than_six_leaning_pairs_show_nothing(n: int) -> None:
    assert detectable_offset(n) is None


@pytest.mark.parametrize("n", [6, 7, 23, 100, 5001])
@pytest.mark.slow
def test_the_detectable_offset_has_eighty_percent_power(n: int) -> None:
    offset = detectable_offset(n)
    assert offset is not None
    share = 1.0 / (1.0 + exp(-2.0 * offset))
    critical = next(k for k in range(n + 1) if stats.binom.sf(k - 1, n, 0.5) <= 0.025)
    assert stats.binom.sf(critical - 1, n, share) == pytest.approx(0.8, rel=1e-9)


def test_known_offsets(shared: Path) -> None:
    golden = json.loads((shared / "golden" / "offset.json").read_text())
    for case in golden["cases"]:
        estimate, interval = position_offset(case["stuck_first"], case["stuck_second"])
        for got, key in ((estimate, "offset"), (interval.low, "low"), (interval.high, "high")):
            assert got == (case[key] and pytest.approx(case[key], rel=1e-9)), case
    for case in golden["detectable"]:
        expected = case["offset"] and pytest.approx(case["offset"], rel=1e-9)
        assert detectable_offset(case["n"]) == expected, case
