"""From verdicts to counts: clusters with the same counts collapse into one profile.

Every figure of a row depends on its clusters only through how many of each joint outcome (slot in
`ab`, slot in `ba`, gold) a cluster holds. So the clusters of a row are described whole by their
distinct count vectors and the number of clusters that have each. Where each pair is its own cluster
there are at most 36 such vectors, however many pairs.

While grouping, a vector travels packed into a few 64-bit words, with as many bits for a count as
the largest cluster needs: sums of words are then sums of vectors, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from judgebias.summary.settle import KEY, SLOTS, is_complete
from judgebias.verdicts import OUTCOMES, Winner

ALL: Final = "ALL"
"""The name of the row over all tasks; no task may have it."""
GOLDS: Final = (*Winner, None)
CODES: Final = tuple((ab, ba, gold) for ab, ba in OUTCOMES for gold in GOLDS)
"""What a complete pair can be; a *code* is a place in this list."""
WORD_BITS: Final = 63

Ints = NDArray[np.int64]
Group = tuple[str, str]
"""(judge, task)"""


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
    collected = frame.collect()
    states = _states(collected)
    profiles = _profiles(collected.filter(is_complete()))
    ordered = sorted(states, key=lambda group: (group[0], group[1] == ALL, group[1]))
    return {
        group: Tally(states=states[group], profiles=profiles.get(group, NO_PROFILES))
        for group in ordered
    }


def _code() -> pl.Expr:
    first = SLOTS[OUTCOMES[0][0]]
    outcome = (pl.col("state_ab") - first) * len(SLOTS) + pl.col("state_ba") - first
    golds = {str(gold): place for place, gold in enumerate(GOLDS) if gold is not None}
    gold = pl.col("gold").cast(pl.String)
    place = gold.replace_strict(golds, default=len(golds), return_dtype=pl.UInt8)
    return pl.when(is_complete()).then(outcome * len(GOLDS) + place)


def _states(frame: pl.DataFrame) -> dict[Group, dict[tuple[int, int], int]]:
    counted = frame.group_by("judge", "task", "state_ab", "state_ba").len()
    states: dict[Group, dict[tuple[int, int], int]] = {}
    for judge, task, ab, ba, n in counted.iter_rows():
        for group in ((judge, task), (judge, ALL)):
            cells = states.setdefault(group, {})
            cells[ab, ba] = cells.get((ab, ba), 0) + n
    return states


def _profiles(complete: pl.DataFrame) -> dict[Group, Profiles]:
    if complete.is_empty():
        return {}
    apart, grouped = _by_cluster(complete)
    packing = _Packing.of(complete, grouped)
    lone = apart.group_by("judge", "task", "code").agg(pl.len().alias("multiplicity"))
    lone_words = lone.select("judge", "task", *packing.words(), "multiplicity")
    by_task = _pack(grouped, packing)
    by_judge = by_task.group_by("judge", *_CLUSTER).agg(pl.col(packing.names).sum())
    frames = [
        lone_words,
        lone_words.with_columns(task=pl.lit(ALL)),
        _collapse(by_task, packing),
        _collapse(by_judge.with_columns(task=pl.lit(ALL)), packing),
    ]
    merged = (
        pl.concat([frame.select(frames[0].columns) for frame in frames])
        .group_by("judge", "task", *packing.names)
        .agg(pl.col("multiplicity").sum())
        .sort("judge", "task", *packing.names)
    )
    parts: Iterable[tuple[tuple[object, ...], pl.DataFrame]] = merged.partition_by(
        "judge", "task", as_dict=True, include_key=False
    ).items()
    return {(str(key[0]), str(key[1])): packing.unpack(part) for key, part in parts}


_CLUSTER: Final = ("cluster", "lone_task", "lone_pair")


def _by_cluster(complete: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Pairs that are clusters by themselves, and pairs to be grouped, with the key to group by."""
    unnamed = pl.col("cluster").is_null()
    repeated = complete["repeat"].min() != complete["repeat"].max()
    lone = [
        pl.when(unnamed).then(pl.col(name)).alias(f"lone_{short}")
        for name, short in (("task", "task"), ("pair_id", "pair"))
    ]
    if repeated:
        return complete.clear(), complete.with_columns(lone)
    return complete.filter(unnamed), complete.filter(~unnamed).with_columns(lone)


def _pack(grouped: pl.DataFrame, packing: _Packing) -> pl.DataFrame:
    words = [word.sum() for word in packing.words()]
    return grouped.group_by("judge", "task", *_CLUSTER).agg(words)


def _collapse(clusters: pl.DataFrame, packing: _Packing) -> pl.DataFrame:
    return clusters.group_by("judge", "task", *packing.names).agg(pl.len().alias("multiplicity"))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Packing:
    """Where each code's count lies in the words."""

    codes: tuple[int, ...]
    bits: int

    @classmethod
    def of(cls, complete: pl.DataFrame, grouped: pl.DataFrame) -> _Packing:
        """Bits for the largest cluster of any judge, and the codes that occur."""
        sizes = grouped.group_by("judge", *_CLUSTER).len()["len"]
        largest = 1 if sizes.is_empty() else int(str(sizes.max()))
        codes = complete["code"].unique().sort().to_list()
        return cls(codes=tuple(codes), bits=largest.bit_length())

    @property
    def per_word(self) -> int:
        return WORD_BITS // self.bits

    @property
    def names(self) -> list[str]:
        return [f"word_{n}" for n in range(-(-len(self.codes) // self.per_word))]

    def words(self) -> list[pl.Expr]:
        """A pair's vector, packed: one in the place of its code."""
        return [self._word(n).alias(name) for n, name in enumerate(self.names)]

    def _word(self, number: int) -> pl.Expr:
        inside = self.codes[number * self.per_word : (number + 1) * self.per_word]
        units = {code: 1 << (place * self.bits) for place, code in enumerate(inside)}
        return pl.col("code").replace_strict(units, default=0, return_dtype=pl.Int64)

    def unpack(self, part: pl.DataFrame) -> Profiles:
        """The vectors of a judge x task as a matrix, codes that never occur left out."""
        mask = (1 << self.bits) - 1
        words = [part[name].to_numpy() for name in self.names]
        columns = [
            (words[n // self.per_word] >> ((n % self.per_word) * self.bits)) & mask
            for n in range(len(self.codes))
        ]
        counts = np.column_stack(columns).astype(np.int64)
        return Profiles(
            codes=np.array(self.codes, dtype=np.int64),
            counts=counts,
            multiplicity=part["multiplicity"].to_numpy().astype(np.int64),
        )
