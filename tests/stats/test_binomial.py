from __future__ import annotations

import json
from fractions import Fraction
from math import comb, isclose, log10
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgebias.stats.binomial import (
    clopper_pearson,
    sign_test_log10_p,
    sign_test_p,
    wilson,
    wilson_of_rate,
)
from judgebias.stats.interval import Z95, Interval, t95

CASES = json.loads((Path(__file__).parent / "cases" / "sign_test.json").read_text())["cases"]


def exact_fraction(k: int, n: int) -> Fraction:
    ways = sum(comb(n, i) for i in range(min(k, n - k) + 1))
    return min(Fraction(1), Fraction(2 * ways, 2**n))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['k']}of{case['n']}")
def test_the_sign_test_is_the_exact_fraction_rounded_once(case: dict[str, float]) -> None:
    assert sign_test_p(int(case["k"]), int(case["n"])) == case["p"]


def test_the_sign_test_equals_the_fraction_for_every_small_count() -> None:
    for n in range(61):
        for k in range(n + 1):
            assert sign_test_p(k, n) == float(exact_fraction(k, n))


@given(st.integers(0, 2000), st.data())
def test_the_sign_test_equals_the_fraction_up_to_2000(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    assert sign_test_p(k, n) == float(exact_fraction(k, n))


@given(st.integers(1, 10**9), st.data())
def test_the_sign_test_is_symmetric_and_a_probability(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    p = sign_test_p(k, n)
    assert p == sign_test_p(n - k, n)
    assert 0.0 <= p <= 1.0
    assert np.isfinite(sign_test_log10_p(k, n))


@pytest.mark.parametrize("k", [0, 1, 15, 16, 600, 900, 1000, 1180, 1250])
def test_the_closed_form_agrees_with_fractions_above_2000(k: int) -> None:
    exact = exact_fraction(k, 2501)
    assert sign_test_log10_p(k, 2501) == pytest.approx(
        log10(exact.numerator) - log10(exact.denominator), abs=1e-10
    )
    assert isclose(sign_test_p(k, 2501), float(exact), rel_tol=1e-11, abs_tol=1e-307)


def test_the_logarithm_goes_on_where_the_p_value_is_zero() -> None:
    assert sign_test_p(0, 10_000) == 0.0
    assert sign_test_log10_p(0, 10_000) == pytest.approx(log10(2) - 10_000 * log10(2), abs=1e-10)


def test_numpy_counts_do_not_wrap() -> None:
    assert sign_test_p(np.int64(900), np.int64(2000)) == sign_test_p(900, 2000)
    assert sign_test_log10_p(np.int64(9), np.int64(5000)) == sign_test_log10_p(9, 5000)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_refused(k: int, n: int) -> None:
    for function in (sign_test_p, sign_test_log10_p, wilson, clopper_pearson):
        with pytest.raises(ValueError, match="expected 0 <= k <= n"):
            function(k, n)


def test_no_trials_have_a_p_value_but_no_interval() -> None:
    assert sign_test_p(0, 0) == 1.0
    assert wilson(0, 0) is None
    assert clopper_pearson(0, 0) is None


@given(st.integers(1, 10**6), st.data())
def test_intervals_contain_the_share_and_mirror(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    for function in (wilson, clopper_pearson):
        interval, mirrored = function(k, n), function(n - k, n)
        assert interval is not None
        assert mirrored is not None
        assert interval.low is not None
        assert interval.high is not None
        assert interval.low <= k / n <= interval.high
        assert mirrored.high == pytest.approx(1.0 - interval.low, abs=1e-11)
        assert (interval.low == 0.0) == (k == 0)
        assert (interval.high == 1.0) == (k == n)


def test_wilson_solves_its_equation() -> None:
    interval = wilson_of_rate(0.3, 41.5, t95(7))
    for bound in (interval.low, interval.high):
        assert bound is not None
        assert abs(0.3 - bound) / (bound * (1 - bound) / 41.5) ** 0.5 == pytest.approx(t95(7))


def test_clopper_pearson_bounds_leave_a_fortieth_in_each_tail() -> None:
    interval = clopper_pearson(4, 19)
    assert interval is not None
    assert stats.binom.sf(3, 19, interval.low) == pytest.approx(0.025, rel=1e-10)
    assert stats.binom.cdf(4, 19, interval.high) == pytest.approx(0.025, rel=1e-10)


def test_t_approaches_the_normal_quantile_and_needs_a_degree_of_freedom() -> None:
    assert t95(1) == pytest.approx(12.706204736432095)
    assert t95(10**9) == pytest.approx(Z95, rel=1e-8)
    with pytest.raises(ValueError, match="0 degrees of freedom"):
        t95(0)


def test_known_sign_tests_to_the_last_bit(shared: Path) -> None:
    for case in json.loads((shared / "golden" / "sign_test_exact.json").read_text())["cases"]:
        assert sign_test_p(case["k"], case["n"]) == case["p"], case


def test_known_sign_tests_up_to_a_billion(shared: Path) -> None:
    for case in json.loads((shared / "golden" / "sign_test.json").read_text())["cases"]:
        assert isclose(sign_test_p(case["k"], case["n"]), case["p"], rel_tol=1e-9), case
        assert abs(sign_test_log10_p(case["k"], case["n"]) - case["log10_p"]) <= 1e-9, case


def test_known_wilson_intervals(shared: Path) -> None:
    for case in json.loads((shared / "golden" / "wilson.json").read_text())["cases"]:
        interval = wilson(case["k"], case["n"])
        if case["low"] is None:
            assert interval is None
        else:
            expected = Interval(low=case["low"], high=case["high"])
            assert interval is not None
            assert interval.low == pytest.approx(expected.low, rel=1e-9)
            assert interval.high == pytest.approx(expected.high, rel=1e-9)


def test_the_published_table_pooled_and_paired(shared: Path) -> None:
    table = json.loads((shared / "golden" / "published_two_order_table.json").read_text())
    significant = {"pooled": 0, "paired": 0}
    for row in table["rows"]:
        firsts = row["agreed"] + 2 * row["stuck_first"]
        pooled = sign_test_p(firsts, 2 * row["n_pairs"])
        paired = sign_test_p(row["stuck_first"], row["stuck_first"] + row["stuck_second"])
        assert pooled == pytest.approx(row["published_p"], abs=1e-6)
        assert pooled == pytest.approx(row["p_value"], rel=1e-9)
        assert paired == pytest.approx(row["p_paired"], rel=1e-9)
        significant["pooled"] += pooled < 0.05
        significant["paired"] += paired < 0.05
    assert significant == table["significant_at_05"]
