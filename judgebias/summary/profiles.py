"""From verdicts to counts: clusters with the same counts collapse into one profile.

Every figure of a row depends on its clusters only through how many of each joint outcome (slot in
`ab`, slot in `ba`, gold) a cluster holds. So the clusters of a row are described whole by their
distinct count vectors and the number of clusters that have each. Where each pair is its own cluster
there are at most 36 such vectors, however many pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judgebias.summary.clusters import ALL, Group, cluster_numbers, count_vectors
from judgebias.summary.settle import KEY, SLOTS, STATES, is_complete
from judgebias.verdicts import OUTCOMES, Winner

GOLDS: Final = (*Winner, None)
CODES: Final = tuple((ab, ba, gold) for ab, ba in OUTCOMES for gold in GOLDS)
"""What a complete pair can be; a *code* is a place in this list."""
INCOMPLETE: Final = len(CODES)
"""In the place of a code: a verdict is missing."""
_ALONE: Final = -1

Ints = NDArray[np.int64]


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
    frame = verdicts.select(*KEY, "cluster", "state_ab", "state_ba", _code().alias("code"))
    counted = _Numbered.of(frame.collect())
    return {
        (judge, task): counted.tally(rows)
        for judge, tasks in counted.groups()
        for task, rows in tasks.items()
    }


def _code() -> pl.Expr:
    first = SLOTS[OUTCOMES[0][0]]
    outcome = (pl.col("state_ab") - first) * len(SLOTS) + pl.col("state_ba") - first
    golds = {str(gold): place for place, gold in enumerate(GOLDS) if gold is not None}
    gold = pl.col("gold").cast(pl.String)
    place = gold.replace_strict(golds, default=len(golds), return_dtype=pl.UInt8)
    return pl.when(is_complete()).then(outcome * len(GOLDS) + place).otherwise(INCOMPLETE)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Numbered:
    """Verdicts as columns of numbers, those of a judge and of a task of it together."""

    names: tuple[list[str], list[str]]
    """Judges and tasks, sorted."""
    judge: Ints
    task: Ints
    states: Ints
    """Both states as one number."""
    code: Ints
    cluster: Ints
    """`_ALONE` where a pair is a cluster by itself."""

    @classmethod
    def of(cls, frame: pl.DataFrame) -> _Numbered:
        judge, judges = _coded(frame["judge"])
        task, tasks = _coded(frame["task"])
        columns = {
            "judge": judge,
            "task": task,
            "states": frame["state_ab"].to_numpy().astype(np.int64) * STATES
            + frame["state_ba"].to_numpy(),
            "code": frame["code"].to_numpy().astype(np.int64),
            "cluster": cluster_numbers(frame).fill_null(_ALONE).to_numpy(),
        }
        group = judge * len(tasks) + task
        if group.size and (np.diff(group) < 0).any():
            order = np.argsort(group, kind="stable")
            columns = {name: column[order] for name, column in columns.items()}
        return cls(names=(judges, tasks), **columns)

    def groups(self) -> Iterator[tuple[str, dict[str, slice]]]:
        """Give for each judge the rows of its tasks, and of all of them together."""
        judges, tasks = self.names
        for number, judge in enumerate(judges):
            start, stop = np.searchsorted(self.judge, [number, number + 1]).tolist()
            edges = start + np.searchsorted(self.task[start:stop], np.arange(len(tasks) + 1))
            parts = pairwise(edges.tolist())
            found = {
                task: slice(low, high)
                for task, (low, high) in zip(tasks, parts, strict=True)
                if low < high
            }
            yield judge, found | {ALL: slice(start, stop)}

    def tally(self, rows: slice) -> Tally:
        """Count the rows of a group."""
        states = np.bincount(self.states[rows], minlength=STATES**2)
        return Tally(
            states={divmod(both, STATES): int(states[both]) for both in np.flatnonzero(states)},
            profiles=self._profiles(rows),
        )

    def _profiles(self, rows: slice) -> Profiles:
        code, cluster = self.code[rows], self.cluster[rows]
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


def _coded(names: pl.Series) -> tuple[Ints, list[str]]:
    """Number names by their place among the sorted ones."""
    words = names.cast(pl.String)
    known = words.unique().sort()
    return words.cast(pl.Enum(known)).to_physical().to_numpy().astype(np.int64), known.to_list()


def _merged(codes: Ints, counts: Ints, multiplicity: Ints) -> Profiles:
    """Put equal profiles together: a lone pair is as a cluster of one."""
    distinct, place = np.unique(counts, axis=0, return_inverse=True)
    clusters = np.bincount(place.ravel(), weights=multiplicity).astype(np.int64)
    return Profiles(codes=codes, counts=distinct, multiplicity=clusters)
