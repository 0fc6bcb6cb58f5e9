from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgebias.stats.multiplicity import benjamini_hochberg, holm

P_VALUES = st.lists(st.none() | st.floats(0, 1), max_size=12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_the_false_discovery_rate_agrees_with_scipy(p: list[float]) -> None:
    assert benjamini_hochberg(p) == pytest.approx(list(stats.false_discovery_control(p)))


@given(P_VALUES)
@pytest.mark.slow
def test_what_was_not_tested_is_outside_the_family(p: list[float | None]) -> None:
    for adjust in (benjamini_hochberg, holm):
        adjusted = adjust(p)
        assert [value is None for value in adjusted] == [value is None for value in p]
        tested = [value for value in p if value is not None]
        assert [value for value in adjusted if value is not None] == adjust(tested)


@given(P_VALUES)
def test_adjusting_never_helps_and_holm_is_the_stricter(p: list[float | None]) -> None:
    for raw, bh, strict in zip(p, benjamini_hochberg(p), holm(p), strict=True):
        if raw is not None:
            assert bh is not None
            assert strict is not None
            assert raw <= bh * (1 + 1e-15)
            assert bh <= strict * (1 + 1e-15)
            assert strict <= 1.0


@given(st.permutations([0.001, 0.02, 0.02, 0.4, 1.0, 0.0301]))
def test_the_order_of_the_rows_changes_no_bit(p: list[float]) -> None:
    for adjust in (benjamini_hochberg, holm):
        by_value = dict(zip(p, adjust(p), strict=True))
        ascending = sorted(p)
        assert [by_value[value] for value in ascending] == adjust(ascending)


def test_holm_by_hand() -> None:
    assert holm([0.25, 0.0625, None, 0.125]) == [0.25, 0.1875, None, 0.25]


def test_known_adjustments(shared: Path) -> None:
    for case in json.loads((shared / "golden" / "multiplicity.json").read_text())["cases"]:
        assert benjamini_hochberg(case["p"]) == pytest.approx(case["bh"], rel=1e-9)
        assert holm(case["p"]) == pytest.approx(case["holm"], rel=1e-9)
