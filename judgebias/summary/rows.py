"""The table of rows: each judge x task and each judge over ALL, with what compares rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import polars as pl

from judgebias.stats.heterogeneity import directions_differ_p
from judgebias.stats.interval import MIN_CLUSTERS
from judgebias.stats.multiplicity import benjamini_hochberg
from judgebias.summary.columns import Figure, Row, bounded
from judgebias.summary.figures import figures
from judgebias.summary.profiles import ALL, count
from judgebias.verdicts import Cell, Slot

SIGNIFICANT: Final = 0.05

_COUNTS: Final = (
    *("n_pairs", "n_calls", "n_first", "n_second", "n_tie", "n_failed"),
    *(str(cell) for cell in Cell),
    *("n_complete", "n_pending", "n_single", "n_one_failed", "n_both_failed", "n_clusters"),
)


_SECTION: Final = (
    *(*bounded("consistency"), "design_effect", "position_bias_rate"),
    *(*bounded("first_position_rate"), "p_value"),
    *("lean_first", "lean_second", *bounded("lean_rate"), "p_paired"),
    *("p_position", "n_leaning_clusters", "q_position", "position_bias", "p_tasks_differ"),
    *(*bounded("offset"), "detectable_offset", *bounded("swing")),
    *("wins_a", "wins_b", "ties", "decisive_pairs"),
    *(*bounded("win_rate_a"), "win_rate_a_ab", "win_rate_a_ba"),
    *(*bounded("decisive_win_rate_a"), "p_preference"),
    *("n_gold", "agreement", *bounded("kappa")),
)
_WHOLE: Final = {
    *_COUNTS,
    *("lean_first", "lean_second", "n_leaning_clusters", "n_gold"),
    *("wins_a", "wins_b", "ties", "decisive_pairs"),
}
_TEXT: Final = {"judge", "task", "position_bias"}

SUMMARY_COLUMNS: Final = ("judge", "task", *_COUNTS, *_SECTION)
"""The columns of summary.*, in order."""


def summarize(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute the summary: one row per judge x task and per judge over ALL tasks, ALL last.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, in any order.

    Returns
    -------
    DataFrame
        `SUMMARY_COLUMNS`; a figure that is not available is null.
    """
    return table(compare(rows_of(verdicts)))


def rows_of(verdicts: pl.LazyFrame) -> list[Row]:
    """Compute the rows of a set of verdicts, each by itself."""
    return [
        {"judge": judge, "task": task, **figures(tally)}
        for (judge, task), tally in count(verdicts).items()
    ]


def compare(rows: Sequence[Row], *, apart: Sequence[str] = ("repeat",)) -> list[Row]:
    """Add what needs the other rows: q-values, the words on position bias, tasks that differ.

    Parameters
    ----------
    rows
        Rows of all judges: together they are the family of q.
    apart
        Columns that, beside `judge`, must be equal in an ALL row and in the tasks that it covers.
    """
    adjusted = [*rows]
    for family in (_places(rows, total=False), _places(rows, total=True)):
        tested = [_tested(rows[place]) for place in family]
        for place, q in zip(family, benjamini_hochberg(tested), strict=True):
            adjusted[place] = _with_words(rows[place], q)
    leans = _leans_by_task(rows, apart)
    return [{**row, "p_tasks_differ": _tasks_differ(row, leans, apart)} for row in adjusted]


def table(rows: Iterable[Row], *, extra: dict[str, pl.DataType] | None = None) -> pl.DataFrame:
    """Make the frame of rows, every column with its type; `extra` columns follow `task`."""
    names = [*SUMMARY_COLUMNS[:2], *(extra or {}), *SUMMARY_COLUMNS[2:]]
    schema = {name: (extra or {}).get(name, column_type(name)) for name in names}
    return pl.DataFrame([[row[name] for name in names] for row in rows], schema, orient="row")


def column_type(name: str) -> pl.DataType:
    """Tell the type of a column of the summary."""
    if name in _TEXT:
        return pl.String()
    return pl.Int64() if name in _WHOLE else pl.Float64()


def _places(rows: Sequence[Row], *, total: bool) -> list[int]:
    return [place for place, row in enumerate(rows) if (row["task"] == ALL) == total]


def _tested(row: Row) -> float | None:
    """Return the p-value that enters the family, None where no split could reach .05."""
    enough = _number(row["n_leaning_clusters"]) >= MIN_CLUSTERS
    p = row["p_position"]
    return float(p) if enough and p is not None else None


def _with_words(row: Row, q: float | None) -> Row:
    return {**row, "q_position": q, "position_bias": position_words(row, q)}


def position_words(row: Row, q: float | None) -> str:
    """Say what the test found, in one of the fixed words of the summary."""
    if q is None:
        return "too few"
    if q >= SIGNIFICANT:
        return "none detected"
    lean, swing = _number(row["lean_rate"]), _number(row["swing"])
    mixed = " (mixed)" if lean * swing < 0 else ""
    return f"{Slot.FIRST if lean > 0 else Slot.SECOND}{mixed}"


_Key: TypeAlias = tuple[Figure, ...]
_Leans: TypeAlias = dict[_Key, tuple[list[int], list[int]]]


def _leans_by_task(rows: Sequence[Row], apart: Sequence[str]) -> _Leans:
    leans: _Leans = {}
    for row in rows:
        if row["task"] != ALL:
            first, second = leans.setdefault(_key(row, apart), ([], []))
            first.append(int(_number(row["lean_first"])))
            second.append(int(_number(row["lean_second"])))
    return leans


def _tasks_differ(row: Row, leans: _Leans, apart: Sequence[str]) -> float | None:
    if row["task"] != ALL:
        return None
    return directions_differ_p(*leans.get(_key(row, apart), ([], [])))


def _key(row: Row, apart: Sequence[str]) -> _Key:
    return (row["judge"], *(row.get(name) for name in apart))


def _number(figure: Figure) -> float:
    return float(figure) if isinstance(figure, int | float) else 0.0
