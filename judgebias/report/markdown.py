"""summary.md: the figures that decide, for people."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

import polars as pl

from judgebias.report import words
from judgebias.report.soft import HOW_SOFT, SOFT
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
_LENGTHS: Final = ("characters of A, B", words.mean_lengths)
"""Beside the win rate where the judges were asked here."""
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
    extra: Iterable[str] = (),
) -> str:
    """Render summary.md: figures, totals that add up, and what a reader must know.

    `extra` are sections of their own, which stand between the totals and the notes.
    """
    rows = [dict(row) for row in summary.iter_rows(named=True)]
    sections = [
        "# Summary",
        *_partial(rows),
        _figures(rows),
        _HOW_TO_READ,
        *_soft(rows),
        "## Where every pair went",
        _table(list(_TOTALS_HEAD), [_totals(row) for row in rows]),
        *extra,
        *_remarks(rows, failures, several, notices),
    ]
    return "\n\n".join(sections) + "\n"


def _partial(rows: list[dict[str, words.Figure]]) -> list[str]:
    """Say first of all that something is still to be asked."""
    whole = [row for row in rows if row["task"] == "ALL" and row["n_pending"]]
    if not whole:
        return []
    parts = [f"{row['judge']} {row['n_pending']} of {row['n_pairs']}" for row in whole]
    return [f"**This report is partial.** Pairs still pending: {words.cell(', '.join(parts))}."]


def _soft(rows: list[dict[str, words.Figure]]) -> list[str]:
    if not words.has_soft(rows):
        return []
    head = ["judge", "task", *(name for name, _ in SOFT)]
    lines = [[*_names(row), *(show(row) for _, show in SOFT)] for row in rows]
    return ["## Verdict probabilities", _table(head, lines), HOW_SOFT]


_TOTALS_HEAD: Final = ("judge", "task", "pairs and where they went", "calls and how they ended")


def _figures(rows: list[dict[str, words.Figure]]) -> str:
    columns = [*_COLUMNS, *((_LENGTHS,) if any(row.get("mean_len_a") for row in rows) else ())]
    head = ["judge", "task", *(name for name, _ in columns)]
    return _table(head, [_line(row, columns) for row in rows])


def _line(row: Row, columns: Sequence[tuple[str, Callable[[Row], str]]]) -> list[str]:
    shown = [show(row) for _, show in columns]
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
        "Some pairs were asked or recorded in one order only: what needs both orders is told over "
        "the complete pairs",
        lambda row: row["n_single"] != 0 and row["n_complete"] != 0,
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
    (
        "A slot's word was outside the listed alternatives, so only a bound of its probability is "
        "known: such pairs are counted (n_soft_bounds) and left out of the soft figures",
        lambda row: bool(row.get("n_soft_bounds")),
    ),
    (
        "The word tie was outside the listed alternatives: it is counted (n_soft_no_tie) and left "
        "out of the soft win rate",
        lambda row: bool(row.get("n_soft_no_tie")),
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


_Columns = tuple[tuple[str, Callable[[Row], str]], ...]

_PROBE: Final[_Columns] = (
    ("items", lambda row: f"{row['n_items']}"),
    ("calls and how they ended", lambda row: _probe_calls(row)),
    ("tie rate", lambda row: words.with_interval(row, "tie_rate")),
    ("first slot", lambda row: words.percent(row["slot1_pull"])),
    ("second slot", lambda row: words.percent(row["slot2_pull"])),
    ("p over items", lambda row: words.p_value(row["p_items"])),
    ("finding", lambda row: str(row["flag"] or words.MISSING)),
)
_SAMPLED: Final[_Columns] = (
    ("pairs in both orders", lambda row: f"{row['n_both']}"),
    ("pairs in one", lambda row: f"{row['n_single']}"),
    ("consistency", lambda row: words.with_interval(row, "consistency")),
    ("position bias", lambda row: _bias(row)),
    ("swing", lambda row: words.with_interval(row, "swing", signed=True)),
    ("win rate of A, two-order rule", lambda row: words.with_interval(row, "win_rate_a")),
    ("win rate of A, first calls", lambda row: words.with_interval(row, "single_win_rate_a")),
    ("first slot of first calls", lambda row: words.percent(row["first_call_rate"])),
    ("p of first calls", lambda row: words.p_value(row["first_call_p"])),
)
_FLIPS: Final[_Columns] = (
    ("repeated pairs", lambda row: f"{row['n_repeated']}"),
    ("flips between orders", lambda row: words.with_interval(row, "flip_rate_between")),
    ("flips within an order", lambda row: words.with_interval(row, "flip_rate_within")),
    (
        "position effect of any direction",
        lambda row: words.with_interval(row, "position_effect", signed=True),
    ),
)
_STRENGTH: Final[_Columns] = (
    ("win rate from 1/2", lambda row: f"{row['band']}"),
    ("pairings", lambda row: f"{row['n_pairings']}"),
    ("complete pairs", lambda row: f"{row['n_complete']}"),
    ("consistency", lambda row: words.with_interval(row, "consistency")),
    ("swing", lambda row: words.with_interval(row, "swing", signed=True)),
    ("offset (logits)", words.offset),
    ("position bias", words.bias),
)


def render_probe(probe: pl.DataFrame) -> str:
    """Render what judges made of two identical texts; nothing where none was shown."""
    return _section("## Two identical texts", probe, _PROBE, ("reason",))


def render_sampled(sampled: pl.DataFrame) -> str:
    """Render the estimates from one order for all pairs and both for some."""
    notes = ("note", "first_call_reads", "single_win_rate_reads")
    one_order = sampled.height and not sampled["n_both"].sum()
    title = "## One order only" if one_order else "## Both orders for some pairs only"
    return _section(title, sampled, _SAMPLED, notes)


def render_flips(flips: pl.DataFrame) -> str:
    """Render direction against noise."""
    return _section("## Repeats: direction against noise", flips, _FLIPS, ("reason",))


def render_strength(strength: pl.DataFrame) -> str:
    """Render position bias by how even the pairing is."""
    return _section("## Position by strength of the pairing", strength, _STRENGTH, ())


def _section(title: str, table: pl.DataFrame, columns: _Columns, notes: tuple[str, ...]) -> str:
    if table.is_empty():
        return ""
    rows: list[dict[str, words.Figure]] = [dict(row) for row in table.iter_rows(named=True)]
    head = ["judge", "task", *(name for name, _ in columns)]
    lines = [[*_names(row), *(show(row) for _, show in columns)] for row in rows]
    told = list(dict.fromkeys(row[name] for name in notes for row in rows if row[name]))
    remarks = [
        f"- {words.cell(f'{text}: {_which(_with(rows, notes, text), len(rows))}')}."
        for text in told
    ]
    return "\n\n".join([title, _table(head, lines), *(["\n".join(remarks)] if remarks else [])])


def _with(
    rows: list[dict[str, words.Figure]], notes: tuple[str, ...], text: words.Figure
) -> list[dict[str, words.Figure]]:
    return [row for row in rows if text in (row[name] for name in notes)]


def _bias(row: Row) -> str:
    return words.MISSING if row["position_bias"] is None else words.bias(row)


def _probe_calls(row: Row) -> str:
    return (
        f"{row['n_calls']} = {row['n_slot1']} first + {row['n_slot2']} second"
        f" + {row['n_tie']} tie + {row['n_failed']} failed"
    )


def _table(head: list[str], lines: list[list[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(words.cell(text) for text in row)} |" for row in rows)
