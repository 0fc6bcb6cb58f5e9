"""Against the definitions, computed pair by pair with exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.stats.binomial import wilson
from judgebias.stats.clustered import agreement_rate, mean_interval, ratio_interval
from judgebias.stats.interval import Interval, t95

Cluster = list[Fraction]
HALVES = [Fraction(-1), Fraction(-1, 2), Fraction(0), Fraction(1, 2), Fraction(1)]
CLUSTERS = st.lists(
    st.lists(st.sampled_from(HALVES), min_size=1, max_size=4), min_size=6, max_size=14
)


def slow_mean_interval(clusters: list[Cluster], low: int, high: int) -> tuple[float, float]:
    with_pseudo = [*clusters, [Fraction(low)], [Fraction(high)]]
    values = [value for cluster in with_pseudo for value in cluster]
    g, n = len(with_pseudo), len(values)
    mean = sum(values, Fraction(0)) / n
    squares = sum(sum(value - mean for value in cluster) ** 2 for cluster in with_pseudo)
    half = t95(g - 1) * sqrt(Fraction(g, g - 1) * squares / n**2)
    return max(low, float(mean) - half), min(high, float(mean) + half)


def slow_ratio_interval(calls: list[tuple[int, int]]) -> tuple[float, float]:
    with_pseudo = [*calls, (2, 2), (0, 2)]
    first, decisive = (sum(column) for column in zip(*with_pseudo, strict=True))
    ratio, g = Fraction(first, decisive), len(with_pseudo)
    squares = sum((f - ratio * d) ** 2 for f, d in with_pseudo)
    half = t95(g - 1) * sqrt(Fraction(g, g - 1) * squares / decisive**2)
    return max(0.0, float(ratio) - half), min(1.0, float(ratio) + half)


def slow_design_effect(clusters: list[list[int]]) -> float:
    values = [value for cluster in clusters for value in cluster]
    g, n = len(clusters), len(values)
    p = Fraction(sum(values), n)
    variance = (
        Fraction(g, g - 1) * sum(sum(u - p for u in cluster) ** 2 for cluster in clusters) / n**2
    )
    return max(1.0, float(variance / (p * (1 - p) / n)))


def bounds(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def doubled(clusters: list[Cluster]) -> tuple[list[int], list[int], list[int]]:
    return [int(2 * sum(c)) for c in clusters], [len(c) for c in clusters], [1] * len(clusters)


@given(CLUSTERS)
def test_the_mean_follows_its_definition(clusters: list[Cluster]) -> None:
    interval = mean_interval(*doubled(clusters), scale=2, low=-1, high=1)
    assert bounds(interval) == pytest.approx(slow_mean_interval(clusters, -1, 1), abs=1e-13)


@given(CLUSTERS, st.randoms(use_true_random=False))
def test_collapsed_and_shuffled_profiles_give_the_same_bits(clusters, random) -> None:
    sums, sizes, ones = doubled(clusters)
    expected = mean_interval(sums, sizes, ones, scale=2, low=-1, high=1)
    profiles, counts = np.unique(np.array([sums, sizes]), axis=1, return_counts=True)
    assert mean_interval(*profiles, counts, scale=2, low=-1, high=1) == expected
    random.shuffle(clusters)
    assert mean_interval(*doubled(clusters), scale=2, low=-1, high=1) == expected


def test_a_constant_judge_still_has_a_width() -> None:
    low, high = bounds(mean_interval([0], [1], [50], scale=1, low=-1, high=1))
    assert -0.1 < low < 0.0 < high < 0.1


def test_bounds_are_clipped_to_the_range() -> None:
    assert bounds(mean_interval([2], [1], [8], scale=2, low=0, high=1))[1] == 1.0
    assert bounds(ratio_interval([2], [2], [8]))[1] == 1.0


def test_ten_million_pairs_do_not_overflow() -> None:
    interval = mean_interval([5_000_000, 0], [10_000_000, 1], [5, 3], scale=1, low=-1, high=1)
    n, g = 50_000_005, 10
    mean = Fraction(25_000_000, n)
    residuals = [5 * (5_000_000 - mean * 10**7) ** 2, 3 * mean**2, (1 - mean) ** 2, (1 + mean) ** 2]
    half = t95(g - 1) * sqrt(Fraction(g, g - 1) * sum(residuals) / n**2)
    assert bounds(interval) == pytest.approx((float(mean) - half, float(mean) + half), abs=1e-15)


def test_ten_billion_clusters_do_not_overflow() -> None:
    wide = mean_interval([1, -1], [1, 1], [6 * 10**9, 4 * 10**9], scale=1, low=-1, high=1)
    assert bounds(wide) == pytest.approx((0.2 - 1.92e-5, 0.2 + 1.92e-5), abs=1e-7)


@given(
    st.lists(
        st.integers(0, 8).flatmap(lambda d: st.tuples(st.integers(0, d), st.just(d))),
        min_size=6,
        max_size=14,
    )
)
def test_the_ratio_follows_its_definition(calls: list[tuple[int, int]]) -> None:
    firsts, decisive = zip(*calls, strict=True)
    interval = ratio_interval(firsts, decisive, [1] * len(calls))
    if sum(decisive) == 0:
        assert interval is None
    else:
        assert bounds(interval) == pytest.approx(slow_ratio_interval(calls), abs=1e-13)


def test_clusters_without_a_decisive_call_count_for_the_ratio() -> None:
    assert ratio_interval([1], [2], [5]) is None
    assert ratio_interval([1, 0], [2, 0], [5, 1]) is not None


def test_clusters_without_a_pair_do_not_count_elsewhere() -> None:
    assert mean_interval([1, 0], [1, 0], [5, 9], scale=1, low=-1, high=1) is None
    assert agreement_rate([1, 0], [2, 0], [5, 9]) == (None, None)


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=4), min_size=6, max_size=14))
def test_the_share_follows_its_definition(clusters: list[list[int]]) -> None:
    k, n, g = sum(map(sum, clusters)), sum(map(len, clusters)), len(clusters)
    interval, effect = agreement_rate(
        [sum(c) for c in clusters], [len(c) for c in clusters], [1] * g
    )
    if n == g:
        assert (interval, effect) == (wilson(k, n), 1.0)
        return
    expected = n / g if k in (0, n) else slow_design_effect(clusters)
    assert effect == pytest.approx(expected, rel=1e-12)
    p, n_effective, t = k / n, n / expected, t95(g - 1)
    for bound, inside in zip(bounds(interval), (p == 0.0, p == 1.0), strict=True):
        # Wilson's bounds solve (p - b)^2 = t^2 b (1 - b)/n.
        assert inside or (p - bound) ** 2 == pytest.approx(
            t**2 * bound * (1 - bound) / n_effective, abs=1e-12
        )
    low, high = bounds(interval)
    assert (low == 0.0) == (p == 0.0)
    assert (high == 1.0) == (p == 1.0)


def test_single_pairs_need_no_six_clusters() -> None:
    assert agreement_rate([1, 0], [1, 1], [2, 1]) == (wilson(2, 3), 1.0)
    assert agreement_rate([], [], []) == (None, None)


def test_a_unanimous_share_has_the_clusters_as_its_n() -> None:
    interval, effect = agreement_rate([3], [3], [10])
    low, high = bounds(interval)
    assert effect == 3.0
    assert high == 1.0
    assert low == pytest.approx(10 / (10 + t95(9) ** 2))


def test_alike_pairs_in_a_cluster_weigh_as_one() -> None:
    _, effect = agreement_rate([4, 0], [4, 4], [500, 500])
    assert effect == pytest.approx(4.0 * 1000 / 999)
