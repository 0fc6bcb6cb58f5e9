"""tables/leaks.csv: how many pairs tell a judge who wrote an answer, by judge and task.

What is counted is what was sent: the same pairs for every judge, but for the family of the judge,
which decides whether a leak names its own kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import polars as pl

from judgebias.leaks import LEAK_COLUMNS, SEPARATOR, family_of_leak
from judgebias.summary.columns import TEXT, WHOLE, frame_of, place, typed
from judgebias.summary.figures import Row
from judgebias.summary.profiles import ALL

LEAK_TABLE: Final = {
    **typed(TEXT, "judge", "task"),
    **typed(WHOLE, "n_pairs", "n_leaking", "n_leaking_a", "n_leaking_b"),
    **typed(WHOLE, "n_self", "n_name", "n_model", "n_own_family", "n_skipped"),
    **typed(TEXT, "names"),
}
"""Columns of tables/leaks.csv, all counts of pairs: with a leak in either answer, in A, in B; with
one of each kind; with one that names the judge's own family; left out by on_leak = skip (not among
`n_pairs`); and the names told, the most frequent first."""
_SHOWN: Final = 5


def leak_rows(
    judge: str, family: str, pairs: pl.DataFrame, skipped: Mapping[str, int] | None = None
) -> list[Row]:
    """Count the leaks of one judge's pairs, per task and over ALL.

    Parameters
    ----------
    judge, family
        The judge, and the family its own kind is told by.
    pairs
        task and `LEAK_COLUMNS`: one row per pair that the judge is shown.
    skipped
        Task -> pairs left out for a leak.
    """
    left_out = skipped or {}
    sizes = dict(pairs.group_by("task").len().iter_rows())
    leaking = pairs.filter(pl.any_horizontal(pl.col(LEAK_COLUMNS).is_not_null()))
    told: dict[str, list[tuple[str | None, str | None]]] = {}
    for task, a, b in leaking.select("task", *LEAK_COLUMNS).iter_rows():
        told.setdefault(task, []).append((a, b))
    tasks = sorted({*sizes, *left_out})
    rows = [_row(task, sizes.get(task, 0), told.get(task, []), family) for task in tasks]
    everything = [pair for task in tasks for pair in told.get(task, [])]
    rows.append(_row(ALL, pairs.height, everything, family))
    skips = {**left_out, ALL: sum(left_out.values())}
    return [{"judge": judge, **row, "n_skipped": skips.get(str(row["task"]), 0)} for row in rows]


def leaks_table(rows: Iterable[Row]) -> pl.DataFrame:
    """Make the table of the rows of all judges, sorted, ALL last."""
    return frame_of(sorted(rows, key=place), LEAK_TABLE)


def leak_words(rows: Iterable[Mapping[str, object]], on_leak: str = "warn") -> list[str]:
    """Say what the judges' ALL rows found, a line each; nothing where there is no leak."""
    told = [row for row in rows if row["task"] == ALL and row["n_leaking"]]
    if not told:
        return []
    most = max(told, key=lambda row: int(str(row["n_leaking"])))
    do = "" if on_leak == "skip" else '; on_leak = "skip" would leave them out'
    return [
        f"identity leaks: in {most['n_leaking']} of {most['n_pairs']} pairs an answer tells who "
        f"wrote it ({most['names']}): see tables/leaks.csv{do}",
        *(
            f"identity leaks: {_pairs(row['n_own_family'])} judge {row['judge']} of its own family"
            for row in told
            if row["n_own_family"]
        ),
    ]


def _pairs(number: object) -> str:
    return "1 pair tells" if number == 1 else f"{number} pairs tell"


def _row(
    task: str, n_pairs: int, told: Sequence[tuple[str | None, str | None]], family: str
) -> Row:
    leaks = [{leak for side in pair if side for leak in side.split(SEPARATOR)} for pair in told]
    kinds = Counter(kind for pair in leaks for kind in {leak.partition(" ")[0] for leak in pair})
    return {
        "task": task,
        "n_pairs": n_pairs,
        "n_leaking": len(told),
        "n_leaking_a": sum(a is not None for a, _ in told),
        "n_leaking_b": sum(b is not None for _, b in told),
        **{f"n_{kind}": kinds[kind] for kind in ("self", "name", "model")},
        "n_own_family": sum(family in map(family_of_leak, pair) for pair in leaks),
        "names": _names(leaks),
    }


def _names(leaks: Sequence[set[str]]) -> str | None:
    counted = Counter(name for pair in leaks for name in {leak.partition(" ")[2] for leak in pair})
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} {n}" for name, n in ordered[:_SHOWN]]
    more = [f"{len(ordered) - _SHOWN} more"] if len(ordered) > _SHOWN else []
    return ", ".join([*shown, *more]) or None
