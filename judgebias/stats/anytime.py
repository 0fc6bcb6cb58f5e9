"""A sign test that may be looked at after every pair: its error holds at all looks together."""

from __future__ import annotations

from math import log

import numpy as np
import numpy.typing as npt
from scipy import special

from judgebias.stats.profiles import columns

FloatArray = npt.NDArray[np.float64]


def log_mixture(firsts: npt.ArrayLike, seconds: npt.ArrayLike) -> FloatArray:
    """Return the log evidence against a fair coin after so many leans to either slot.

    Parameters
    ----------
    firsts, seconds
        Running counts of units that lean to the first and to the second slot.

    Returns
    -------
    array of float
        log M = n ln 2 + ln B(f + 1/2, s + 1/2) - ln B(1/2, 1/2), n = f + s; 0 before any lean.

    Notes
    -----
    The beta-binomial mixture of likelihood ratios (Robbins 1970). Under a fair coin M is a
    martingale that starts at 1, so it ever reaches 1/alpha with probability at most alpha (Ville
    1939), whatever the number of looks.
    """
    f, s = columns(firsts=np.atleast_1d(firsts), seconds=np.atleast_1d(seconds))
    mixed = special.betaln(f + 0.5, s + 0.5) - special.betaln(0.5, 0.5)
    return np.asarray((f + s) * log(2.0) + mixed, dtype=np.float64)


def anytime_sign_p(leans: npt.ArrayLike) -> FloatArray:
    """Return the anytime p-value after each unit of a sequence.

    Parameters
    ----------
    leans
        One number a unit, in the order in which they are looked at; only its sign counts.

    Returns
    -------
    array of float
        min(1, 1/max M) over the units so far: never rises, valid at every one of them.
    """
    signs = np.sign(np.asarray(leans, dtype=np.int64))
    firsts, seconds = np.cumsum(signs > 0), np.cumsum(signs < 0)
    highest = np.maximum.accumulate(np.maximum(log_mixture(firsts, seconds), 0.0))
    return np.exp(-highest)


def most_by_chance(alpha: float) -> float:
    """Return the log evidence that a fair coin reaches with probability at most alpha."""
    return -log(alpha)
