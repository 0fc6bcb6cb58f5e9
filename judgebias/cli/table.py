"""The summary on a terminal: one line per judge and task, the figures that decide."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table

from judgebias.cli.tabulate import Written
from judgebias.report import words
from judgebias.report.words import Row

Column: TypeAlias = tuple[str, Callable[[Row], str]]
"""A column's head, and how a row of the summary fills it."""

_COLUMNS: Final[tuple[Column, ...]] = (
    ("pairs", lambda row: f"{row['n_complete']:,}"),
    ("consistency", lambda row: words.with_interval(row, "consistency")),
    ("first slot", lambda row: words.percent(row["first_position_rate"])),
    ("p position", lambda row: words.p_value(row["p_position"])),
    ("q", lambda row: words.p_value(row["q_position"])),
    ("position bias", lambda row: str(row["position_bias"])),
    ("swing", lambda row: words.signed_percent(row["swing"])),
    ("win rate of A", lambda row: words.with_interval(row, "win_rate_a")),
)

_SAMPLED: Final[tuple[Column, ...]] = (
    ("in both orders", lambda row: f"{row['n_both']:,}"),
    ("in one", lambda row: f"{row['n_single']:,}"),
    ("swing", lambda row: words.with_interval(row, "swing", signed=True)),
    ("win rate of A, two-order rule", lambda row: words.with_interval(row, "win_rate_a")),
    ("first calls: first slot", lambda row: words.percent(row["first_call_rate"])),
    ("first calls: win rate of A", lambda row: words.with_interval(row, "single_win_rate_a")),
)
_PROBE: Final[tuple[Column, ...]] = (
    ("items", lambda row: f"{row['n_items']:,}"),
    ("tie rate", lambda row: words.with_interval(row, "tie_rate")),
    ("first slot", lambda row: words.percent(row["slot1_pull"])),
    ("second slot", lambda row: words.percent(row["slot2_pull"])),
    ("p", lambda row: words.p_value(row["p_items"])),
    ("finding", lambda row: str(row["flag"] or row["reason"])),
)

_SOFT: Final[tuple[Column, ...]] = (
    ("soft win rate of A", lambda row: words.percent(row["win_rate_a_soft"])),
    ("soft offset", words.offset_soft),
)

MOST_ROWS = 60
"""A longer summary shows only its ALL rows on the screen."""


def print_summary(summary: pl.DataFrame, *, as_json: bool) -> None:
    """Print the summary to stdout: a table for people, or the rows as JSON."""
    if as_json:
        sys.stdout.write(json.dumps(summary.to_dicts(), indent=2, ensure_ascii=False) + "\n")
        return
    shown = summary if summary.height <= MOST_ROWS else summary.filter(pl.col("task") == "ALL")
    soft = _SOFT if words.has_soft(shown.iter_rows(named=True)) else ()
    console().print(table_of(shown.iter_rows(named=True), (*_COLUMNS, *soft)))
    if shown.height < summary.height:
        console().print(f"{summary.height - shown.height} rows by task: see summary.md")


def print_written(written: Written, *, as_json: bool) -> None:
    """Print the summary, and what a design in one order or a probe adds to it."""
    print_summary(written.summary, as_json=as_json)
    if as_json:
        return
    _print_rows("all pairs, also those asked in one order", written.sampled, _SAMPLED)
    _print_rows("two identical texts", written.self_pair, _PROBE)


def print_probe(written: Written, *, as_json: bool) -> None:
    """Print what the judges made of two identical texts: a table, or the rows as JSON."""
    if as_json:
        rows = written.self_pair.to_dicts()
        sys.stdout.write(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
        return
    _print_rows("two identical texts", written.self_pair, _PROBE)


def _print_rows(title: str, rows: pl.DataFrame, columns: Sequence[Column]) -> None:
    shown = rows if rows.height <= MOST_ROWS else rows.filter(pl.col("task") == "ALL")
    if shown.height:
        console().print(title)
        console().print(table_of(shown.iter_rows(named=True), columns))


class _Unread(Console):
    """A console whose reader may go away: that is no failure of what was done before."""

    def on_broken_pipe(self) -> None:
        """Let the rest go nowhere, also what is flushed when the process ends."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def console() -> Console:
    """Open stdout for tables; a pipe gets lines as wide as they need to be."""
    return _Unread() if sys.stdout.isatty() else _Unread(width=160)


def table_of(rows: Iterable[Row], columns: Sequence[Column]) -> Table:
    """Lay rows out under judge, task and the given columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("judge", "task"):
        table.add_column(name)
    for name, _ in columns:
        table.add_column(name, justify="right")
    for row in rows:
        last = row["task"] == "ALL"
        cells = [show(row) for _, show in columns]
        table.add_row(str(row["judge"]), str(row["task"]), *cells, end_section=last)
    return table
