"""summary.md: the figures that decide, for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import polars as pl

from judgebias.report import words
from judgebias.report.words import Row
from judgebias.summary.figures import one_order_only

_Group = tuple[str, str]

_COLUMNS: Final[tuple[tuple[str, Callable[[Row], str]], ...]] = (
    ("complete pairs", lambda row: f"{row['n_complete']}"),
    ("clusters", lambda row: f"{row['n_clusters']}"),
    ("consistency", lambda row: words.with_interval(row, "consistency")),
    ("first slot", lambda row: words.percent(row["first_position_rate"])),
    ("position bias", words.bias),
    ("q", lambda row: words.p_value(row["q_position"])),
    ("p position", lambda row: words.p_value(row["p_position"])),
    ("p paired", lambda row: words.p_value(row["p_paired"])),
    ("offset (logits)", words.offset),
    ("swing", lambda row: words.with_interval(row, "swing", signed=True)),
    ("win rate of A", lambda row: words.with_interval(row, "win_rate_a")),
    ("kappa", words.kappa),
)
_HOW_TO_READ: Final = (
    "Consistency: both orders name the same answer, or both a tie. The verdict on position bias "
    "rests on p position (exact sign-flip test over clusters), adjusted to q over the rows of this "
    "table by Benjamini-Hochberg, rows of single tasks and rows over ALL tasks apart. Swing: win "
    "rate of A when shown first minus when shown second. Intervals are at 95%."
)


def render_summary(
    summary: pl.DataFrame,
    *,
    failures: pl.DataFrame,
    several: Collection[_Group],
    notices: Iterable[str] = (),
) -> str:
    """Render summary.md: figures, totals that add up, and what a reader must know."""
    rows = [dict(row) for row in summary.iter_rows(named=True)]
    sections = [
        "# Summary",
        _table(["judge", "task", *(name for name, _ in _COLUMNS)], [_line(row) for row in rows]),
        _HOW_TO_READ,
        "## Where every pair went",
        _table(list(_TOTALS_HEAD), [_totals(row) for row in rows]),
        *_remarks(rows, failures, several, notices),
    ]
    return "\n\n".join(sections) + "\n"


_TOTALS_HEAD: Final = ("judge", "task", "pairs and where they went", "calls and how they ended")


def _line(row: Row) -> list[str]:
    shown = [show(row) for _, show in _COLUMNS]
    if one_order_only(row):
        shown[3] += " of all calls (one order only)"
    return [*_names(row), *shown]


def _names(row: Row) -> list[str]:
    return [str(row["judge"]), str(row["task"])]


def _totals(row: Row) -> list[str]:
    pairs = (
        f"{row['n_pairs']} = {row['n_complete']} complete + {row['n_one_failed']} one order failed"
        f" + {row['n_both_failed']} both failed + {row['n_pending']} pending"
        f" + {row['n_single']} in one order only"
    )
    calls = (
        f"{row['n_calls']} = {row['n_first']} first + {row['n_second']} second"
        f" + {row['n_tie']} tie + {row['n_failed']} failed"
    )
    return [*_names(row), pairs, calls]


def _remarks(
    rows: list[dict[str, words.Figure]],
    failures: pl.DataFrame,
    several: Collection[_Group],
    notices: Iterable[str],
) -> list[str]:
    lines = [*_reasons(rows), *_models(rows, several), *_coverage(failures), *notices]
    return ["## Notes", "\n".join(f"- {words.cell(line)}" for line in lines)] if lines else []


_REASONS: Final[tuple[tuple[str, Callable[[Row], bool]], ...]] = (
    (
        "Only one order was asked or recorded: consistency and everything that needs both orders "
        "is not available, and the first-slot rate is over all calls",
        one_order_only,
    ),
    (
        "No complete pair: figures over complete pairs are not available",
        lambda row: row["n_complete"] == 0 and not one_order_only(row),
    ),
    (
        "Fewer than 6 leaning clusters: even a unanimous split could not reach .05, so position "
        "bias cannot be told (too few)",
        lambda row: row["position_bias"] == "too few" and row["n_complete"] != 0,
    ),
    (
        "Fewer than 6 clusters: intervals over clusters are not available",
        lambda row: row["n_complete"] != 0 and row["swing_low"] is None,
    ),
    (
        "No pair is stuck on one of the two slots, or none on either: the offset itself is not "
        "available, only its bound",
        lambda row: row["n_complete"] != 0 and row["offset"] is None,
    ),
    (
        "No gold label on a complete pair: kappa is not available",
        lambda row: row["n_complete"] != 0 and row["n_gold"] == 0,
    ),
    (
        "Judge and gold have one and the same label throughout: kappa is not available",
        lambda row: row["n_gold"] != 0 and row["kappa"] is None,
    ),
    (
        "The tasks differ in direction (p below .05), and the ALL row hides it",
        lambda row: (p := row["p_tasks_differ"]) is not None and float(p) < _LEVEL,
    ),
)
_LEVEL: Final = 0.05
_NAMED: Final = 6


def _reasons(rows: list[dict[str, words.Figure]]) -> list[str]:
    told = [(text, [row for row in rows if holds(row)]) for text, holds in _REASONS]
    return [f"{text}: {_which(found, len(rows))}." for text, found in told if found]


def _which(found: list[dict[str, words.Figure]], n_rows: int) -> str:
    if len(found) == n_rows:
        return "all rows"
    names = [" / ".join(_names(row)) for row in found[:_NAMED]]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return f"{'; '.join(names)}{more}"


def _models(rows: list[dict[str, words.Figure]], several: Collection[_Group]) -> list[str]:
    found = [row for row in rows if (str(row["judge"]), str(row["task"])) in several]
    if not found:
        return []
    return [
        "A and B are several model pairs, so win rates of A compare columns and not models: "
        f"{_which(found, len(rows))}."
    ]


def _coverage(failures: pl.DataFrame) -> list[str]:
    warned = failures.filter(pl.col("warning").is_not_null()).unique(
        ["judge", "task"], maintain_order=True
    )
    return [
        f"{judge} / {task}: {warning}"
        for judge, task, warning in warned.select("judge", "task", "warning").iter_rows()
    ]


def _table(head: list[str], lines: list[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(words.cell(text) for text in row)} |" for row in rows)
