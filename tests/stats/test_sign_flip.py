from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from math import erfc, sqrt
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.stats.binomial import sign_test_p
from judgebias.stats.sign_flip import sign_flip_p

CASES = json.loads((Path(__file__).parent / "cases" / "sign_flip.json").read_text())["cases"]


def by_enumeration(d: list[int]) -> float | None:
    kept = [x for x in d if x]
    signed = [
        abs(sum(sign * x for sign, x in zip(signs, kept, strict=True)))
        for signs in product((1, -1), repeat=len(kept))
    ]
    extreme = sum(value >= abs(sum(kept)) for value in signed)
    return float(Fraction(extreme, len(signed))) if kept else None


def by_dictionary(d: list[int]) -> Fraction:
    ways = {0: 1}
    for x in d:
        grown: dict[int, int] = {}
        for total, count in ways.items():
            for value in (total + x, total - x):
                grown[value] = grown.get(value, 0) + count
        ways = grown
    extreme = sum(count for total, count in ways.items() if abs(total) >= abs(sum(d)))
    return Fraction(extreme, 2 ** len(d))


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["d"]))
def test_enumerated_cases(case: dict[str, list[int]]) -> None:
    assert sign_flip_p(case["d"]) == case["p"]


@given(st.lists(st.integers(-12, 12), max_size=10))
def test_it_counts_sign_patterns_exactly(d: list[int]) -> None:
    assert sign_flip_p(d) == by_enumeration(d)


@pytest.mark.parametrize("seed", range(6))
def test_many_mixed_clusters_keep_twelve_digits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    signs = rng.choice([1, -1], 63 + 40 * seed, p=[0.5 + seed / 12, 0.5 - seed / 12])
    d = (rng.integers(1, 4 + 3 * seed, signs.size) * signs).tolist()
    exact = by_dictionary(d)
    p = sign_flip_p(d)
    assert p is not None
    assert abs(Fraction(p) / exact - 1) < Fraction(1, 10**12)


@given(st.lists(st.sampled_from([-3, 3]), min_size=1, max_size=300))
def test_equal_sizes_are_the_sign_test_to_the_last_bit(d: list[int]) -> None:
    assert sign_flip_p(d) == sign_test_p(d.count(3), len(d))


def test_equal_sizes_are_the_sign_test_at_any_number() -> None:
    p = sign_flip_p([2, -2, 0], [500_100_000, 499_900_000, 7])
    assert p == sign_test_p(500_100_000, 10**9)


@given(st.lists(st.integers(-5, 5), max_size=80), st.integers(1, 9))
def test_order_sign_unit_and_profiles_change_nothing(d: list[int], unit: int) -> None:
    p = sign_flip_p(d)
    assert sign_flip_p(d[::-1]) == p
    assert sign_flip_p([-x for x in d]) == p
    assert sign_flip_p([unit * x for x in d]) == p
    values, counts = np.unique(np.array(d, dtype=np.int64), return_counts=True)
    assert sign_flip_p(values, counts) == p


def test_no_leaning_cluster_is_not_available() -> None:
    assert sign_flip_p([]) is None
    assert sign_flip_p([0, 0]) is None
    assert sign_flip_p([1], [0]) is None


def test_cancelling_clusters_are_no_evidence() -> None:
    assert sign_flip_p([7, -7]) == 1.0
    assert sign_flip_p([3, -2, -1]) == 1.0


def test_far_above_the_exact_range_it_is_normal_with_continuity() -> None:
    d, counts = [2, -2, 4, -4], [5000, 4800, 3000, 2900]
    total, squares = 2 * 200 + 4 * 100, 4 * 9800 + 16 * 5900
    expected = erfc((total - 2) / sqrt(squares) / sqrt(2))
    assert sign_flip_p(d, counts) == pytest.approx(expected, rel=1e-12)


def test_the_normal_range_meets_the_exact_range() -> None:
    exact = sign_flip_p([1, -1, 2, -2], [3300, 3200, 3350, 3250])
    normal = erfc((100 + 2 * 100 - 1) / sqrt(6500 + 4 * 6600) / sqrt(2))
    assert exact == pytest.approx(normal, rel=1e-3)
    assert exact != normal


def test_rates_are_refused() -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        sign_flip_p([0.5, 1.0])


def test_ten_thousand_mixed_clusters_take_less_than_a_tenth_of_a_second() -> None:
    rng = np.random.default_rng(3)
    d = np.minimum(rng.geometric(0.55, 10_000), 30) * rng.choice([1, -1], 10_000)
    assert np.abs(d).sum() <= 20_000
    times: list[float] = []
    for _ in range(5):
        start = perf_counter()
        sign_flip_p(d)
        times.append(perf_counter() - start)
    assert min(times) < 0.1


def test_known_sign_flip_tests(shared: Path) -> None:
    for case in json.loads((shared / "golden" / "sign_flip.json").read_text())["cases"]:
        assert sign_flip_p(case["d"]) == pytest.approx(case["p"], rel=1e-12), case
