"""Estimates from one order for all pairs and both orders for a sample of them.

The sample of m pairs is a 3 x 3 table of counts by (slot in ab, slot in ba), the rest a 2 x 3 table
by (order of the only call, its slot); slots in the order first, second, tie; orders ab, ba.
Pairs are treated as independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from judgebias.stats.binomial import sign_test_p
from judgebias.stats.interval import Z95, Interval, around
from judgebias.stats.profiles import IntArray, whole_numbers

FloatArray: TypeAlias = npt.NDArray[np.float64]

_SIGN = np.array([1.0, -1.0, 0.0])
_SCORE = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
# What both orders together say of A: only (first, second) and (second, first) agree on a winner.
_FINAL = np.array([[0.5, 1.0, 0.5], [0.0, 0.5, 0.5], [0.5, 0.5, 0.5]])
_SWING = (_SIGN[:, None] + _SIGN[None, :]) / 2.0
_MEAN_SCORE = (_SCORE[0][:, None] + _SCORE[1][None, :]) / 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A figure for all pairs, joined from the sample and the rest."""

    value: float
    """The estimate."""

    se: float | None
    """Its standard error; None where the calls of the rest are all alike."""

    interval: Interval | None
    """value +- z se, clipped to its range; None where `se` is."""

    weight: float
    """Share of the weight that the sample carries (0 to 1)."""


def first_call_p(firsts: int, decisive: int) -> float | None:
    """Return the exact sign test over the first calls of all pairs; None with none decisive.

    Its null is that the slot has no effect at all; otherwise it is conservative.
    """
    return sign_test_p(firsts, decisive) if decisive else None


def sampled_swing(both: npt.ArrayLike, rest: npt.ArrayLike) -> Estimate | None:
    """Return the mean swing (A's win rate shown first minus shown second) over all pairs.

    Parameters
    ----------
    both
        Sample, 3 x 3: pairs by (slot in ab, slot in ba).
    rest
        Rest, 2 x 3: pairs by (order asked, slot).

    Returns
    -------
    Estimate or None
        Inverse-variance mean of sample and rest (Cochran 1937); the variance in the sample is taken
        with the pseudo-pairs +1 and -1. None with fewer than two pairs in the sample, or just one
        in the rest.
    """
    sample, others = _tables(both, rest)
    if not _enough(sample, others):
        return None
    m, n_rest = int(sample.sum()), int(others.sum())
    mean = _mean(_SWING, sample)
    variance = _variance_with_pseudo_pairs(_SWING, sample, -1.0, 1.0) / m
    if n_rest == 0:
        return _estimate(mean, variance, 1.0, low=-1.0, high=1.0)
    signs = np.stack([_SIGN, _SIGN])
    rest_variance = _variance(signs, others) / n_rest
    weight = rest_variance / (variance + rest_variance)
    value = weight * mean + (1.0 - weight) * _mean(signs, others)
    joint = weight * variance if weight else None
    return _estimate(value, joint, weight, low=-1.0, high=1.0)


def sampled_win_rate(both: npt.ArrayLike, rest: npt.ArrayLike) -> Estimate | None:
    """Return A's win rate under the two-order rule, for all pairs.

    Parameters
    ----------
    both
        Sample, 3 x 3: pairs by (slot in ab, slot in ba).
    rest
        Rest, 2 x 3: pairs by (order asked, slot).

    Returns
    -------
    Estimate or None
        a mean(w) + (1 - a) mean(y) + mean(e), w the mean score of both orders, e what the
        two-order rule adds to it, y the score of the only call. None with fewer than two pairs in
        the sample, or just one in the rest.

    Notes
    -----
    A two-phase difference estimator (Cochran 1977, chapter 12): cheap scores for all, corrected by
    what the sample shows the rule to change.
    """
    sample, others = _tables(both, rest)
    if not _enough(sample, others):
        return None
    m, n_rest = int(sample.sum()), int(others.sum())
    weight, rest_mean, rest_part = 1.0, 0.0, 0.0
    if n_rest:
        rest_mean, rest_variance = _mean(_SCORE, others), _variance(_SCORE, others)
        sample_variance = _variance_with_pseudo_pairs(_MEAN_SCORE, sample, 0.0, 1.0)
        # (m/v_w)/(m/v_w + n/v_y), free of a division by a rest that is all alike.
        weight = m * rest_variance / (m * rest_variance + n_rest * sample_variance)
        rest_part = (1.0 - weight) ** 2 * rest_variance / n_rest
    corrected = weight * _MEAN_SCORE + (_FINAL - _MEAN_SCORE)
    value = _mean(corrected, sample) + (1.0 - weight) * rest_mean
    variance = _variance(corrected, sample) / m + rest_part if weight else None
    return _estimate(value, variance, weight, low=0.0, high=1.0)


def sample_size(consistency: float, width: float, *, z: float = Z95) -> int:
    """Return how many pairs a Wilson interval of this full width needs at this consistency.

    Raises
    ------
    ValueError
        The consistency is not a share, or the width not between 0 and 1.

    Notes
    -----
    The width of Wilson's interval (1927), solved for n.
    """
    if not (0.0 <= consistency <= 1.0 and 0.0 < width < 1.0):
        msg = (
            f"consistency {consistency} and width {width}; expected a share from 0 to 1 and a width"
            " between 0 and 1"
        )
        raise ValueError(msg)
    square, z2 = width * width, z * z
    b = 4.0 * z2 * consistency * (1.0 - consistency) - 2.0 * square * z2
    root = sqrt(b * b + 4.0 * square * z2 * z2 * (1.0 - square))
    return ceil((b + root) / (2.0 * square))


def _tables(both: npt.ArrayLike, rest: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    sample, others = whole_numbers(both, name="both"), whole_numbers(rest, name="rest")
    if sample.shape != (3, 3) or others.shape != (2, 3):
        msg = (
            f"tables of shape {sample.shape} and {others.shape}; expected (3, 3) for pairs asked in"
            " both orders and (2, 3) for pairs asked once"
        )
        raise ValueError(msg)
    return sample, others


def _enough(sample: IntArray, rest: IntArray) -> bool:
    return int(sample.sum()) >= 2 and int(rest.sum()) != 1


def _mean(values: FloatArray, counts: IntArray) -> float:
    return float((values * counts).sum() / counts.sum())


def _variance(values: FloatArray, counts: IntArray) -> float:
    gaps = values - _mean(values, counts)
    return float((counts * gaps * gaps).sum() / (counts.sum() - 1))


def _variance_with_pseudo_pairs(
    values: FloatArray, counts: IntArray, low: float, high: float
) -> float:
    return _variance(np.append(values, [low, high]), np.append(counts, [1, 1]))


def _estimate(
    value: float, variance: float | None, weight: float, *, low: float, high: float
) -> Estimate:
    if variance is None:
        return Estimate(value=value, se=None, interval=None, weight=weight)
    se = sqrt(variance)
    interval = around(value, Z95 * se, low=low, high=high)
    return Estimate(value=value, se=se, interval=interval, weight=weight)
