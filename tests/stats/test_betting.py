from __future__ import annotations

from itertools import pairwise, permutations, product
from math import log, prod, sqrt

import numpy as np
import pytest

from judgebias.stats.betting import STEPS, betting_interval
from judgebias.stats.interval import Interval


def holds(interval: Interval, mean: float) -> bool:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low - 1e-12 <= mean <= interval.high + 1e-12


@pytest.mark.parametrize("half_width", [0.0, 0.1])
@pytest.mark.parametrize("units", [(0, 0, 0, 0, 1, 1, 1, 1), (0, 0, 0.5, 1), (0, 0, 0, 0, 0, 0, 1)])
def test_of_all_orders_of_a_set_few_ever_exclude_its_mean(units, half_width: float) -> None:
    mean, alpha = sum(units) / len(units), 0.5
    orders = sorted(set(permutations(units)))
    # What was excluded at any look stays excluded, so the last look tells of all.
    missed = [
        not holds(
            betting_interval(order, alpha=alpha, n_units=len(units), half_width=half_width), mean
        )
        for order in orders
    ]
    assert np.mean(missed) <= alpha


@pytest.mark.parametrize("chances", [(0.5, 0.0, 0.5), (0.7, 0.2, 0.1), (0.1, 0.8, 0.1)])
@pytest.mark.slow
def test_of_all_sequences_of_draws_few_ever_exclude_the_mean(chances) -> None:
    values, alpha = (0.0, 0.5, 1.0), 0.5
    mean = sum(p * value for p, value in zip(chances, values, strict=True))
    missed = 0.0
    for places in product(range(3), repeat=7):
        sequence = [values[place] for place in places]
        if not holds(betting_interval(sequence, alpha=alpha), mean):
            missed += prod(chances[place] for place in places)
    assert missed <= alpha + 1e-12


def test_units_of_any_size_and_pairs_without_a_verdict() -> None:
    # (total, pairs with a verdict) of each unit; up to three were asked.
    units = ((0.0, 1), (3.0, 3), (0.5, 2), (0.0, 0), (1.0, 1), (0.0, 2))
    mean, alpha = sum(t for t, _ in units) / sum(n for _, n in units), 0.5
    intervals = [
        betting_interval(
            [t for t, _ in order], [n for _, n in order], alpha=alpha, largest=3, n_units=6
        )
        for order in permutations(units)
    ]
    assert np.mean([not holds(interval, mean) for interval in intervals]) <= alpha


def by_every_candidate(units, alpha, largest, n_units, half_width) -> tuple[float, float]:
    """The same bounds the slow way: each candidate's two fortunes followed bet by bet."""
    low, high = 0.0, 1.0
    for i in range(STEPS + 1):
        m = i / STEPS
        fortunes = {(side, kind): 0.5 for side in (1, -1) for kind in ("plain", "hoped")}
        total, pairs, squares = 0.0, 0, 0.25
        best = {1: 0.0, -1: 0.0}
        for seen, (t, n) in enumerate(units):
            variance = squares / (seen + 1)
            plain = sqrt(2 * log(2 / alpha) / (variance * (seen + 1) * log(seen + 2)))
            hoped = half_width * (pairs + 1) / (seen + 1) / (largest * variance)
            stakes = {"plain": min(plain, 0.95), "hoped": min(hoped or plain, 0.95)}
            gap = t - m * n
            if n_units is not None:
                gap += (total - m * pairs) / (n_units - seen)
            for side, kind in fortunes:
                bet = max(side * stakes[kind] * gap / largest, -0.95)
                fortunes[side, kind] *= 1 + bet
            for side in best:
                best[side] = max(best[side], fortunes[side, "plain"] + fortunes[side, "hoped"])
            squares += ((t - n * (total + 0.5) / (pairs + 1)) / largest) ** 2
            total, pairs = total + t, pairs + n
        if best[1] >= 2 / alpha:
            low = max(low, m)
        if best[-1] >= 2 / alpha:
            high = min(high, m)
    return low, high


@pytest.mark.parametrize("half_width", [0.0, 0.05])
@pytest.mark.parametrize("n_units", [None, 60])
@pytest.mark.slow
def test_the_search_finds_what_every_candidate_in_turn_gives(n_units, half_width: float) -> None:
    rng = np.random.default_rng(12)
    sizes = rng.integers(0, 4, size=55)
    units = [(float(rng.binomial(2 * n, 0.3)) / 2, int(n)) for n in sizes]
    found = betting_interval(
        [t for t, _ in units], sizes, alpha=0.2, largest=3, n_units=n_units, half_width=half_width
    )
    slow = by_every_candidate(units, 0.2, 3, n_units, half_width)
    assert 0.0 < slow[0] < slow[1] < 1.0
    assert (found.low, found.high) == pytest.approx(slow, abs=1e-12)


def of_set(rng: np.random.Generator, alpha: float) -> tuple[Interval, float]:
    x = rng.permutation(np.repeat([0.0, 0.5, 1.0], [80, 190, 30]))
    return betting_interval(x, alpha=alpha, n_units=x.size, half_width=0.05), float(x.mean())


def of_population(rng: np.random.Generator, alpha: float) -> tuple[Interval, float]:
    x = rng.choice([0.0, 0.25, 0.5, 1.0], size=300, p=[0.02, 0.03, 0.9, 0.05])
    return betting_interval(x, alpha=alpha, half_width=0.02), 0.0075 + 0.45 + 0.05


def of_clusters(rng: np.random.Generator, alpha: float) -> tuple[Interval, float]:
    direction = rng.choice([0.3, 0.7], size=60)
    sizes = rng.integers(0, 6, size=60)
    return betting_interval(rng.binomial(sizes, direction), sizes, alpha=alpha, largest=5), 0.5


@pytest.mark.parametrize("simulate", [of_set, of_population, of_clusters])
@pytest.mark.slow
def test_coverage_over_two_thousand_runs_with_a_look_after_every_unit(simulate) -> None:
    alpha, runs = 0.05, 2000
    missed = 0
    for run in range(runs):
        interval, mean = simulate(np.random.default_rng([11, run]), alpha)
        missed += not holds(interval, mean)
    assert missed / runs <= alpha + 3 * (alpha * (1 - alpha) / runs) ** 0.5


def test_a_later_look_never_widens_and_the_whole_set_is_held() -> None:
    x = np.random.default_rng(2).permutation(np.repeat([0.0, 0.5, 1.0], [40, 120, 40]))
    looks = [betting_interval(x[:n], alpha=0.05, n_units=200) for n in range(0, 201, 20)]
    for before, after in pairwise(looks):
        assert (before.low or 0.0) <= (after.low or 0.0)
        assert (before.high or 0.0) >= (after.high or 0.0)
    assert (looks[0].low, looks[0].high) == (0.0, 1.0)
    assert holds(looks[-1], float(x.mean()))


def test_a_finite_set_is_known_better_than_the_population_it_stands_for() -> None:
    x = np.random.default_rng(4).permutation(np.repeat([0.0, 1.0], [200, 200]))[:360]
    of_all, of_few = betting_interval(x, alpha=0.05), betting_interval(x, alpha=0.05, n_units=400)
    assert (of_few.high or 1) - (of_few.low or 0) < 0.6 * ((of_all.high or 1) - (of_all.low or 0))


def test_the_hoped_for_width_is_reached_with_fewer_units() -> None:
    x = np.random.default_rng(6).choice([0.0, 0.5, 1.0], size=1200, p=[0.2, 0.6, 0.2])
    hoped = betting_interval(x, alpha=0.05, half_width=0.025)
    plain = betting_interval(x, alpha=0.05)
    assert (hoped.high or 1) - (hoped.low or 0) < 0.85 * ((plain.high or 1) - (plain.low or 0))


def test_bounds_mirror_and_are_whole_candidates() -> None:
    x = np.random.default_rng(8).choice([0.0, 0.5, 1.0], size=150, p=[0.1, 0.5, 0.4])
    one, other = betting_interval(x, alpha=0.05), betting_interval(1.0 - x, alpha=0.05)
    assert (one.low, one.high) == pytest.approx((1 - (other.high or 0), 1 - (other.low or 0)))
    assert (one.low or 0) * STEPS == pytest.approx(round((one.low or 0) * STEPS))


@pytest.mark.parametrize(
    ("totals", "sizes", "largest", "n_units"),
    [
        ([1.5], None, 1, None),
        ([-0.1], None, 1, None),
        ([1.0], [3], 2, None),
        ([0.0, 1.0], None, 1, 1),
    ],
)
def test_what_cannot_be_is_refused(totals, sizes, largest, n_units) -> None:
    with pytest.raises(ValueError, match=r"expected|outside"):
        betting_interval(totals, sizes, alpha=0.05, largest=largest, n_units=n_units)
