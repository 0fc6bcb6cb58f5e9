"""What makes a row impossible to judge, as one table of rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from judgebias.leaks import LEAK_COLUMNS
from judgebias.pairs.block import Fault, Faults
from judgebias.pairs.spec import COLUMNS, NUMBERS, REQUIRED, ROW_BYTES, PairsSpec
from judgebias.verdicts import Winner

_ALL = "ALL"
"""The summary's name for all tasks together."""
_STRINGS = [name for name in COLUMNS if name not in NUMBERS]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    field: str | None
    broken: pl.Expr
    reason: str


def find_faults(frame: pl.DataFrame, spec: PairsSpec) -> Faults:
    """Find the rows that break a rule, each with the first rule it breaks."""
    rules = _rules(spec)
    broken = frame.select(
        rule.broken.fill_null(value=False).alias(str(i)) for i, rule in enumerate(rules)
    )
    rows = broken.select(pl.any_horizontal(pl.all())).to_series().arg_true()
    faults: Faults = {}
    for row, flags in zip(rows, broken[rows].iter_rows(), strict=True):
        rule = rules[flags.index(True)]
        faults[row] = Fault(field=rule.field, reason=rule.reason)
    return faults


def find_leaking(frame: pl.DataFrame) -> Faults:
    """Find the rows whose answers tell who wrote them, and name what they tell."""
    faults: Faults = {}
    for column in reversed(LEAK_COLUMNS):
        side = column[-1]
        for row in frame[column].is_not_null().arg_true():
            reason = f"identity leak ({frame[column][row]}), and on_leak = skip"
            faults[row] = Fault(field=f"answer_{side}", reason=reason)
    return faults


def _rules(spec: PairsSpec) -> list[_Rule]:
    rules = [
        _Rule(field=name, broken=pl.col(name).is_null(), reason="missing or null")
        for name in REQUIRED
    ]
    rules.append(_Rule(field="pair_id", broken=_is_blank("pair_id"), reason="blank"))
    if spec.empty == "reject":
        rules += [
            _Rule(field=name, broken=_is_blank(name), reason="empty or blank, and empty = reject")
            for name in ("answer_a", "answer_b")
        ]
    rules += [
        _Rule(
            field="task",
            broken=pl.col("task") == _ALL,
            reason=f"the task may not be called {_ALL}: the summary's rows over all tasks are",
        ),
        _Rule(
            field="gold",
            broken=~pl.col("gold").is_in([str(winner) for winner in Winner]),
            reason=f"not one of {', '.join(Winner)}",
        ),
        _Rule(
            field=None, broken=_bytes() > ROW_BYTES, reason=f"row is longer than {ROW_BYTES} bytes"
        ),
    ]
    rules += [
        _Rule(
            field=name,
            broken=pl.col(name).str.contains("\0", literal=True),
            reason="holds a NUL character",
        )
        for name in _STRINGS
    ]
    return rules + [
        _Rule(
            field=name,
            broken=pl.col(name).is_nan() | (pl.col(name).abs() == math.inf),
            reason="not a finite number",
        )
        for name in NUMBERS
    ]


def _is_blank(name: str) -> pl.Expr:
    return ~pl.col(name).str.contains(r"\S")


def _bytes() -> pl.Expr:
    return pl.sum_horizontal(pl.col(name).str.len_bytes().cast(pl.Int64) for name in _STRINGS)
