"""How many pairs must be asked in both orders, in words."""

from __future__ import annotations

from math import ceil

from judgebias.stats.sampling import sample_size


def plan_sample_sentence(consistency: float, width: float, n: int) -> str:
    """Say what sample of `n` pairs shows a consistency within an interval of this width.

    Parameters
    ----------
    consistency
        What is expected, from 0 to 1.
    width
        Full width of the 95% interval, between 0 and 1.
    n
        Pairs that the input holds.

    Raises
    ------
    ValueError
        The consistency is not a share, or the width not between 0 and 1.
    """
    m = sample_size(consistency, width)
    wish = (
        f"to know a consistency of about {consistency:.0%} within {width:.1%} from end to end "
        f"(95%), {m} independent pairs must be asked in both orders"
    )
    if m >= n:
        return f'{wish}, and there are {n}: orders = "both"'
    share = _share(m, n)
    asked = round(share * n)
    return (
        f'{wish}: orders = "sampled" with swap_fraction = {share} asks {asked} of {n} pairs '
        f"twice, {n + asked} calls a judge and repeat in place of {2 * n}"
    )


def _share(m: int, n: int) -> float:
    """Return the shortest decimal fraction whose share of n, rounded, is at least m."""
    for digits in range(2, 17):
        share = ceil(m / n * 10**digits) / 10**digits
        if m <= round(share * n) <= m + max(1, n // 1000):
            return share
    return 1.0
