"""Judges whose law is known: the probability of every outcome of a pair, exactly.

A planted judge is a mixture of *kinds* of clusters (contents, tasks, lengths): a kind has a weight
and a probability for each of `CODES`. So each true value is a finite sum, not a simulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from judgebias.judges.simulated import slot_of
from judgebias.summary.profiles import CODES
from judgebias.verdicts import OUTCOMES, Cell, Slot, Winner, final, settle

FloatArray: TypeAlias = npt.NDArray[np.float64]
Outcomes: TypeAlias = FloatArray
"""A probability for each of `OUTCOMES`."""
Kinds: TypeAlias = tuple[tuple[float, Outcomes], ...]

_GAPS = 201
"""Contents of a logistic judge: quantiles of a normal distribution."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """A judge and the pairs it is asked about."""

    name: str
    kinds: Kinds
    clusters: int
    sizes: tuple[int, ...] = (1,)
    """Pairs of a cluster; clusters take these sizes in turn."""
    gold_share: float = 0.0
    """Share of the final verdicts that the gold labels repeat; 0 = no gold labels."""
    null: bool = False
    """Whether no slot is favoured over the population: a finding is a false one."""
    scale: bool = True
    """Whether the offset is defined in this judge's model."""
    promised: float | None = None
    """Share of half-leaning pairs, where its offset is the one that `detectable_offset` promises to
    show in 4 of 5 runs; None where it is not."""

    @property
    def n_pairs(self) -> int:
        """Pairs in all."""
        return int(self.cluster_sizes().sum())

    def cluster_sizes(self) -> npt.NDArray[np.int64]:
        """Give the size of each cluster."""
        return np.resize(np.array(self.sizes, dtype=np.int64), self.clusters)

    def weights(self) -> FloatArray:
        """Give the share of clusters of each kind."""
        weights = np.array([weight for weight, _ in self.kinds])
        return weights / weights.sum()

    def laws(self) -> FloatArray:
        """Give each kind's probabilities over `CODES`: (kinds, codes)."""
        return np.stack([_with_gold(outcomes, self.gold_share) for _, outcomes in self.kinds])

    def law(self) -> FloatArray:
        """Give the probabilities over `CODES` of any one pair."""
        return self.weights() @ self.laws()


def by_cells(
    consistency: float, *, offset: float = 0.0, halves: float = 0.0, ties: float = 0.1
) -> Outcomes:
    """Plant the cells: a share that agrees, the rest leaning with odds e^(2 offset).

    Parameters
    ----------
    consistency
        Share of pairs on which the orders agree.
    offset
        Half the log odds of stuck_first; half-leaning pairs have odds e^offset, as ties have in the
        model of Davidson.
    halves
        Share of the leaning pairs that lean by half (one order says tie).
    ties
        Share of the agreeing pairs that agree on a tie; A and B share the others 3 : 2.
    """
    leaning, stuck, half = 1.0 - consistency, _share(2.0 * offset), _share(offset)
    cells = {
        Cell.AGREED_A: consistency * (1.0 - ties) * 0.6,
        Cell.AGREED_B: consistency * (1.0 - ties) * 0.4,
        Cell.AGREED_TIE: consistency * ties,
        Cell.STUCK_FIRST: leaning * (1.0 - halves) * stuck,
        Cell.STUCK_SECOND: leaning * (1.0 - halves) * (1.0 - stuck),
        Cell.HALF_FIRST: leaning * halves * half,
        Cell.HALF_SECOND: leaning * halves * (1.0 - half),
    }
    ways = [settle(ab, ba) for ab, ba in OUTCOMES]
    return np.array([cells[cell] / ways.count(cell) for cell in ways])


def by_contents(
    *, offset: float, spread: float = 2.0, noise: float = 1.0, tie_width: float = 0.0
) -> Kinds:
    """Plant the simulated judge's formula: quality gap, offset, noise, a tie where it is close."""
    normal = NormalDist(sigma=spread)
    gaps = [normal.inv_cdf((i + 0.5) / _GAPS) for i in range(_GAPS)]
    return tuple((1.0, _independent(gap, offset, noise, tie_width)) for gap in gaps)


def by_davidson(*, offset: float, spread: float = 2.0, log_tie: float = 0.0) -> Kinds:
    """Plant Davidson's model with ties: weights exp(+-(gap + offset)/2) and exp(log_tie)."""
    normal = NormalDist(sigma=spread)
    gaps = [normal.inv_cdf((i + 0.5) / _GAPS) for i in range(_GAPS)]
    calls = [(_davidson(g + offset, log_tie), _davidson(offset - g, log_tie)) for g in gaps]
    return tuple((1.0, _joined(ab, ba)) for ab, ba in calls)


def mixed(*parts: Outcomes) -> Kinds:
    """Mix kinds of clusters in equal shares."""
    return tuple((1.0, part) for part in parts)


def _share(logit: float) -> float:
    return 1.0 / (1.0 + exp(-logit))


def _independent(gap: float, offset: float, noise: float, tie_width: float) -> Outcomes:
    calls = [_call(x, noise, tie_width) for x in (gap + offset, offset - gap)]
    return _joined(*calls)


def _call(x: float, noise: float, tie_width: float) -> dict[Slot, float]:
    if noise == 0.0:
        return {slot: float(slot is slot_of(x, tie_width)) for slot in Slot}
    first, second = _share((x - tie_width) / noise), _share((-x - tie_width) / noise)
    return {Slot.FIRST: first, Slot.SECOND: second, Slot.TIE: max(0.0, 1.0 - first - second)}


def _davidson(x: float, log_tie: float) -> dict[Slot, float]:
    weights = {Slot.FIRST: exp(x / 2.0), Slot.SECOND: exp(-x / 2.0), Slot.TIE: exp(log_tie)}
    total = sum(weights.values())
    return {slot: weight / total for slot, weight in weights.items()}


def _joined(ab: dict[Slot, float], ba: dict[Slot, float]) -> Outcomes:
    return np.array([ab[first] * ba[second] for first, second in OUTCOMES])


def _with_gold(outcomes: Outcomes, repeated: float) -> FloatArray:
    """Spread outcomes over the gold labels: the final verdict with a share, else any other."""
    place = {outcome: i for i, outcome in enumerate(OUTCOMES)}
    return np.array(
        [
            outcomes[place[ab, ba]] * _gold(final(settle(ab, ba)), gold, repeated)
            for ab, ba, gold in CODES
        ]
    )


def _gold(verdict: Winner, gold: Winner | None, repeated: float) -> float:
    if repeated == 0.0:
        return float(gold is None)
    if gold is None:
        return 0.0
    return repeated if gold is verdict else (1.0 - repeated) / 2.0
