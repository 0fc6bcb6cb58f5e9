"""Intervals of means, ratios and shares over clusters of pairs that are not independent.

Every function takes cluster profiles (see `profiles`); every sum is exact up to one last division.
"""

from __future__ import annotations

from math import sqrt

import numpy.typing as npt

from judgebias.stats.binomial import wilson, wilson_of_rate
from judgebias.stats.interval import MIN_CLUSTERS, Interval, around, t95
from judgebias.stats.profiles import columns, dot, squared_residuals


def mean_interval(
    sums: npt.ArrayLike,
    sizes: npt.ArrayLike,
    multiplicity: npt.ArrayLike,
    *,
    scale: int,
    low: int,
    high: int,
) -> Interval | None:
    """Return the t interval over clusters of a mean, with two pseudo-pairs.

    Parameters
    ----------
    sums
        Per profile, the cluster's sum of scale * v_i, in whole numbers.
    sizes
        Per profile, the number of pairs in the cluster; clusters without a pair do not count.
    multiplicity
        Clusters per profile.
    scale
        What v was multiplied by to become whole (2 for halves).
    low, high
        The extreme values of v: the two pseudo-pairs, and the range the interval is clipped to.

    Returns
    -------
    Interval or None
        None with fewer than 6 clusters.

    Notes
    -----
    Linearised cluster variance with G/(G-1); pseudo-pairs after Bonett and Price (2012), without
    which a judge that always agrees with itself would get an interval of width 0.
    """
    totals, n_pairs, clusters = columns(sums=sums, sizes=sizes, multiplicity=multiplicity)
    n_clusters = dot(clusters, (n_pairs > 0).astype(clusters.dtype))
    if n_clusters < MIN_CLUSTERS:
        return None
    n, ends = dot(clusters, n_pairs) + 2, (scale * low, scale * high)
    total = dot(clusters, totals) + sum(ends)
    squares = squared_residuals(totals, n_pairs, clusters, numerator=total, denominator=n)
    squares += sum((n * end - total) ** 2 for end in ends)
    half = _half_width(squares, scale * n * n, n_clusters + 2)
    return around(total / (scale * n), half, low=low, high=high)


def plain_mean_interval(
    sums: npt.ArrayLike, sizes: npt.ArrayLike, multiplicity: npt.ArrayLike, *, scale: int
) -> Interval | None:
    """Return the t interval over clusters of a mean of values without a range.

    Parameters
    ----------
    sums
        Per profile, the cluster's sum of scale * v_i, in whole numbers.
    sizes
        Per profile, the number of pairs in the cluster; clusters without a pair do not count.
    multiplicity
        Clusters per profile.
    scale
        What v was multiplied by to become whole.

    Returns
    -------
    Interval or None
        None with fewer than 6 clusters.

    Notes
    -----
    As `mean_interval`, without pseudo-pairs: a value without a range has no extremes to add.
    """
    totals, n_pairs, clusters = columns(sums=sums, sizes=sizes, multiplicity=multiplicity)
    n_clusters = dot(clusters, (n_pairs > 0).astype(clusters.dtype))
    if n_clusters < MIN_CLUSTERS:
        return None
    n, total = dot(clusters, n_pairs), dot(clusters, totals)
    squares = squared_residuals(totals, n_pairs, clusters, numerator=total, denominator=n)
    half, centre = _half_width(squares, scale * n * n, n_clusters), total / (scale * n)
    return Interval(low=centre - half, high=centre + half)


def ratio_interval(
    firsts: npt.ArrayLike, decisive: npt.ArrayLike, multiplicity: npt.ArrayLike
) -> Interval | None:
    """Return the t interval over clusters of first/decisive calls, with two pseudo-pairs.

    Parameters
    ----------
    firsts, decisive
        Per profile, the cluster's calls for the first slot, and its calls for either slot. Clusters
        of complete pairs without a decisive call belong here too: they count as clusters.
    multiplicity
        Clusters per profile.

    Returns
    -------
    Interval or None
        Clipped to 0 and 1; None without a decisive call or with fewer than 6 clusters.

    Notes
    -----
    Linearised ratio estimator (Cochran 1977, chapter 6); the pseudo-pairs (Bonett and Price 2012)
    have 2 of 2 and 0 of 2 decisive calls first.
    """
    first, calls, clusters = columns(firsts=firsts, decisive=decisive, multiplicity=multiplicity)
    n_clusters, n_calls = int(clusters.sum()), dot(clusters, calls)
    if n_clusters < MIN_CLUSTERS or n_calls == 0:
        return None
    n_first, n_calls = dot(clusters, first) + 2, n_calls + 4
    squares = squared_residuals(first, calls, clusters, numerator=n_first, denominator=n_calls)
    squares += (2 * n_calls - 2 * n_first) ** 2 + (2 * n_first) ** 2
    half = _half_width(squares, n_calls * n_calls, n_clusters + 2)
    return around(n_first / n_calls, half, low=0.0, high=1.0)


def agreement_rate(
    agreeing: npt.ArrayLike, sizes: npt.ArrayLike, multiplicity: npt.ArrayLike
) -> tuple[Interval | None, float | None]:
    """Return the interval of a share of pairs, and the design effect of the clusters.

    Parameters
    ----------
    agreeing, sizes
        Per profile, the cluster's pairs that agree (or are won by A), and all its pairs; clusters
        without a pair do not count.
    multiplicity
        Clusters per profile.

    Returns
    -------
    interval : Interval or None
        Wilson with z where no cluster holds several pairs; else Wilson with n over the design
        effect and t. None without pairs, or where fewer than 6 clusters hold several.
    design_effect : float or None
        1 where no cluster holds several pairs; None exactly where the interval is None.

    Notes
    -----
    Wilson (1927); design effect after Kish (1965) from the linearised cluster variance, effective n
    and t in Wilson's interval after Korn and Graubard (1998).
    """
    agree, pairs, clusters = columns(agreeing=agreeing, sizes=sizes, multiplicity=multiplicity)
    kept = (pairs > 0) & (clusters > 0)
    agree, pairs, clusters = agree[kept], pairs[kept], clusters[kept]
    k, n, n_clusters = dot(clusters, agree), dot(clusters, pairs), int(clusters.sum())
    if n == n_clusters:
        return wilson(k, n), 1.0 if n else None
    if n_clusters < MIN_CLUSTERS:
        return None, None
    if k in (0, n):
        design_effect = n / n_clusters
    else:
        squares = squared_residuals(agree, pairs, clusters, numerator=k, denominator=n)
        design_effect = max(1.0, n_clusters * squares / ((n_clusters - 1) * n * k * (n - k)))
    return wilson_of_rate(k / n, n / design_effect, t95(n_clusters - 1)), design_effect


def _half_width(squares: int, units: int, n_clusters: int) -> float:
    """Return t times the standard error, from squared cluster residuals in 1/units."""
    variance = n_clusters * squares / ((n_clusters - 1) * units**2)
    return t95(n_clusters - 1) * sqrt(variance)
