"""The true value of each figure of a planted judge: expectations over its law."""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np

from judgebias.selftest.planted import FloatArray, Planted
from judgebias.stats.kappa import cohen_kappa
from judgebias.summary.figures import LEAN
from judgebias.summary.profiles import CODES
from judgebias.verdicts import Cell, Slot, Winner, final, settle

AGREED = (Cell.AGREED_A, Cell.AGREED_B, Cell.AGREED_TIE)
_SIGN = {Slot.FIRST: 1, Slot.SECOND: -1, Slot.TIE: 0}
_SCORE = {Winner.A: 1.0, Winner.B: 0.0, Winner.TIE: 0.5}
_LARGE = 10**12
"""Pairs in the table that stands for the population's kappa."""

INTERVALS = (
    *("consistency", "first_position_rate", "lean_rate", "offset", "swing"),
    *("win_rate_a", "decisive_win_rate_a", "kappa"),
)
"""Figures with bounds, in the order of the summary."""
WILSON = frozenset({"consistency", "decisive_win_rate_a"})


def true_values(planted: Planted) -> dict[str, float | None]:
    """Give what each figure estimates; None where the model does not define it."""
    law = planted.law()
    cells = {cell: _sum(law, lambda got, _ab, _ba, cell=cell: got is cell) for cell in Cell}
    decisive = _sum(law, lambda _, ab, ba: 2 - (ab, ba).count(Slot.TIE))
    firsts = _sum(law, lambda _, ab, ba: (ab, ba).count(Slot.FIRST))
    won = cells[Cell.AGREED_A] + cells[Cell.AGREED_B]
    stuck = (cells[Cell.STUCK_FIRST], cells[Cell.STUCK_SECOND])
    return {
        "consistency": sum(cells[cell] for cell in AGREED),
        "first_position_rate": firsts / decisive if decisive else None,
        "lean_rate": _sum(law, lambda cell, _ab, _ba: LEAN.get(cell, 0)),
        "offset": 0.5 * log(stuck[0] / stuck[1]) if min(stuck) > 0.0 else None,
        "swing": _sum(law, lambda _, ab, ba: (_SIGN[ab] + _SIGN[ba]) / 2.0),
        "win_rate_a": _sum(law, lambda cell, _ab, _ba: _SCORE[final(cell)]),
        "decisive_win_rate_a": cells[Cell.AGREED_A] / won if won else None,
        "kappa": _kappa(law) if planted.gold_share else None,
    }


def scarcer_outcome(planted: Planted, figure: str) -> float:
    """Give how often the scarcer of the two outcomes of a figure is expected among the pairs."""
    law, n = planted.law(), planted.n_pairs
    one, other = _OUTCOMES.get(figure, (_leaning(1), _leaning(-1)))
    share = _sum(law, one)
    return n * min(share, 1.0 - share if other is None else _sum(law, other))


def leaning(planted: Planted) -> float:
    """Give the leaning pairs that are expected."""
    return planted.n_pairs * _sum(planted.law(), lambda cell, _ab, _ba: cell in LEAN)


_Value = Callable[[Cell, Slot, Slot], float]


def _won(cell: Cell) -> _Value:
    return lambda got, _ab, _ba: float(got is cell)


def _leaning(side: int) -> _Value:
    return lambda cell, _ab, _ba: float(LEAN.get(cell, 0) == side)


_OUTCOMES: dict[str, tuple[_Value, _Value | None]] = {
    "consistency": (lambda cell, _ab, _ba: float(cell in AGREED), None),
    "win_rate_a": (_won(Cell.AGREED_A), _won(Cell.AGREED_B)),
    "decisive_win_rate_a": (_won(Cell.AGREED_A), _won(Cell.AGREED_B)),
    "offset": (_won(Cell.STUCK_FIRST), _won(Cell.STUCK_SECOND)),
}


def _sum(law: FloatArray, value: _Value) -> float:
    outcomes = zip(law, CODES, strict=True)
    return float(sum(p * value(settle(ab, ba), ab, ba) for p, (ab, ba, _) in outcomes))


def _kappa(law: FloatArray) -> float | None:
    table = np.zeros((3, 3))
    labels = list(Winner)
    for p, (ab, ba, gold) in zip(law, CODES, strict=True):
        if gold is not None:
            table[labels.index(final(settle(ab, ba))), labels.index(gold)] += p
    return cohen_kappa(np.rint(table * _LARGE / table.sum()).astype(np.int64))
