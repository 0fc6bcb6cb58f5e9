"""The sign-flip test: whether a sum over clusters leans, if each might change its sign."""

from __future__ import annotations

from math import comb, sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from judgebias.stats.binomial import sign_test_p
from judgebias.stats.profiles import IntArray, columns, dot

Weights: TypeAlias = npt.NDArray[np.int64 | np.float64]

_EXACT_UP_TO = 20_000
_FEW = 1024
# So many clusters have fewer sign patterns than int64 can count: nothing is rounded at all.
_COUNTABLE_CLUSTERS = 62


def sign_flip_p(d: npt.ArrayLike, multiplicity: npt.ArrayLike | None = None) -> float | None:
    """Return the two-sided exact p-value of a sum of cluster totals under fair random signs.

    Parameters
    ----------
    d
        Whole-number totals D_c, one per cluster or per profile. Zeros say nothing and are dropped.
    multiplicity
        Clusters per profile; one each by default.

    Returns
    -------
    float or None
        P(|sum of +-|D_c|| >= |sum D_c|); None where no total is left. Where all |D_c| are equal it
        is the sign test, to the last bit. Above sum |D_c| = 20,000 it is the normal approximation
        with continuity correction.

    Notes
    -----
    Fisher's randomisation test (1935), over clusters. The distribution of the sum is the
    convolution of one binomial distribution per size, so the time is polynomial.
    """
    totals = np.asarray(d)
    counts = np.ones(totals.shape, dtype=np.int64) if multiplicity is None else multiplicity
    totals, weights = columns(d=totals, multiplicity=counts)
    kept = (totals != 0) & (weights > 0)
    totals, weights = totals[kept], weights[kept]
    if totals.size == 0:
        return None
    sizes, clusters = _by_size(totals, weights)
    if sizes.size == 1:
        return sign_test_p(int(weights[totals > 0].sum()), int(clusters[0]))
    observed, unit = abs(dot(totals, weights)), int(np.gcd.reduce(sizes))
    if dot(sizes, clusters) > _EXACT_UP_TO:
        return _normal_p(observed - unit, dot(clusters, sizes, sizes))
    return _exact_p(sizes // unit, clusters, observed // unit)


def _by_size(totals: IntArray, weights: IntArray) -> tuple[IntArray, IntArray]:
    size = np.abs(totals)
    if int(size.max()) > 4 * size.size + _FEW:
        sizes, place = np.unique(size, return_inverse=True)
        return sizes, np.bincount(place, weights=weights).astype(np.int64)
    # Whole numbers below 2**53 are exact as floating point, and no cluster counts as nothing.
    clusters = np.bincount(size, weights=weights).astype(np.int64)
    sizes = np.flatnonzero(clusters)
    return sizes, clusters[sizes]


def _normal_p(distance: int, variance: int) -> float:
    return min(1.0, 2.0 * float(special.ndtr(-distance / sqrt(variance))))


def _exact_p(sizes: IntArray, clusters: IntArray, observed: int) -> float:
    """Sum the upper tail of W = sum_s s B_s, where the signed sum is 2W minus its reach."""
    if observed == 0:
        return 1.0
    n = int(clusters.sum())
    exact = n <= _COUNTABLE_CLUSTERS
    # The group with most clusters enters by its tail sums alone, which saves the dearest step.
    last = int(np.argmax(clusters))
    spread = np.ones(1, dtype=np.int64 if exact else np.float64)
    for group in range(sizes.size):
        if group != last:
            size, count = int(sizes[group]), int(clusters[group])
            spread = _convolve(spread, _binomial(count, exact=exact), size)
    threshold = (dot(sizes, clusters) + observed) // 2
    tails = _upper_tails(_binomial(int(clusters[last]), exact=exact))
    need = -((np.arange(spread.size) - threshold) // int(sizes[last]))
    tail = (spread * tails[np.clip(need, 0, tails.size - 1)]).sum()
    return 2 * int(tail) / 2**n if exact else min(1.0, 2.0 * float(tail))


def _binomial(n: int, *, exact: bool) -> Weights:
    """Return the coefficients of n fair flips: as counts, or as shares to a relative 1e-13."""
    if exact:
        return np.array([comb(n, j) for j in range(n + 1)], dtype=np.int64)
    # Products of ratios outward from the middle: no logarithm, so no digits lost in the tails.
    steps = np.arange((n + 1) // 2, n, dtype=np.float64)
    upper = np.concatenate([[1.0], np.cumprod((n - steps) / (steps + 1.0))])
    shares = np.concatenate([upper[::-1] if n % 2 else upper[:0:-1], upper])
    return shares / shares.sum()


def _upper_tails(weights: Weights) -> Weights:
    """Return P(B >= j) for j = 0 to n + 1, summed from the small end."""
    tails = np.zeros(weights.size + 1, dtype=weights.dtype)
    tails[:-1] = np.cumsum(weights[::-1])[::-1]
    return tails


def _convolve(spread: Weights, weights: Weights, size: int) -> Weights:
    """Add size * B to the sum, B having these weights; all terms are positive: no cancellation."""
    length, n = spread.size, weights.size - 1
    result = np.zeros(length + size * n, dtype=spread.dtype)
    if n < size:
        for j, weight in enumerate(weights):
            result[j * size : j * size + length] += weight * spread
    else:
        for residue in range(min(size, length)):
            result[residue::size] = np.convolve(spread[residue::size], weights)
    return result
