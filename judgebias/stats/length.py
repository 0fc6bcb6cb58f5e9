"""Length: whether the longer answer wins, and what a win rate is without it.

Throughout, the log ratio of a pair is L = log((len_a + 1)/(len_b + 1)), lengths in code points.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import numpy.typing as npt
from scipy import special

from judgebias.stats.interval import MIN_CLUSTERS, Z95, Interval, t95
from judgebias.stats.logistic import (
    Failure,
    FloatArray,
    Logistic,
    cluster_covariance,
    fit_logistic,
)
from judgebias.stats.profiles import IntArray, columns


@dataclass(frozen=True, kw_only=True, slots=True)
class Slope:
    """Logistic regression of "A wins" on the log ratio."""

    intercept: float
    slope: float
    """Logits per unit of L."""
    se: float
    """Model-based (Wald)."""
    interval: Interval
    """slope +- z se."""
    mcfadden_r2: float | None
    """1 - ll/ll of the intercept alone (McFadden 1974); None where that is 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallSlope:
    """Logistic regression of "this call picks A" on the log ratio and the order."""

    slope: float
    """Logits of a single call per unit of L."""
    interval: Interval | None
    """slope +- t se over clusters; None with fewer than 6."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Controlled:
    """The win rate of A if both answers were equally long."""

    win_rate: float
    interval: Interval | None
    """None with fewer than 6 clusters, or where every pair has the same score."""
    sd: float
    """Of the log ratio, ddof 1."""
    n_clusters: int


def log_length_ratio(len_a: npt.ArrayLike, len_b: npt.ArrayLike) -> FloatArray:
    """Return L = log((len_a + 1)/(len_b + 1)); the 1 lets an answer be empty."""
    a, b = columns(len_a=len_a, len_b=len_b)
    return np.log((a + 1) / (b + 1))


def length_slope(log_ratio: FloatArray, a_wins: FloatArray) -> Slope | Failure:
    """Regress who wins on the log ratio, over pairs whose two orders agree on A or B.

    Parameters
    ----------
    log_ratio
        (pairs,) L.
    a_wins
        (pairs,) 1 or 0.
    """
    fit = fit_logistic(_with_intercept(log_ratio), a_wins)
    if isinstance(fit, Failure):
        return fit
    se, slope = sqrt(float(fit.covariance[1, 1])), float(fit.coefficients[1])
    return Slope(
        intercept=float(fit.coefficients[0]),
        slope=slope,
        se=se,
        interval=Interval(low=slope - Z95 * se, high=slope + Z95 * se),
        mcfadden_r2=mcfadden_r2(fit, a_wins),
    )


def call_slope(
    log_ratio: FloatArray, order: FloatArray, a_wins: FloatArray, cluster: IntArray
) -> CallSlope | Failure:
    """Regress single decisive calls on the log ratio, with an order effect.

    Parameters
    ----------
    log_ratio
        (calls,) L of the pair.
    order
        (calls,) 1 where A is shown first, -1 where B is.
    a_wins
        (calls,) 1 or 0.
    cluster
        (calls,) cluster of the pair.

    Notes
    -----
    This is the weight of length in a judge's call. Where the two calls on a pair are independent,
    the odds of (A, A) against (B, B) are those of one call squared, so `length_slope` is twice it.
    """
    covariates = log_ratio, order
    fit = fit_logistic(covariates, a_wins)
    if isinstance(fit, Failure):
        return fit
    covariance, n_clusters = cluster_covariance(fit, covariates, a_wins, cluster)
    slope, interval = float(fit.coefficients[0]), None
    if n_clusters >= MIN_CLUSTERS:
        half = t95(n_clusters - 1) * sqrt(max(float(covariance[0, 0]), 0.0))
        interval = Interval(low=slope - half, high=slope + half)
    return CallSlope(slope=slope, interval=interval)


def mcfadden_r2(fit: Logistic, score: FloatArray) -> float | None:
    """Return 1 - ll/ll_0 against the intercept alone (McFadden 1974), for scores of 0 and 1."""
    p = float(score.sum()) / len(score)
    if p in (0.0, 1.0):
        return None
    null = len(score) * (p * log(p) + (1.0 - p) * log(1.0 - p))
    return 1.0 - fit.log_likelihood / null


def length_controlled(
    log_ratio: FloatArray, score: FloatArray, cluster: IntArray
) -> Controlled | Failure:
    """Return the win rate of A at equal lengths, over all complete pairs.

    Parameters
    ----------
    log_ratio
        (pairs,) L.
    score
        (pairs,) 1, 1/2 or 0.
    cluster
        (pairs,) cluster of each pair.

    Notes
    -----
    After Dubois et al. (2024): binomial GLM on tanh(L/sd(L)); sigma(b0), bounds sigma(b0 +- z se)
    from the cluster sandwich times G/(G - 1) (n - 1)/(n - 2).
    """
    n = len(log_ratio)
    if n == 0:
        return Failure.NO_ROWS
    # Equal ratios are told by their range: their sd may be 1e-17, and not 0.
    if n < 3 or float(np.ptp(log_ratio)) == 0.0:
        return Failure.NOT_IDENTIFIED
    sd = float(log_ratio.std(ddof=1))
    covariates = _with_intercept(np.tanh(log_ratio / sd))
    fit = fit_logistic(covariates, score)
    if isinstance(fit, Failure):
        return fit
    covariance, n_clusters = cluster_covariance(fit, covariates, score, cluster)
    interval = None
    if n_clusters >= MIN_CLUSTERS and float(np.ptp(score)) > 0.0:
        variance = float(covariance[0, 0]) * (n - 1) / (n - 2)
        interval = _sigma(float(fit.coefficients[0]), Z95 * sqrt(max(variance, 0.0)))
    return Controlled(
        win_rate=float(special.expit(fit.coefficients[0])),
        interval=interval,
        sd=sd,
        n_clusters=n_clusters,
    )


def _with_intercept(column: FloatArray) -> tuple[FloatArray, FloatArray]:
    # One 1 for all rows: it takes no memory.
    return np.broadcast_to(1.0, column.shape), column


def _sigma(centre: float, half: float) -> Interval:
    return Interval(
        low=float(special.expit(centre - half)), high=float(special.expit(centre + half))
    )
