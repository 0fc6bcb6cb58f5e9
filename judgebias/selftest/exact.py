"""What needs no simulation: size of the sign test and coverage of Wilson, by enumeration."""

from __future__ import annotations

import numpy as np
from scipy import special

from judgebias.selftest.checks import COVERAGE_WILSON, LEAST_SIZE, MOST_COVERAGE, SIZE, Check
from judgebias.selftest.planted import FloatArray
from judgebias.stats.binomial import sign_test_p, wilson

LEANING = range(1, 401)
PAIRS = (50, 60, 75, 100, 150, 200, 400, 1000)
RATES = np.round(np.arange(0.5, 0.98025, 0.0005), 4)
_LIMIT = "one dip of the lattice between .979 and .98; needed: 60 pairs, or an exact interval"


def exact_checks() -> list[Check]:
    """Enumerate every outcome."""
    sizes = {n: sign_test_size(n) for n in LEANING}
    large = min(size for n, size in sizes.items() if n >= 40)
    coverage = {n: wilson_coverage(n, RATES) for n in PAIRS}
    often = max(c[n * (1.0 - RATES) >= 10].max() for n, c in coverage.items())
    return [
        Check(
            judge="sign test, 1 to 400 leans",
            figure="size",
            value=max(sizes.values()),
            at_most=SIZE,
        ),
        Check(judge="sign test, 40 to 400 leans", figure="size", value=large, at_least=LEAST_SIZE),
        *(
            Check(
                judge=f"Wilson, {n} pairs, rates .5 to .98",
                figure="least coverage",
                value=float(c.min()),
                at_least=COVERAGE_WILSON,
                limit=_LIMIT if n == 50 else "",
                worst=0.916 if n == 50 else None,
            )
            for n, c in coverage.items()
        ),
        Check(
            judge="Wilson, both outcomes expected 10 times",
            figure="most coverage",
            value=float(often),
            at_most=MOST_COVERAGE,
        ),
    ]


def sign_test_size(n: int) -> float:
    """Return the probability that n fair flips give a p-value below .05."""
    ways = _shares(n, np.array([0.5]))[:, 0]
    rejected = [sign_test_p(k, n) < SIZE for k in range(n + 1)]
    return float(ways[rejected].sum())


def wilson_coverage(n: int, rates: FloatArray) -> FloatArray:
    """Return the probability, for each true rate, that the interval of n pairs holds it."""
    intervals = [wilson(k, n) for k in range(n + 1)]
    low = np.array([interval.low for interval in intervals if interval], dtype=np.float64)
    high = np.array([interval.high for interval in intervals if interval], dtype=np.float64)
    ways = _shares(n, rates)
    holds = (low[:, None] <= rates) & (rates <= high[:, None])
    return np.asarray((ways * holds).sum(axis=0), dtype=np.float64)


def _shares(n: int, rates: FloatArray) -> FloatArray:
    """Return P(B = k) for k = 0 to n, a row each, and each rate."""
    k = np.arange(n + 1)[:, None]
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.exp(ways + special.xlogy(k, rates) + special.xlog1py(n - k, -rates))
