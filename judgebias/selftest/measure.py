"""Ask a planted judge many times, and run every answer through the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from judgebias.selftest.planted import Planted
from judgebias.selftest.truth import INTERVALS, true_values
from judgebias.summary.figures import Figure, Row, figures
from judgebias.summary.profiles import CODES, Ints, Profiles, Tally
from judgebias.summary.rows import SIGNIFICANT, compare
from judgebias.summary.settle import SLOTS

_TESTS = ("p_position", "p_paired", "p_value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimated:
    """One figure over all repetitions."""

    truth: float
    mean: float | None
    """Mean of the estimates; None where none was available."""
    covered: int
    """Repetitions whose interval holds the true value."""
    available: int
    """Repetitions that had an interval."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What the summary said of one planted judge."""

    planted: Planted
    seed: tuple[int, int]
    """What numpy's default generator was seeded with."""
    repetitions: int
    said: dict[str, int]
    """Word on position bias -> repetitions."""
    rejected: dict[str, int]
    """Test -> repetitions with a p-value below .05."""
    estimated: dict[str, Estimated]

    @property
    def found(self) -> int:
        """Repetitions that report a position bias."""
        return sum(n for word, n in self.said.items() if word not in ("none detected", "too few"))


def measure(planted: Planted, *, repetitions: int, seed: tuple[int, int]) -> Measured:
    """Simulate a judge, and compare what the summary finds with what was planted."""
    rows = [compare([_row(tally)])[0] for tally in tallies(planted, repetitions, seed)]
    truth = true_values(planted)
    return Measured(
        planted=planted,
        seed=seed,
        repetitions=repetitions,
        said=Counter(str(row["position_bias"]) for row in rows),
        rejected={test: sum(_below(row[test]) for row in rows) for test in _TESTS},
        estimated={
            name: _estimated(rows, name, value)
            for name in INTERVALS
            if (value := truth[name]) is not None and (planted.scale or name != "offset")
        },
    )


def tallies(planted: Planted, repetitions: int, seed: tuple[int, int]) -> Iterator[Tally]:
    """Draw what the summary counts: per cluster, pairs by outcome."""
    rng = np.random.default_rng(seed)
    laws, sizes = planted.laws(), planted.cluster_sizes()
    law, weights = planted.law(), planted.weights()
    alone = bool((sizes == 1).all())
    for _ in range(repetitions):
        if alone:
            # Independent pairs: only the mixture shows, and equal clusters are one profile.
            multiplicity = rng.multinomial(sizes.size, law)
            yield _tally(np.eye(len(CODES), dtype=np.int64), multiplicity.astype(np.int64))
        else:
            kinds = rng.choice(len(laws), size=sizes.size, p=weights)
            counts = rng.multinomial(sizes, laws[kinds]).astype(np.int64)
            yield _tally(counts, np.ones(sizes.size, dtype=np.int64))


def _tally(counts: Ints, multiplicity: Ints) -> Tally:
    by_code = multiplicity @ counts
    codes = np.flatnonzero(by_code)
    kept = multiplicity > 0
    states: Counter[tuple[int, int]] = Counter()
    for code in codes:
        ab, ba, _ = CODES[code]
        states[SLOTS[ab], SLOTS[ba]] += int(by_code[code])
    return Tally(
        states=dict(states),
        profiles=Profiles(
            codes=codes, counts=counts[np.ix_(kept, codes)], multiplicity=multiplicity[kept]
        ),
    )


def _row(tally: Tally) -> Row:
    return {"judge": "planted", "task": "planted", **figures(tally)}


def _below(p: Figure) -> bool:
    return p is not None and float(p) < SIGNIFICANT


def _estimated(rows: list[Row], name: str, truth: float) -> Estimated:
    values = [float(value) for row in rows if (value := row[name]) is not None]
    bounds = [(row[f"{name}_low"], row[f"{name}_high"]) for row in rows]
    held = [pair for pair in bounds if pair != (None, None)]
    return Estimated(
        truth=truth,
        mean=sum(values) / len(values) if values else None,
        covered=sum(_holds(low, truth) and _holds(truth, high) for low, high in held),
        available=len(held),
    )


def _holds(low: Figure, high: Figure) -> bool:
    """Compare two ends; an end that is not bounded holds everything."""
    # Rates are ratios of whole numbers: a double must not decide about an equality.
    return low is None or high is None or float(low) <= float(high) + 1e-12
