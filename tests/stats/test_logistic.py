from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, special

from judgebias.stats.logistic import (
    Failure,
    Logistic,
    cluster_covariance,
    fit_logistic,
    products,
)


def with_intercept(column: list[float]) -> np.ndarray:
    return np.column_stack([np.ones(len(column)), column])


def fitted(design: np.ndarray, score: np.ndarray) -> Logistic:
    fit = fit_logistic(list(design.T), score)
    assert isinstance(fit, Logistic)
    return fit


def test_an_intercept_is_the_logit_of_the_share() -> None:
    fit = fitted(np.ones((10, 1)), np.array([1.0] * 3 + [0.0] * 7))
    assert fit.coefficients[0] == pytest.approx(log(3 / 7), abs=1e-14)
    assert fit.covariance[0, 0] == pytest.approx(1 / 3 + 1 / 7)


def test_two_groups_are_a_log_odds_ratio() -> None:
    design = with_intercept([0.0] * 10 + [1.0] * 10)
    score = np.array([1.0] * 2 + [0.0] * 8 + [1.0] * 6 + [0.0] * 4)
    fit = fitted(design, score)
    assert fit.coefficients == pytest.approx([log(2 / 8), log(6 / 4) - log(2 / 8)], abs=1e-13)
    assert fit.covariance[1, 1] == pytest.approx(1 / 2 + 1 / 8 + 1 / 6 + 1 / 4)


@given(st.lists(st.tuples(st.floats(-3, 3), st.sampled_from([0.0, 0.5, 1.0])), min_size=8))
@pytest.mark.slow
def test_it_is_the_maximum(rows: list[tuple[float, float]]) -> None:
    column, score = (np.array(part) for part in zip(*rows, strict=True))
    # With a success and a failure at both ends no plane separates the rows.
    column = np.concatenate([column, [-3.0, -3.0, 3.0, 3.0]])
    score = np.concatenate([score, [0.0, 1.0, 0.0, 1.0]])
    design = with_intercept(column.tolist())
    fit = fitted(design, score)

    def loss(at: np.ndarray) -> float:
        logit = design @ at
        return float((np.logaddexp(0.0, logit) - score * logit).sum())

    best = optimize.minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
    assert fit.coefficients == pytest.approx(best.x, abs=1e-5)
    assert -fit.log_likelihood <= best.fun + 1e-12


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_unit_of_a_covariate_does_not_matter(unit: float) -> None:
    rng = np.random.default_rng(4)
    column = rng.normal(size=50)
    score = (rng.random(50) < special.expit(column)).astype(float)
    plain, scaled = (fitted(with_intercept(c.tolist()), score) for c in (column, column * unit))
    assert scaled.coefficients[1] * unit == pytest.approx(plain.coefficients[1], rel=1e-9)
    assert scaled.covariance[1, 1] * unit**2 == pytest.approx(plain.covariance[1, 1], rel=1e-9)


@pytest.mark.parametrize(
    ("column", "score", "failure"),
    [
        ([], [], Failure.NO_ROWS),
        ([2.0] * 6, [1, 0, 1, 0, 1, 0], Failure.NOT_IDENTIFIED),
        ([0.0] * 6, [1, 0, 1, 0, 1, 0], Failure.NOT_IDENTIFIED),
        ([-1, -2, -3, 1, 2, 3], [0, 0, 0, 1, 1, 1], Failure.SEPARATED),
        ([-1, -2, -3, 1, 2, 3], [1, 1, 1, 1, 1, 1], Failure.SEPARATED),
        ([-1, -2, 0, 0, 2, 3], [0, 0, 0, 1, 1, 1], Failure.SEPARATED),
        ([1e-9, 1e-9, 5, 6], [0, 0, 1, 1], Failure.SEPARATED),
    ],
)
def test_what_has_no_maximum_is_a_failure(
    column: list[float], score: list[int], failure: Failure
) -> None:
    design = np.column_stack([np.ones(len(column)), np.array(column, dtype=float)])
    assert fit_logistic(list(design.T), np.array(score, dtype=float)) is failure


def test_each_row_its_own_cluster_is_the_robust_covariance() -> None:
    rng = np.random.default_rng(5)
    design = with_intercept(rng.normal(size=40).tolist())
    score = (rng.random(40) < 0.5).astype(float)
    fit = fitted(design, score)
    scores = design * (score - fit.mean)[:, None]
    expected = fit.covariance @ (scores.T @ scores) @ fit.covariance * 40 / 39
    covariance, n_clusters = cluster_covariance(fit, list(design.T), score, rng.permutation(40))
    assert n_clusters == 40
    assert covariance == pytest.approx(expected, rel=1e-10)


def test_rows_of_a_cluster_twice_over_add_nothing() -> None:
    rng = np.random.default_rng(6)
    design, cluster = with_intercept(rng.normal(size=30).tolist()), np.arange(30) // 2
    score = (rng.random(30) < 0.4).astype(float)
    once, _ = cluster_covariance(fitted(design, score), list(design.T), score, cluster)
    double = np.tile(design, (2, 1)), np.tile(score, 2)
    columns = list(double[0].T)
    twice, n_clusters = cluster_covariance(fitted(*double), columns, double[1], np.tile(cluster, 2))
    assert n_clusters == 15
    assert twice == pytest.approx(once, rel=1e-9)


def test_products_are_the_matrix_product() -> None:
    rng = np.random.default_rng(7)
    design, weight = rng.normal(size=(20, 3)), rng.random(20)
    assert products(design, weight) == pytest.approx(design.T @ (design * weight[:, None]))
