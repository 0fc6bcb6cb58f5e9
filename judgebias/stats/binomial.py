"""The exact sign test at any n, and the two intervals of a binomial share."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import log, log10, pi, sqrt
from operator import index

import numpy as np
from scipy import special

from judgebias.stats.interval import Z95, Interval

_EXACT_UP_TO = 2000
# Below this a double loses digits (or is 0), and the logarithm has to be found without it.
_SMALL = 1e-290


def sign_test_p(k: int, n: int) -> float:
    """Return the two-sided exact p-value of k successes in n fair coin flips.

    Parameters
    ----------
    k
        Successes, 0 <= k <= n.
    n
        Trials; with none the p-value is 1.

    Returns
    -------
    float
        min(1, 2 min(P(X <= k), P(X >= k))): the exact fraction, rounded once, for n up to 2000;
        above, the regularised incomplete beta function (relative error below 1e-10 at n = 1e9).

    Raises
    ------
    ValueError
        k is not between 0 and n.

    Notes
    -----
    The sign test of Dixon and Mood (1946); on paired verdicts it is McNemar (1947), exact.
    """
    k, n = _checked(k, n)
    tail = min(k, n - k)
    if n <= _EXACT_UP_TO:
        ways, all_ways = _two_sided_ways(tail, n)
        return ways / all_ways
    return min(1.0, 2.0 * float(special.betainc(n - tail, tail + 1, 0.5)))


def sign_test_log10_p(k: int, n: int) -> float:
    """Return log10 of `sign_test_p`, finite where the p-value is below the smallest double.

    Raises
    ------
    ValueError
        k is not between 0 and n.
    """
    k, n = _checked(k, n)
    p = sign_test_p(k, n)
    if p > _SMALL:
        return log10(p)
    tail = min(k, n - k)
    if n <= _EXACT_UP_TO:
        ways, all_ways = _two_sided_ways(tail, n)
        return log10(ways) - log10(all_ways)
    return _log10_p_far_out(tail, n)


def wilson(k: int, n: int, *, z: float = Z95) -> Interval | None:
    """Return the score interval of a share of k in n (Wilson 1927); None for n = 0.

    Raises
    ------
    ValueError
        k is not between 0 and n.
    """
    k, n = _checked(k, n)
    return wilson_of_rate(k / n, n, z) if n else None


def wilson_of_rate(p: float, n: float, z: float) -> Interval:
    """Return Wilson's interval (1927) for a share p and an effective, not always whole, n.

    Returns
    -------
    Interval
        Its lower bound is exactly 0 at p = 0 and its upper bound exactly 1 at p = 1.
    """
    spread = z * z / n
    centre = (p + spread / 2.0) / (1.0 + spread)
    half = z * sqrt(p * (1.0 - p) / n + spread / (4.0 * n)) / (1.0 + spread)
    return Interval(
        low=0.0 if p == 0.0 else max(0.0, centre - half),
        high=1.0 if p == 1.0 else min(1.0, centre + half),
    )


def clopper_pearson(k: int, n: int) -> Interval | None:
    """Return the exact 95% interval of k in n (Clopper and Pearson 1934); None for n = 0.

    Raises
    ------
    ValueError
        k is not between 0 and n.
    """
    k, n = _checked(k, n)
    if n == 0:
        return None
    return Interval(
        low=float(special.betaincinv(k, n - k + 1, 0.025)) if k > 0 else 0.0,
        high=float(special.betaincinv(k + 1, n - k, 0.975)) if k < n else 1.0,
    )


def _checked(k: int, n: int) -> tuple[int, int]:
    # Python's own integers, since numpy's would wrap silently in the exact sums.
    k, n = index(k), index(n)
    if not 0 <= k <= n:
        msg = f"{k} successes in {n} trials; expected 0 <= k <= n: check the order of the arguments"
        raise ValueError(msg)
    return k, n


def _two_sided_ways(tail: int, n: int) -> tuple[int, int]:
    # A running sum: each binomial coefficient from the one before, all in whole numbers.
    ways = term = 1
    for i in range(tail):
        term = term * (n - i) // (i + 1)
        ways += term
    return min(2 * ways, 1 << n), 1 << n


def _log10_p_far_out(k: int, n: int) -> float:
    """Return log10 of 2 P(X <= k) for k far below n/2 (the saddle-point form of Loader 2000).

    The deviance runs to millions, where a double keeps no ninth decimal; hence 40 digits.
    """
    with localcontext(prec=40):
        deviance = sum(Decimal(x) * (Decimal(2 * x) / n).log10() for x in (k, n - k) if x)
        small = log10(2.0 * _tail_over_pmf(k, n))
        if k:
            correction = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
            small += correction / log(10.0) - 0.5 * log10(2.0 * pi * k * (n - k) / n)
        return float(Decimal(small) - deviance)


def _stirling_error(n: int) -> float:
    """Return ln n! minus Stirling's ln(sqrt(2 pi n) (n/e)^n)."""
    if n < 16:
        return float(special.gammaln(n + 1)) - (0.5 * log(2.0 * pi * n) + n * log(n) - n)
    inverse = 1.0 / (n * n)
    series = 1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680)))
    return series / n


def _tail_over_pmf(k: int, n: int) -> float:
    """Return P(X <= k)/P(X = k): a sum of falling ratios, used only far below n/2."""
    largest = k / (n - k + 1)
    terms = min(k, int(40.0 / (1.0 - largest)) + 1)
    steps = np.arange(terms, dtype=np.float64)
    return 1.0 + float(np.cumprod((k - steps) / (n - k + 1 + steps)).sum())
