"""The two ends of a 95% interval, and the quantiles that set its width."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import special

Z95 = 1.959963984540054
"""The .975 quantile of the standard normal distribution."""

MIN_CLUSTERS = 6
"""Fewer independent clusters than this cannot carry an interval, nor a sign test at .05."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """The bounds of a 95% interval."""

    low: float | None
    """Lower bound; None where it is unbounded."""

    high: float | None
    """Upper bound; None where it is unbounded."""


UNBOUNDED = Interval(low=None, high=None)
"""The interval of a quantity about which nothing is known."""


def t95(df: int) -> float:
    """Return the .975 quantile of Student's t.

    Parameters
    ----------
    df
        Degrees of freedom, at least 1.
    """
    if df < 1:
        msg = f"t95 was given {df} degrees of freedom; expected 1 or more"
        raise ValueError(msg)
    return float(special.stdtrit(df, 0.975))


def around(centre: float, half_width: float, *, low: float, high: float) -> Interval:
    """Return centre +- half_width, clipped to the range of the quantity."""
    return Interval(low=max(low, centre - half_width), high=min(high, centre + half_width))
