"""The positional offset of a judge in logits, and the smallest offset its data could show."""

from __future__ import annotations

from math import log

from scipy import special

from judgebias.stats.binomial import clopper_pearson
from judgebias.stats.interval import UNBOUNDED, Interval

_HALF_ALPHA = 0.025
_POWER = 0.8


def position_offset(stuck_first: int, stuck_second: int) -> tuple[float | None, Interval]:
    """Return the offset towards the first slot, from the pairs stuck on one slot.

    Parameters
    ----------
    stuck_first, stuck_second
        Pairs whose two orders both gave the first, or both the second slot.

    Returns
    -------
    offset : float or None
        0.5 ln((stuck_first + .5)/(stuck_second + .5)); None where one count is 0, since the value
        would then only mirror the number of pairs.
    interval : Interval
        Half the logit of the Clopper-Pearson bounds; None for an unbounded end.

    Notes
    -----
    In a logistic choice model P(first, first)/P(second, second) = e^(2b) whatever the contents
    (Davidson and Beaver 1977); half-counts after Haldane (1956) and Anscombe (1956).
    """
    bounds = clopper_pearson(stuck_first, stuck_first + stuck_second)
    if bounds is None:
        return None, UNBOUNDED
    interval = Interval(low=_half_logit(bounds.low), high=_half_logit(bounds.high))
    if stuck_first == 0 or stuck_second == 0:
        return None, interval
    return 0.5 * log((stuck_first + 0.5) / (stuck_second + 0.5)), interval


def detectable_offset(n_leaning: int) -> float | None:
    """Return the smallest offset that so many leaning pairs show with 80% power at .05.

    Parameters
    ----------
    n_leaning
        Pairs that lean to either slot.

    Returns
    -------
    float or None
        None where even a unanimous split stays above .05.

    Notes
    -----
    The critical count of the one-sided test at .025, and the share that reaches it with probability
    .8 (a Beta quantile: Clopper and Pearson 1934).
    """
    critical = critical_count(n_leaning) if n_leaning else 1
    if critical > n_leaning:
        return None
    share = float(special.betaincinv(critical, n_leaning - critical + 1, _POWER))
    return _half_logit(share)


def critical_count(n: int) -> int:
    """Return the smallest k with P(B >= k) <= .025 for n fair flips, n at least 1."""
    # Not scipy.stats: its import takes half a second and 40 MB of every command.
    count = int(special.bdtrik(0.975, n, 0.5)) + 1
    while special.bdtrc(count - 2, n, 0.5) <= _HALF_ALPHA:
        count -= 1
    while special.bdtrc(count - 1, n, 0.5) > _HALF_ALPHA:
        count += 1
    return count


def _half_logit(share: float | None) -> float | None:
    if share is None or not 0.0 < share < 1.0:
        return None
    return 0.5 * float(special.logit(share))
