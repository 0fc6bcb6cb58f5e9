"""From the counts of one judge x task to the figures of its row.

Whole numbers are added first; each figure is one call of `stats` on the cluster profiles. Figures
that compare rows (q-values) are not here: see `rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np

from judgebias.stats.binomial import sign_test_p
from judgebias.stats.clustered import agreement_rate, mean_interval, ratio_interval
from judgebias.stats.kappa import kappa_with_interval
from judgebias.stats.offset import detectable_offset, position_offset
from judgebias.stats.sign_flip import sign_flip_p
from judgebias.summary.columns import Figure, Row, estimate
from judgebias.summary.profiles import CODES, Ints, Profiles, Tally
from judgebias.summary.settle import ABSENT, FAILED, PENDING, SLOTS
from judgebias.verdicts import Cell, Order, Slot, Winner, final, settle, unswap

_Outcome: TypeAlias = tuple[Slot, Slot]

STATUSES: Final = ("complete", "pending", "single", "one_failed", "both_failed")
"""What can be known of the two calls of a pair; the counts add up to the pairs."""
LEAN: Final = {
    Cell.STUCK_FIRST: 1,
    Cell.HALF_FIRST: 1,
    Cell.STUCK_SECOND: -1,
    Cell.HALF_SECOND: -1,
}
_STEP: Final = {Slot.FIRST: 1, Slot.SECOND: -1, Slot.TIE: 0}
_SCORE: Final = {Winner.A: 2, Winner.TIE: 1, Winner.B: 0}
"""Scores in halves, so that they are whole."""


def figures(tally: Tally) -> Row:
    """Compute the row of one judge x task, but for what compares it with other rows."""
    row = call_counts(tally)
    profiles = tally.profiles
    row |= {str(cell): profiles.total(_CELLS[cell]) for cell in Cell}
    row |= pair_counts(tally)
    row["n_clusters"] = int(profiles.multiplicity.sum())
    row |= _consistency(profiles)
    row |= _single_calls(tally)
    row |= _lean(profiles)
    row |= _offset(profiles)
    row |= _wins(profiles)
    return row | _gold(profiles)


def call_counts(tally: Tally) -> Row:
    """Count pairs and recorded calls; a pending call is not a call yet."""
    ends = dict.fromkeys((*SLOTS.values(), FAILED), 0)
    for states, n in tally.states.items():
        for state in states:
            if state in ends:
                ends[state] += n
    return {
        "n_pairs": sum(tally.states.values()),
        "n_calls": sum(ends.values()),
        **{f"n_{slot}": ends[state] for slot, state in SLOTS.items()},
        "n_failed": ends[FAILED],
    }


def pair_counts(tally: Tally) -> Row:
    """Count pairs by what is known of their two calls; the terms add up to `n_pairs`."""
    counts = {status: 0 for status in STATUSES}  # noqa: C420 - fromkeys would narrow the keys
    for states, n in tally.states.items():
        counts[pair_status(*states)] += n
    return {f"n_{status}": n for status, n in counts.items()}


def pair_status(ab: int, ba: int) -> str:
    """Say where a pair stands: pending outranks single, single outranks failed."""
    states = (ab, ba)
    if PENDING in states:
        return "pending"
    if ABSENT in states:
        return "single"
    failed = states.count(FAILED)
    return ("complete", "one_failed", "both_failed")[failed]


def one_order_only(row: Mapping[str, Figure]) -> bool:
    """Whether no pair of a row was asked in both orders, so that only single calls can be told."""
    both = ("n_complete", "n_one_failed", "n_both_failed")
    return row["n_single"] != 0 and all(row[name] == 0 for name in both)


def _weights(value: Callable[[Cell, _Outcome], int]) -> Ints:
    """Give each code a whole number by its cell and slots; gold does not matter."""
    return np.array([value(settle(ab, ba), (ab, ba)) for ab, ba, _ in CODES], dtype=np.int64)


_ONE: Final = _weights(lambda _cell, _slots: 1)
_CELLS: Final = {cell: _weights(lambda got, _, cell=cell: int(got is cell)) for cell in Cell}
_AGREED: Final = sum(
    (_CELLS[cell] for cell in (Cell.AGREED_A, Cell.AGREED_B, Cell.AGREED_TIE)), 0 * _ONE
)
_FIRSTS: Final = _weights(lambda _, slots: slots.count(Slot.FIRST))
_DECISIVE_CALLS: Final = _weights(lambda _, slots: 2 - slots.count(Slot.TIE))
_LEANING: Final = _weights(lambda cell, _: LEAN.get(cell, 0))
_SWINGS: Final = _weights(lambda _, slots: _STEP[slots[0]] + _STEP[slots[1]])
_SCORES: Final = _weights(lambda cell, _: _SCORE[final(cell)])
_SCORES_AB: Final = _weights(lambda _, slots: _SCORE[unswap(slots[0], Order.AB)])
_SCORES_BA: Final = _weights(lambda _, slots: _SCORE[unswap(slots[1], Order.BA)])
_WINS_A: Final = _CELLS[Cell.AGREED_A]
_WINS_B: Final = _CELLS[Cell.AGREED_B]


def _consistency(profiles: Profiles) -> Row:
    n, agreed = profiles.total(_ONE), profiles.total(_AGREED)
    stuck = profiles.total(_CELLS[Cell.STUCK_FIRST] + _CELLS[Cell.STUCK_SECOND])
    interval, design_effect = agreement_rate(
        profiles.sums(_AGREED), profiles.sums(_ONE), profiles.multiplicity
    )
    return {
        **estimate("consistency", _share(agreed, n), interval),
        "design_effect": design_effect,
        "position_bias_rate": _share(stuck, n),
    }


def _single_calls(tally: Tally) -> Row:
    """Compute the customary figures, which treat calls as independent."""
    profiles = tally.profiles
    firsts, decisive = profiles.total(_FIRSTS), profiles.total(_DECISIVE_CALLS)
    interval = ratio_interval(
        profiles.sums(_FIRSTS), profiles.sums(_DECISIVE_CALLS), profiles.multiplicity
    )
    if one_order_only(pair_counts(tally)):
        calls = call_counts(tally)
        firsts = int(calls["n_first"] or 0)
        decisive = firsts + int(calls["n_second"] or 0)
    return {
        **estimate("first_position_rate", _share(firsts, decisive), interval),
        "p_value": sign_test_p(firsts, decisive) if decisive else None,
    }


def _lean(profiles: Profiles) -> Row:
    first = profiles.total(_CELLS[Cell.STUCK_FIRST] + _CELLS[Cell.HALF_FIRST])
    second = profiles.total(_CELLS[Cell.STUCK_SECOND] + _CELLS[Cell.HALF_SECOND])
    by_cluster = profiles.sums(_LEANING)
    return {
        "lean_first": first,
        "lean_second": second,
        **_mean("lean_rate", profiles, _LEANING, low=-1, scale=1),
        "p_paired": sign_test_p(first, first + second) if first + second else None,
        "p_position": sign_flip_p(by_cluster, profiles.multiplicity),
        "n_leaning_clusters": int(profiles.multiplicity[by_cluster != 0].sum()),
    }


def _offset(profiles: Profiles) -> Row:
    first = profiles.total(_CELLS[Cell.STUCK_FIRST])
    second = profiles.total(_CELLS[Cell.STUCK_SECOND])
    offset, interval = position_offset(first, second)
    leaning = profiles.total(abs(_LEANING))
    return {
        **estimate("offset", offset, interval),
        "detectable_offset": detectable_offset(leaning),
        **_mean("swing", profiles, _SWINGS, low=-1, scale=2),
    }


def _wins(profiles: Profiles) -> Row:
    n, wins_a, wins_b = (profiles.total(weights) for weights in (_ONE, _WINS_A, _WINS_B))
    decisive = wins_a + wins_b
    of_decisive, _ = agreement_rate(
        profiles.sums(_WINS_A), profiles.sums(_WINS_A + _WINS_B), profiles.multiplicity
    )
    return {
        "wins_a": wins_a,
        "wins_b": wins_b,
        "ties": n - decisive,
        "decisive_pairs": decisive,
        **_mean("win_rate_a", profiles, _SCORES, low=0, scale=2),
        "win_rate_a_ab": _share(profiles.total(_SCORES_AB), 2 * n),
        "win_rate_a_ba": _share(profiles.total(_SCORES_BA), 2 * n),
        **estimate("decisive_win_rate_a", _share(wins_a, decisive), of_decisive),
        "p_preference": sign_flip_p(profiles.sums(_WINS_A - _WINS_B), profiles.multiplicity),
    }


def _gold(profiles: Profiles) -> Row:
    confusion = np.stack(
        [np.stack([profiles.sums(_LABELS[a, b]) for b in Winner], axis=-1) for a in Winner], axis=-2
    )
    kappa = kappa_with_interval(confusion, profiles.multiplicity)
    return {
        "n_gold": int((confusion.sum(axis=(1, 2)) * profiles.multiplicity).sum()),
        "agreement": kappa.agreement,
        **estimate("kappa", kappa.kappa, kappa.interval),
    }


def _labels(verdict: Winner, gold: Winner) -> Ints:
    return np.array(
        [int(final(settle(ab, ba)) is verdict and label is gold) for ab, ba, label in CODES],
        dtype=np.int64,
    )


_LABELS: Final = {(a, b): _labels(a, b) for a in Winner for b in Winner}


def _mean(name: str, profiles: Profiles, weights: Ints, *, low: int, scale: int) -> Row:
    interval = mean_interval(
        profiles.sums(weights),
        profiles.sums(_ONE),
        profiles.multiplicity,
        scale=scale,
        low=low,
        high=1,
    )
    n = scale * profiles.total(_ONE)
    return estimate(name, _share(profiles.total(weights), n), interval)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
