"""tables/tests.csv: every test of a run, adjusted within its family, and the family in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from judgebias.stats.interval import MIN_CLUSTERS
from judgebias.stats.multiplicity import benjamini_hochberg, holm
from judgebias.summary.columns import NUMBER, TEXT, WHOLE, Row, frame_of, typed
from judgebias.summary.profiles import ALL
from judgebias.summary.rows import SIGNIFICANT

TEST_COLUMNS: Final = {
    **typed(TEXT, "table", "judge", "task", "row", "test", "question"),
    **typed(NUMBER, "p", "q", "p_holm"),
    **typed(WHOLE, "n_family"),
    **typed(TEXT, "family"),
    **typed(NUMBER, "detectable_offset"),
    **typed(TEXT, "reason"),
}
"""The columns of tables/tests.csv."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """A test that a table prints."""

    column: str
    """Where its p-value stands."""
    question: str
    """What it asks, and what it is good for."""
    position: bool = False
    """It decides on position bias: only rows that could reach .05 are tested, and nothing detected
    is shown with what could have been."""


_POSITION: Final = Hypothesis(
    column="p_position",
    question="does the judge lean to a slot? Over clusters; the verdict rests on it",
    position=True,
)
_PREFERENCE: Final = Hypothesis(column="p_preference", question="does A win more often than B?")

TESTS: Final[Mapping[str, Sequence[Hypothesis]]] = {
    "summary": (
        _POSITION,
        Hypothesis(column="p_paired", question="as p_position, as if every pair were independent"),
        Hypothesis(
            column="p_value",
            question="as if every call were independent: the customary figure, for comparison only",
        ),
        _PREFERENCE,
        Hypothesis(column="p_tasks_differ", question="do tasks lean in different directions?"),
    ),
    "repeats": (_POSITION, _PREFERENCE),
    "sampled": (
        Hypothesis(column="first_call_p", question="has the slot any effect on first calls?"),
    ),
    "self_pair": (
        Hypothesis(
            column="p_items",
            question="is one of two identical texts picked by its slot? Over items",
        ),
    ),
    "matchups": (_POSITION, _PREFERENCE),
    "matchup_strength": (_POSITION,),
}
"""Table -> its tests. Where a table repeats a test of another, it stands here once."""
_ROW_NAMES: Final = ("repeat", "model_a", "model_b", "band")


def hypotheses_table(
    tables: Mapping[str, pl.DataFrame], tests: Mapping[str, Sequence[Hypothesis]] = TESTS
) -> pl.DataFrame:
    """List every test of a run with p, the adjusted q (Benjamini-Hochberg) and Holm's p.

    Parameters
    ----------
    tables
        Name -> table of the run (summary, repeats, sampled, ...); what a run lacks is left out.
    tests
        Name -> the tests that stand in that table.

    Returns
    -------
    DataFrame
        `TEST_COLUMNS`, in the order of `tests` and of the rows. A family is one test over the rows
        of single tasks of one table, or over its ALL rows; a row without a p-value is not in it.
    """
    rows = [
        row
        for name, hypotheses in tests.items()
        if name in tables
        for hypothesis in hypotheses
        for total in (False, True)
        for row in _family(name, tables[name], hypothesis, total=total)
    ]
    return frame_of(rows, TEST_COLUMNS)


def _family(name: str, table: pl.DataFrame, hypothesis: Hypothesis, *, total: bool) -> list[Row]:
    chosen = table.filter((pl.col("task") == ALL) == total)
    rows = list(chosen.iter_rows(named=True))
    if hypothesis.column == "p_tasks_differ" and not total:
        return []
    p = [_tested(row, hypothesis) for row in rows]
    n = sum(value is not None for value in p)
    about: Row = {
        "table": name,
        "test": hypothesis.column,
        "question": hypothesis.question,
        "n_family": n,
        "family": _words(name, hypothesis, n, total=total),
    }
    adjusted = zip(rows, p, benjamini_hochberg(p), holm(p), strict=True)
    return [
        about
        | _names(row)
        | {"p": row[hypothesis.column], "q": q, "p_holm": strict}
        | _remarks(row, hypothesis, value, q)
        for row, value, q, strict in adjusted
    ]


def _tested(row: Row, hypothesis: Hypothesis) -> float | None:
    p = row[hypothesis.column]
    if p is None or (hypothesis.position and int(row["n_leaning_clusters"] or 0) < MIN_CLUSTERS):
        return None
    return float(p)


def _names(row: Row) -> Row:
    told = [f"{name} {row[name]}" for name in _ROW_NAMES if name in row]
    return {"judge": row["judge"], "task": row["task"], "row": ", ".join(told) or None}


def _remarks(row: Row, hypothesis: Hypothesis, tested: float | None, q: float | None) -> Row:
    nothing = hypothesis.position and q is not None and q >= SIGNIFICANT
    reason = None
    if row[hypothesis.column] is None:
        reason = "not available: nothing to test"
    elif tested is None:
        reason = "too few: under 6 leaning clusters, even a unanimous split could not reach .05"
    return {"detectable_offset": row["detectable_offset"] if nothing else None, "reason": reason}


def _words(name: str, hypothesis: Hypothesis, n: int, *, total: bool) -> str:
    which = "rows over ALL tasks" if total else "judge x task rows"
    rule = " with at least 6 leaning clusters" if hypothesis.position else ""
    return f"{hypothesis.column} in {name}, its {n} {which}{rule}"
