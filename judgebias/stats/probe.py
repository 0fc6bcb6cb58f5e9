"""The self-pair probe: what a judge does when both slots hold the same text."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy.typing as npt

from judgebias.stats.binomial import sign_test_p
from judgebias.stats.clustered import agreement_rate
from judgebias.stats.interval import Interval
from judgebias.stats.profiles import columns, dot
from judgebias.stats.sign_flip import sign_flip_p

TIE_RATE_EXPECTED = 0.9
"""A judge whose tie rate lies below this, bound and all, cannot resolve small differences."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeFigures:
    """What a judge made of identical texts; None where a figure is not available."""

    n_items: int
    """Items with at least one verdict."""

    n_calls: int
    """Verdicts, over all repeats."""

    n_slot1: int
    """Verdicts for the first slot."""

    n_slot2: int
    """Verdicts for the second slot."""

    n_tie: int
    """Verdicts that saw no difference."""

    tie_rate: float | None
    """n_tie/n_calls; None for a template without a tie option."""

    tie_interval: Interval | None
    """Wilson's interval of the tie rate, over items where one was asked several times."""

    slot1_pull: float | None
    """n_slot1/n_calls."""

    slot2_pull: float | None
    """n_slot2/n_calls."""

    p_value: float | None
    """Exact sign test of the pulls, calls counted one by one; None with no pull."""

    p_items: float | None
    """Exact sign-flip test of the pulls over items; equal to `p_value` with one call an item."""

    offset: float | None
    """ln((n_slot1 + .5)/(n_slot2 + .5)), not halved; None with no pull."""

    flagged: bool | None
    """The judge often prefers one of two identical texts; None where the tie rate is unknown."""


def probe_figures(
    slot1: npt.ArrayLike,
    slot2: npt.ArrayLike,
    ties: npt.ArrayLike,
    multiplicity: npt.ArrayLike,
    *,
    has_tie: bool = True,
) -> ProbeFigures:
    """Return the figures of the probe from counts by item profile.

    Parameters
    ----------
    slot1, slot2, ties
        Per profile, the item's verdicts for the first slot, the second slot, and neither.
    multiplicity
        Items per profile.
    has_tie
        Whether the template lets the judge call a tie.

    Notes
    -----
    Wilson (1927) for the tie rate. With the same text in both slots a logistic choice gives
    P(first)/P(second) = e^b from single calls: hence the offset is not halved.
    """
    first, second, tie, items = columns(
        slot1=slot1, slot2=slot2, ties=ties, multiplicity=multiplicity
    )
    calls = first + second + tie
    n_first, n_second, n_tie = (dot(items, counts) for counts in (first, second, tie))
    n, pulls = n_first + n_second + n_tie, n_first + n_second
    interval = agreement_rate(tie, calls, items)[0] if has_tie else None
    return ProbeFigures(
        n_items=dot(items, (calls > 0).astype(items.dtype)),
        n_calls=n,
        n_slot1=n_first,
        n_slot2=n_second,
        n_tie=n_tie,
        tie_rate=n_tie / n if n and has_tie else None,
        tie_interval=interval,
        slot1_pull=n_first / n if n else None,
        slot2_pull=n_second / n if n else None,
        p_value=sign_test_p(n_first, pulls) if pulls else None,
        p_items=sign_flip_p(first - second, items),
        offset=log((n_first + 0.5) / (n_second + 0.5)) if pulls else None,
        flagged=_below(interval, TIE_RATE_EXPECTED),
    )


def _below(interval: Interval | None, bound: float) -> bool | None:
    if interval is None or interval.high is None:
        return None
    return interval.high < bound
