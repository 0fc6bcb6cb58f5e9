"""Excess over gold: whether a judge picks the longer answer more often than it should.

Gold has errors too, and where longer answers really are better they alone make an excess. So an
excess is a bias only where no plausible error rate of gold explains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from judgebias.stats.interval import MIN_CLUSTERS, Interval, t95
from judgebias.stats.profiles import columns, dot, squared_residuals

PLAUSIBLE_GOLD_ERROR = 0.25
"""The gold error rate taken as plausible where the agreement of people is not known: two people who
each err so often agree on 62.5%, the low end of what is published for pairs of answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Excess:
    """How much more often than gold the judge picks the longer answer."""

    n: int
    n_clusters: int
    judge: float
    """P(the judge's single call picks the longer), orders averaged, a tie one half."""
    gold: float
    """P(gold picks the longer)."""
    excess: float
    interval: Interval | None
    """Plain t over clusters; None with fewer than 6."""
    gold_error: float | None
    """The error rate of gold that alone would explain the excess; None where the judge picks the
    longer just half the time. Outside 0 to 1/2 no error rate explains it."""
    gold_error_low: float | None
    """The same for the lower bound of the excess."""


def excess_over_gold(
    judge_quarters: npt.ArrayLike,
    gold: npt.ArrayLike,
    sizes: npt.ArrayLike,
    multiplicity: npt.ArrayLike,
) -> Excess | None:
    """Compare how often the judge and gold pick the longer answer, on the same pairs.

    Parameters
    ----------
    judge_quarters
        Per profile, the cluster's sum over pairs of 2 per call for the longer and 1 per tie: with
        two calls a pair, 0 to 4.
    gold
        Per profile, the cluster's pairs in which gold picks the longer.
    sizes
        Per profile, the cluster's pairs of unequal length with decisive gold.
    multiplicity
        Clusters per profile.

    Returns
    -------
    Excess or None
        None without such a pair.

    Notes
    -----
    If gold names the wrong answer with probability e, whatever the lengths, it picks the longer in
    P - e(2P - 1) of the pairs where the truth does in P. So a judge that is always right shows an
    excess of e(2P - 1), and excess/(2P - 1) is the error rate that alone would explain it.
    """
    picks, right, pairs, clusters = columns(
        judge_quarters=judge_quarters, gold=gold, sizes=sizes, multiplicity=multiplicity
    )
    n, n_clusters = dot(clusters, pairs), dot(clusters, (pairs > 0).astype(np.int64))
    if n == 0:
        return None
    quarters, n_gold = dot(clusters, picks), dot(clusters, right)
    difference = quarters - 4 * n_gold
    excess, lean = difference / (4 * n), quarters / (2 * n) - 1.0
    interval = None
    if n_clusters >= MIN_CLUSTERS:
        by_cluster = picks - 4 * right
        squares = squared_residuals(
            by_cluster, pairs, clusters, numerator=difference, denominator=n
        )
        variance = n_clusters * squares / ((n_clusters - 1) * (4 * n * n) ** 2)
        half = t95(n_clusters - 1) * sqrt(variance)
        interval = Interval(low=excess - half, high=excess + half)
    low = interval.low if interval else None
    return Excess(
        n=n,
        n_clusters=n_clusters,
        judge=quarters / (4 * n),
        gold=n_gold / n,
        excess=excess,
        interval=interval,
        gold_error=excess / lean if lean else None,
        gold_error_low=low / lean if low is not None and lean else None,
    )


def error_of_people(agreement: float) -> float | None:
    """Return how often one person errs, from how often two of them agree.

    Returns
    -------
    float or None
        (1 - sqrt(2 agreement - 1))/2: two people who err independently with probability e agree on
        1 - 2e(1 - e). None where they agree on less than half.
    """
    return (1.0 - sqrt(2.0 * agreement - 1.0)) / 2.0 if agreement >= 0.5 else None


def is_length_bias(excess: Excess, plausible_error: float) -> bool | None:
    """Tell whether the excess is a bias of the judge and not the errors of gold.

    Parameters
    ----------
    excess
        What `excess_over_gold` returns.
    plausible_error
        The largest error rate of gold that is plausible.

    Returns
    -------
    bool or None
        True where the lower bound is positive and needs a larger error rate than that, or one that
        does not exist. None without an interval.
    """
    if excess.interval is None or excess.interval.low is None:
        return None
    if excess.interval.low <= 0.0:
        return False
    error = excess.gold_error_low
    return error is None or not 0.0 <= error <= plausible_error
