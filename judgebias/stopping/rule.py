"""The rule that says when a judge need not be asked any more, fed unit by unit.

A unit is a cluster with all its pairs. Units come in an order that was drawn before anything was
asked, so what is seen first says nothing about what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import numpy as np
import numpy.typing as npt

from judgebias.stats.anytime import log_mixture, most_by_chance
from judgebias.stats.betting import betting_interval
from judgebias.stats.interval import Interval
from judgebias.stats.profiles import IntArray
from judgebias.verdicts import Slot

ALPHA = 0.05
"""Probability of a false call over all looks and all judges of a run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What is asked for; the first of the two that holds ends the asking."""

    half_width: float = 0.0
    """Half-width of the swing over the whole set; 0 = not asked for."""
    decided: bool = False
    """Whether to stop when the judge is shown to lean to a slot."""
    alpha: float = ALPHA
    """For one judge: `ALPHA` over the number of judges."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """Units in their order, all settled: one entry each."""

    leans: IntArray
    """Sum of the leans of its complete pairs (+1 first, -1 second)."""
    swings: IntArray
    """Sum of s_ab + s_ba over its complete pairs (s = +1 first, -1 second, 0 tie)."""
    sizes: IntArray
    """Complete pairs; fewer than were asked where calls failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Anytime:
    """Figures that hold at every look."""

    n_units: int
    n_pairs: int
    """Complete pairs in those units."""
    lean_first: int
    lean_second: int
    """Units that lean to either slot."""
    p_lean: float
    """Anytime p-value of the lean over units."""
    swing: float | None
    """Mean swing so far; None without a complete pair."""
    of_set: Interval
    """Bounds on the swing of the whole set."""
    of_population: Interval
    """Bounds on the swing of the population that the units come from."""
    reason: str
    """Why the bounds allow to stop; "" where they do not."""


def look(rule: Rule, units: Units, *, n_units: int, largest: int) -> Anytime:
    """Judge a settled prefix of the order.

    Parameters
    ----------
    rule
        What is asked for.
    units
        All units so far. What a later look is given begins with them, unchanged.
    n_units
        Units of the whole set.
    largest
        Pairs (times repeats) in its largest unit.
    """
    firsts, seconds = np.cumsum(units.leans > 0), np.cumsum(units.leans < 0)
    first, second = (int(counts[-1]) if counts.size else 0 for counts in (firsts, seconds))
    evidence = max(0.0, float(log_mixture(firsts, seconds).max(initial=0.0)))
    of_set = _swing_bounds(rule, units, largest, n_units)
    pairs = int(units.sizes.sum())
    return Anytime(
        n_units=units.sizes.size,
        n_pairs=pairs,
        lean_first=first,
        lean_second=second,
        p_lean=exp(-evidence),
        swing=int(units.swings.sum()) / (2 * pairs) if pairs else None,
        of_set=of_set,
        of_population=_swing_bounds(rule, units, largest, None),
        reason=_reason(rule, evidence, first - second, of_set),
    )


def _swing_bounds(rule: Rule, units: Units, largest: int, n_units: int | None) -> Interval:
    bounds = betting_interval(
        (units.swings + 2 * units.sizes) / 4.0,
        units.sizes,
        alpha=rule.alpha,
        largest=largest,
        n_units=n_units,
        # A half-width of the swing is twice that of X = (x + 1)/2.
        half_width=rule.half_width / 2.0,
    )
    return Interval(low=2.0 * (bounds.low or 0.0) - 1.0, high=2.0 * (bounds.high or 0.0) - 1.0)


def _reason(rule: Rule, evidence: float, lean: int, swing: Interval) -> str:
    if rule.decided and evidence >= most_by_chance(rule.alpha):
        return f"it leans to the {Slot.FIRST if lean > 0 else Slot.SECOND} slot"
    half_width = ((swing.high or 0.0) - (swing.low or 0.0)) / 2.0
    # The bounds are whole steps of the candidates; a double must not decide about one.
    if rule.half_width and half_width <= rule.half_width + 1e-12:
        return f"its swing is known to {rule.half_width:g} either way"
    return ""


def settled_prefix(settled: npt.NDArray[np.bool_]) -> int:
    """Return how many units from the start have all their calls back: never what is back first."""
    return int(np.argmin(settled)) if not settled.all() else settled.size
