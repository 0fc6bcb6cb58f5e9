"""Logistic regression by Newton's method, with errors over clusters.

Scores are 0 to 1, so that a tie may count as one half. All sums are taken column by column, in the
order of the rows: the same rows give the same bits, however many threads a matrix product may use.
They are taken block by block, so that a million rows need no more memory than they take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg

from judgebias.stats.profiles import IntArray, dense

FloatArray: TypeAlias = npt.NDArray[np.float64]
Columns: TypeAlias = Sequence[FloatArray]

_MAX_STEPS = 100
# Newton doubles the digits with each step: after one this small the error is below 1e-13. On a way
# that leads to infinity a step has a length of about 1, so none is ever this small.
_STEP = 1e-7
_SINGULAR = 1e-12
# What is made of so many rows stays in a core's own cache.
_BLOCK = 8192


class Failure(StrEnum):
    """Why there is no fit."""

    NO_ROWS = "nothing to fit"
    NOT_IDENTIFIED = "the covariates do not vary, or not independently of each other"
    SEPARATED = "separated: the likelihood has no finite maximum"


@dataclass(frozen=True, kw_only=True, slots=True)
class Logistic:
    """A fit that converged."""

    coefficients: FloatArray
    """(covariates,) in logits."""

    covariance: FloatArray
    """(covariates, covariates) inverse information: the model-based covariance."""

    log_likelihood: float
    """At the maximum."""

    mean: FloatArray
    """(rows,) fitted probabilities."""


def fit_logistic(covariates: Columns, score: FloatArray) -> Logistic | Failure:
    """Fit P(score = 1) = sigma(sum of coefficient times covariate) by maximum likelihood.

    Parameters
    ----------
    covariates
        (rows,) each, finite; one of ones is an intercept.
    score
        (rows,) 0 to 1.

    Returns
    -------
    Logistic or Failure
        A separated likelihood (Albert and Anderson 1984) is a failure, never a large number.

    Notes
    -----
    Newton's method with step halving; the likelihood is concave, so its maximum is one.
    """
    if score.size == 0:
        return Failure.NO_ROWS
    scale = np.array([max(column.max(), -column.min()) for column in covariates])
    if not (scale > 0.0).all():
        return Failure.NOT_IDENTIFIED
    rows = _Rows(covariates=covariates, scale=scale, score=score)
    start = rows.at(np.zeros(len(scale)))
    # All weights are 1/4 here.
    if _singular(4.0 * start.information):
        return Failure.NOT_IDENTIFIED
    found = _maximum(rows, start)
    if found is None:
        return Failure.SEPARATED
    best, top = found
    return Logistic(
        coefficients=best / scale,
        covariance=_inverse(top.information) / np.outer(scale, scale),
        log_likelihood=top.log_likelihood,
        mean=rows.mean(best),
    )


def cluster_covariance(
    fit: Logistic, covariates: Columns, score: FloatArray, cluster: IntArray
) -> tuple[FloatArray, int]:
    """Return the sandwich over clusters, times G/(G - 1), and the number of clusters G.

    Parameters
    ----------
    fit, covariates, score
        As fitted.
    cluster
        (rows,) cluster of each row, any whole numbers.

    Notes
    -----
    Liang and Zeger (1986). With one cluster the covariance is not defined: NaN.
    """
    residual = score - fit.mean
    scores = cluster_sums((column * residual for column in covariates), cluster)
    n_clusters = len(scores)
    if n_clusters < 2:
        return np.full_like(fit.covariance, np.nan), n_clusters
    middle = products(scores, np.ones(n_clusters)) * (n_clusters / (n_clusters - 1))
    return fit.covariance @ middle @ fit.covariance, n_clusters


def cluster_sums(columns: Iterable[FloatArray], cluster: IntArray) -> FloatArray:
    """Sum columns by cluster, clusters in the order of their numbers: (clusters, columns)."""
    place, n_clusters = dense(cluster)
    sums = [np.bincount(place, weights=column, minlength=n_clusters) for column in columns]
    return np.stack(sums, axis=1).astype(np.float64)


def products(design: FloatArray, weight: FloatArray) -> FloatArray:
    """Return design' diag(weight) design."""
    size = design.shape[1]
    result = np.zeros((size, size))
    for i in range(size):
        weighted = design[:, i] * weight
        for j in range(i + 1):
            result[i, j] = result[j, i] = (weighted * design[:, j]).sum()
    return result


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
    """The likelihood at some coefficients, with its first and second derivatives."""

    log_likelihood: float
    gradient: FloatArray
    """(covariates,)"""
    information: FloatArray
    """(covariates, covariates)"""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rows:
    """What is fitted, its covariates brought to one scale."""

    covariates: Columns
    scale: FloatArray
    score: FloatArray

    def at(self, coefficients: FloatArray) -> _Point:
        """Compute the likelihood, and all that a step needs, from one exponential a row."""
        size = len(coefficients)
        value, gradient, information = 0.0, np.zeros(size), np.zeros((size, size))
        for columns, score in self._blocks():
            logit = _linear(columns, coefficients)
            # This exponential cannot overflow.
            small = np.exp(-np.abs(logit))
            value += float((score * logit - np.maximum(logit, 0.0) - np.log1p(small)).sum())
            mean = _mean(logit, small)
            residual, weight = score - mean, mean * (1.0 - mean)
            gradient += [(column * residual).sum() for column in columns]
            information += products(columns.T, weight)
        return _Point(log_likelihood=value, gradient=gradient, information=information)

    def mean(self, coefficients: FloatArray) -> FloatArray:
        """Give the probability of each row."""
        logits = (_linear(columns, coefficients) for columns, _ in self._blocks())
        return np.concatenate([_mean(logit, np.exp(-np.abs(logit))) for logit in logits])

    def _blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Give (covariates, rows) and the scores of each block."""
        for first in range(0, len(self.score), _BLOCK):
            rows = slice(first, first + _BLOCK)
            block = np.stack([column[rows] for column in self.covariates])
            yield block / self.scale[:, None], self.score[rows]


def _maximum(rows: _Rows, start: _Point) -> tuple[FloatArray, _Point] | None:
    """Climb to the maximum; None where none is reached."""
    at, point = np.zeros(len(rows.scale)), start
    for _ in range(_MAX_STEPS):
        if _singular(point.information):
            return None
        step = _inverse(point.information) @ point.gradient
        at, point = _climb(rows, at, step, point)
        if np.abs(step).max() < _STEP:
            return at, point
    return None


def _climb(
    rows: _Rows, at: FloatArray, step: FloatArray, point: _Point
) -> tuple[FloatArray, _Point]:
    """Go the whole step, or as much of it as does not lead down."""
    share, value = 1.0, point.log_likelihood
    while share > 1e-6:
        there = at + share * step
        higher = rows.at(there)
        # Near the top a long sum is level up to its last digits.
        if higher.log_likelihood >= value - 1e-12 * abs(value):
            return there, higher
        share /= 2.0
    return at, point


def _linear(columns: FloatArray, at: FloatArray) -> FloatArray:
    total = np.zeros(columns.shape[1])
    for column, coefficient in zip(columns, at, strict=True):
        total += column * coefficient
    return total


def _mean(logit: FloatArray, small: FloatArray) -> FloatArray:
    """Read logits as probabilities; `small` is exp(-|logit|)."""
    return np.where(logit > 0.0, 1.0, small) / (1.0 + small)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Invert a matrix that is not singular, its covariates brought to one scale first."""
    root = np.sqrt(matrix.diagonal())
    scale = np.outer(root, root)
    return np.asarray(linalg.inv(matrix / scale)) / scale


def _singular(matrix: FloatArray) -> bool:
    """Whether a direction has no information, whatever the scale of the covariates."""
    information = matrix.diagonal()
    if not (information > 0.0).all():
        return True
    root = np.sqrt(information)
    values = linalg.eigvalsh(matrix / np.outer(root, root))
    # A likelihood on its way to infinity loses all its information, not only one direction of it.
    return bool(values[0] < _SINGULAR * values[-1]) or bool(information.max() < _SINGULAR)
