"""From verdicts to counts: clusters with the same counts collapse into one profile.

Every figure of a row depends on its clusters only through how many of each joint outcome (slot in
`ab`, slot in `ba`, gold) a cluster holds. So the clusters of a row are described whole by their
distinct count vectors and the number of clusters that have each. Where each pair is its own cluster
there are at most 36 such vectors, however many pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judgebias.summary.clusters import ALL, Group, cluster_numbers, count_vectors
from judgebias.summary.settle import KEY, SLOTS, STATES, is_complete
from judgebias.summary.words import place_of
from judgebias.verdicts import OUTCOMES, Winner

GOLDS: Final = (*Winner, None)
CODES: Final = tuple((ab, ba, gold) for ab, ba in OUTCOMES for gold in GOLDS)
"""What a complete pair can be; a *code* is a place in this list."""
COUNTED: Final = (*KEY, "cluster", "gold", "state_ab", "state_ba")
"""The columns of verdicts that are counted."""
INCOMPLETE: Final = len(CODES)
"""In the place of a code: a verdict is missing."""
_ALONE: Final = -1

Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, slots=True)
class Profiles:
    """The clusters of one judge x task: distinct count vectors and how often each occurs."""

    codes: Ints
    """(P,) places in `CODES` that occur."""
    counts: Ints
    """(K, P) complete pairs of each code in a cluster of each profile."""
    multiplicity: Ints
    """(K,) clusters with each profile."""

    def sums(self, weights: Ints) -> Ints:
        """Per profile, the sum of a weight per code over the pairs of a cluster: (K,)."""
        return self.counts @ weights[self.codes]

    def total(self, weights: Ints) -> int:
        """The same sum over all clusters."""
        return int(self.sums(weights) @ self.multiplicity)


NO_PROFILES: Final = Profiles(
    codes=np.zeros(0, np.int64),
    counts=np.zeros((0, 0), np.int64),
    multiplicity=np.zeros(0, np.int64),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """Whole numbers of one judge x task: everything a row of the summary is computed from."""

    states: dict[tuple[int, int], int]
    """Pairs by the states of their two calls, complete or not."""
    profiles: Profiles
    """The clusters of the complete pairs."""


def count(verdicts: pl.LazyFrame) -> dict[Group, Tally]:
    """Count verdicts per (judge, task) and per (judge, ALL), in sorted order, ALL last."""
    frame = verdicts.select(COUNTED).collect()
    coded = Coded.of(frame)
    task, tasks = numbered(frame["task"])
    found: dict[Group, Tally] = {}
    by_task = coded.by(task)
    for judge, whole in coded.by(np.zeros_like(task)).items():
        mine = {group: tally for group, tally in by_task.items() if group[0] == judge[0]}
        found |= {(name, tasks[place]): tally for (name, place), tally in mine.items()}
        found[judge[0], ALL] = whole
    return found


def _code() -> pl.Expr:
    first = SLOTS[OUTCOMES[0][0]]
    outcome = (pl.col("state_ab") - first) * len(SLOTS) + pl.col("state_ba") - first
    place = place_of("gold", Winner).fill_null(len(Winner))
    return pl.when(is_complete()).then(outcome * len(GOLDS) + place).otherwise(INCOMPLETE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Coded:
    """Verdicts as columns of numbers, one entry of each a verdict."""

    judges: list[str]
    """Sorted; `judge` is a place in it."""
    judge: Ints
    states: Codes
    """Both states as one number."""
    code: Codes
    """Place in `CODES`, or `INCOMPLETE`."""
    cluster: Ints
    """`_ALONE` where a pair is a cluster by itself."""

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Coded:
        """Make numbers of a frame with the columns of `COUNTED`."""
        judge, judges = numbered(frame["judge"])
        told = frame.select("state_ab", "state_ba", _code().alias("code"))
        ab, ba, code = (told[name].to_numpy().astype(np.uint8) for name in told.columns)
        return cls(
            judges=judges,
            judge=judge,
            states=ab * STATES + ba,
            code=code,
            cluster=cluster_numbers(frame).fill_null(_ALONE).to_numpy(),
        )

    def by(self, unit: Ints) -> dict[tuple[str, int], Tally]:
        """Count the verdicts of each judge and unit, in sorted order.

        Parameters
        ----------
        unit
            (verdicts,) whole numbers from 0.
        """
        if not unit.size:
            return {}
        n_units = int(unit.max()) + 1
        group = self.judge * n_units + unit
        ordered = self
        if (np.diff(group) < 0).any():
            # Small numbers are sorted by their digits, which takes a tenth of the time.
            small = group.astype(np.uint16) if group.max() < 2**16 else group
            order = np.argsort(small, kind="stable")
            ordered, group = self._taken(order), group[order]
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        ends = [*starts[1:].tolist(), group.size]
        return {
            (self.judges[group[low] // n_units], int(group[low] % n_units)): ordered._tally(
                slice(low, high)
            )
            for low, high in zip(starts.tolist(), ends, strict=True)
        }

    def _taken(self, order: Ints) -> Coded:
        return replace(
            self,
            judge=self.judge[order],
            states=self.states[order],
            code=self.code[order],
            cluster=self.cluster[order],
        )

    def _tally(self, rows: slice) -> Tally:
        states = np.bincount(self.states[rows], minlength=STATES**2)
        known = np.flatnonzero(states).tolist()
        return Tally(
            states={divmod(both, STATES): int(states[both]) for both in known},
            profiles=_profiles(self.code[rows], self.cluster[rows]),
        )


def _profiles(code: Codes, cluster: Ints) -> Profiles:
    complete = code < INCOMPLETE
    occur = np.flatnonzero(np.bincount(code[complete], minlength=INCOMPLETE))
    if not occur.size:
        return NO_PROFILES
    place = np.searchsorted(occur, code)
    alone = cluster == _ALONE
    lone = np.bincount(place[complete & alone], minlength=occur.size)
    there = np.flatnonzero(lone)
    grouped = complete & ~alone
    together = count_vectors(cluster[grouped], place[grouped], occur.size)
    return _merged(
        occur,
        np.concatenate([np.eye(occur.size, dtype=np.int64)[there], together.counts]),
        np.concatenate([lone[there], together.multiplicity]),
    )


def numbered(names: pl.Series) -> tuple[Ints, list[str]]:
    """Number names by their place among the sorted ones."""
    known = names.unique().cast(pl.String).sort()
    words = names.cast(pl.Enum(known))
    return words.to_physical().to_numpy().astype(np.int64), known.to_list()


def _merged(codes: Ints, counts: Ints, multiplicity: Ints) -> Profiles:
    """Put equal profiles together: a lone pair is as a cluster of one."""
    distinct, place = np.unique(counts, axis=0, return_inverse=True)
    clusters = np.bincount(place.ravel(), weights=multiplicity).astype(np.int64)
    return Profiles(codes=codes, counts=distinct, multiplicity=clusters)
