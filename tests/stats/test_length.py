from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from scipy import special

from judgebias.stats.interval import t95
from judgebias.stats.length import (
    CallSlope,
    Controlled,
    call_slope,
    length_controlled,
    length_slope,
    log_length_ratio,
)
from judgebias.stats.length_excess import (
    PLAUSIBLE_GOLD_ERROR,
    Excess,
    error_of_people,
    excess_over_gold,
    is_length_bias,
)
from judgebias.stats.logistic import Failure

WORLDS = 200
PAIRS = 400
WEIGHT = 0.9


def test_the_log_ratio_takes_empty_answers() -> None:
    assert log_length_ratio([0, 1, 9], [0, 0, 0]) == pytest.approx(np.log([1, 2, 10]))


def single_calls(
    rng: np.random.Generator, latent: np.ndarray, *, noise: float = 1.0, offset: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Whether A is picked in each order by a judge with independent logistic noise."""
    shown = (latent + sign * offset + noise * rng.logistic(size=latent.size) for sign in (1, -1))
    ab, ba = (x > 0 for x in shown)
    return ab, ba


@pytest.mark.slow
def test_a_planted_weight_is_within_the_interval_of_single_calls() -> None:
    inside = 0
    for seed in range(WORLDS):
        rng = np.random.default_rng(seed)
        ratio = rng.normal(0, 0.8, PAIRS)
        ab, ba = single_calls(rng, WEIGHT * ratio, offset=0.7)
        order = np.repeat([1.0, -1.0], PAIRS)
        slope = call_slope(
            np.tile(ratio, 2), order, np.concatenate([ab, ba]).astype(float),
            np.tile(np.arange(PAIRS), 2),
        )  # fmt: skip
        assert isinstance(slope, CallSlope)
        assert slope.interval is not None
        assert slope.interval.low is not None
        assert slope.interval.high is not None
        inside += slope.interval.low <= WEIGHT <= slope.interval.high
    assert 0.90 <= inside / WORLDS <= 0.99


def test_agreed_pairs_show_twice_the_weight_of_a_call() -> None:
    rng = np.random.default_rng(1)
    ratio = rng.normal(0, 0.8, 40_000)
    ab, ba = single_calls(rng, WEIGHT * ratio, offset=0.7)
    agreed = ab == ba
    slope = length_slope(ratio[agreed], ab[agreed].astype(float))
    assert not isinstance(slope, Failure)
    assert slope.slope == pytest.approx(2 * WEIGHT, abs=4 * slope.se)
    assert slope.se < 0.03


def test_a_judge_that_only_measures_is_separated() -> None:
    ratio = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    assert length_slope(ratio, (ratio > 0).astype(float)) is Failure.SEPARATED


def test_length_control_takes_the_length_out() -> None:
    rng = np.random.default_rng(2)
    ratio = rng.normal(0.8, 0.6, 20_000)
    latent = 2.0 * np.tanh(ratio / ratio.std(ddof=1))
    wins = (rng.random(ratio.size) < special.expit(latent)).astype(float)
    controlled = length_controlled(ratio, wins, np.arange(ratio.size))
    assert isinstance(controlled, Controlled)
    assert controlled.interval is not None
    assert wins.mean() > 0.75
    assert controlled.win_rate == pytest.approx(0.5, abs=0.03)


def test_all_ties_have_a_rate_but_no_interval() -> None:
    ratio = np.linspace(-1, 1, 12)
    controlled = length_controlled(ratio, np.full(12, 0.5), np.arange(12))
    assert isinstance(controlled, Controlled)
    assert (controlled.win_rate, controlled.interval) == (0.5, None)


@pytest.mark.parametrize(
    ("ratio", "score", "failure"),
    [
        ([], [], Failure.NO_ROWS),
        ([0.3, 0.1], [1.0, 0.0], Failure.NOT_IDENTIFIED),
        ([0.1] * 9, [1.0, 0.0, 0.5] * 3, Failure.NOT_IDENTIFIED),
        ([0.1, 0.2, 0.3], [1.0] * 3, Failure.SEPARATED),
    ],
)
def test_what_cannot_be_controlled_says_why(
    ratio: list[float], score: list[float], failure: Failure
) -> None:
    found = length_controlled(np.array(ratio), np.array(score), np.arange(len(ratio)))
    assert found is failure


def test_excess_follows_its_definition() -> None:
    quarters, gold, sizes = [4, 3, 6, 0, 8, 2], [1, 0, 1, 1, 2, 0], [1, 1, 2, 1, 2, 1]
    excess = excess_over_gold(quarters, gold, sizes, [1] * 6)
    assert excess is not None
    judge, right = 23 / 32, 5 / 8
    assert (excess.judge, excess.gold, excess.n, excess.n_clusters) == (judge, right, 8, 6)
    assert excess.excess == pytest.approx(judge - right)
    d = [q / 4 - g - n * (judge - right) for q, g, n in zip(quarters, gold, sizes, strict=True)]
    se = sqrt(6 / 5 * sum(x * x for x in d)) / 8
    assert excess.interval is not None
    assert excess.interval.low == pytest.approx(judge - right - t95(5) * se)
    assert excess.gold_error == pytest.approx((judge - right) / (2 * judge - 1))


def test_no_labelled_pair_has_no_excess() -> None:
    assert excess_over_gold([], [], [], []) is None
    assert excess_over_gold([0], [0], [0], [7]) is None


@pytest.mark.parametrize(("agreement", "error"), [(1.0, 0.0), (0.5, 0.5), (0.82, 0.1), (0.4, None)])
def test_people_who_err_agree_less(agreement: float, error: float | None) -> None:
    found = error_of_people(agreement)
    assert found == (None if error is None else pytest.approx(error))


def world(seed: int, *, truth: float, taste: float, judge: float, gold: float) -> Excess:
    """One set of pairs: what length is truly worth, and to the judge; noise of judge and gold."""
    rng = np.random.default_rng(seed)
    ratio = rng.normal(0, 0.8, PAIRS)
    worth = truth * ratio + rng.logistic(size=PAIRS)
    picks = single_calls(rng, worth + taste * ratio, noise=judge, offset=0.3)
    labels = worth + gold * rng.logistic(size=PAIRS) > 0
    longer = ratio > 0
    quarters = 2 * sum((pick == longer).astype(int) for pick in picks)
    ones = np.ones(PAIRS, int)
    found = excess_over_gold(quarters, (labels == longer).astype(int), ones, ones)
    assert found is not None
    return found


def flagged(plausible: float = PLAUSIBLE_GOLD_ERROR, **planted: float) -> float:
    worlds = (world(seed, **planted) for seed in range(WORLDS))
    return sum(bool(is_length_bias(found, plausible)) for found in worlds) / WORLDS


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_a_judge_no_noisier_than_gold_is_not_called_biased(noise: float) -> None:
    assert flagged(truth=2.0, taste=0.0, judge=noise, gold=noise) <= 0.05


def test_noisier_gold_is_an_explanation() -> None:
    """Gold errs, people agree less for it, and the rate that explains the excess is printed."""
    planted = {"truth": 2.0, "taste": 0.0, "judge": 0.2, "gold": 2.0}
    found = world(0, **planted)
    assert found.interval is not None
    assert found.interval.low is not None
    assert found.interval.low > 0
    assert found.gold_error is not None
    assert 0.05 < found.gold_error < PLAUSIBLE_GOLD_ERROR
    assert flagged(**planted) <= 0.05
    # Had people never erred, the same excess would be the judge's.
    assert flagged(0.0, **planted) > 0.9


def test_a_planted_taste_for_length_is_found() -> None:
    assert flagged(truth=0.0, taste=3.0, judge=0.5, gold=0.5) > 0.95


def test_an_excess_that_no_error_explains_is_a_bias() -> None:
    """Gold that errs comes nearer to one half, so a judge that is nearer is not explained."""
    ones = np.ones(100, int)
    quarters = np.array([0, 4, 0, 4, 0] * 20)
    found = excess_over_gold(quarters, [0] * 100, ones, ones)
    assert found is not None
    assert found.judge == 0.4
    assert is_length_bias(found, 0.25) is True
    assert is_length_bias(excess_over_gold([4], [0], [1], [5]) or found, 0.25) is None
