"""Bounds on a mean that hold at every look: capital won by betting against each candidate.

A *unit* is a cluster: its total of X (each X in 0 to 1) and its number of pairs. The mean is that
of X over pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
import numpy.typing as npt

from judgebias.stats.interval import Interval

FloatArray = npt.NDArray[np.float64]

STEPS = 2000
"""Candidates are 0, 1/2000, ... 1; bounds are rounded outward to one of them."""

_CAP = 0.95
"""The largest stake: below 1, so that no outcome takes everything. The same for every candidate, so
that the capital against means below falls with the candidate and the other rises: what lies between
two candidates is out when the nearer one is, and a search by halves finds the last one out."""


def betting_interval(
    totals: npt.ArrayLike,
    sizes: npt.ArrayLike | None = None,
    *,
    alpha: float,
    largest: int = 1,
    n_units: int | None = None,
    half_width: float = 0.0,
) -> Interval:
    """Return the bounds on a mean after these units; all looks together fail with at most alpha.

    Parameters
    ----------
    totals, sizes
        Per unit, in an order that was drawn beforehand: the total of X, and the number of pairs
        (1 each by default; 0 where no pair of the unit has a verdict).
    alpha
        Probability that the bounds of any look exclude the true mean, at most.
    largest
        Pairs in the largest unit there can be.
    n_units
        Units of a finite set drawn without replacement, seen or not; None where units are
        independent draws from a population.
    half_width
        The half-width that is hoped for: half of the capital is then staked to reach it soonest.
        0 = none. It may not depend on the data.

    Returns
    -------
    Interval
        Rounded outward to a candidate. A candidate that was out at an earlier unit stays out.

    Raises
    ------
    ValueError
        A total is not between 0 and its size, a size is above the largest, or there are more units
        than the set has.

    Notes
    -----
    Hedged betting with the predictable plug-in (Waudby-Smith and Ramdas 2024, sections 4 and 5);
    stakes are capped at .95. With z_i(m) = (T_i - m n_i)/largest the sum of all z_i is 0 at the
    true mean m, so what is left of a finite set has the mean -(sum so far)/(units left). Units of
    different sizes, and pairs without a verdict, need nothing more. The hoped-for width h enters as
    a second strategy with the stake h/variance, the growth-optimal one for a mean h away.
    """
    t, n = _checked(totals, sizes, largest, n_units)
    if not t.size:
        return Interval(low=0.0, high=1.0)
    seen = np.arange(t.size)
    before_t, before_n = np.cumsum(t) - t, np.cumsum(n) - n
    stakes = _stakes(t, n, before_t, before_n, alpha, largest, half_width)
    left = None if n_units is None else n_units - seen

    def gaps(m: float) -> FloatArray:
        gap = t - m * n
        if left is not None:
            gap = gap + (before_t - m * before_n) / left
        return gap / largest

    out = log(2.0 / alpha)
    below = _last(lambda i: _most_won(stakes, gaps(i / STEPS)) >= out)
    above = _last(lambda i: _most_won(stakes, -gaps(1.0 - i / STEPS)) >= out)
    return Interval(low=max(0, below) / STEPS, high=1.0 - max(0, above) / STEPS)


def _checked(
    totals: npt.ArrayLike, sizes: npt.ArrayLike | None, largest: int, n_units: int | None
) -> tuple[FloatArray, FloatArray]:
    t = np.asarray(totals, dtype=np.float64)
    n = np.ones(t.shape) if sizes is None else np.asarray(sizes, dtype=np.float64)
    if (t < 0).any() or (t > n).any() or (n > largest).any():
        msg = f"totals of X outside 0 to the unit's size, or a unit of more than {largest} pairs"
        raise ValueError(msg)
    if n_units is not None and t.size > n_units:
        msg = f"{t.size} units of a set of {n_units}; expected at most the whole set"
        raise ValueError(msg)
    return t, n


def _stakes(
    t: FloatArray,
    n: FloatArray,
    before_t: FloatArray,
    before_n: FloatArray,
    alpha: float,
    largest: int,
    half_width: float,
) -> list[FloatArray]:
    """Choose each unit's stakes from what was seen before it."""
    seen = np.arange(t.size, dtype=np.float64)
    residuals = ((t - n * (before_t + 0.5) / (before_n + 1.0)) / largest) ** 2
    variance = (0.25 + np.cumsum(residuals) - residuals) / (seen + 1.0)
    plug_in = np.sqrt(2.0 * log(2.0 / alpha) / (variance * (seen + 1.0) * np.log(seen + 2.0)))
    stakes = [np.minimum(plug_in, _CAP)]
    if half_width:
        mean_size = (before_n + 1.0) / (seen + 1.0)
        stakes.append(np.minimum(half_width * mean_size / (largest * variance), _CAP))
    return stakes


def _most_won(stakes: list[FloatArray], gaps: FloatArray) -> float:
    """Return the highest log capital on the way, the strategies having equal shares at first."""
    # A candidate that a finite set rules out may give gaps beyond -1: the floor keeps them finite.
    won = [np.cumsum(np.log1p(np.maximum(stake * gaps, -_CAP))) for stake in stakes]
    together = won[0] if len(won) == 1 else np.logaddexp(*won)
    return float(together.max()) - log(len(won))


def _last(out: Callable[[int], bool]) -> int:
    """Find the last candidate that is out, those before it being out as well; -1 for none."""
    low, high = -1, STEPS + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if out(middle) else (low, middle)
    return low
