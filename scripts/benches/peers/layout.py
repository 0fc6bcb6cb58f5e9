"""Rows as a Markdown table, and the medians that go into them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Figure: TypeAlias = int | float | str | bool | None
Row: TypeAlias = dict[str, Figure]


def table(title: str, rows: Sequence[Mapping[str, Figure]]) -> str:
    """Lay out rows as Markdown; the columns are those of all rows, in order of appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"\n**{title}**\n", f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    lines += [f"| {' | '.join(shown(row.get(name)) for name in names)} |" for row in rows]
    return "\n".join(lines)


def shown(figure: Figure) -> str:
    """Write a figure: three digits are enough, and a dash says that there is none."""
    if figure is None:
        return "-"
    if isinstance(figure, bool):
        return "yes" if figure else "no"
    if isinstance(figure, float):
        return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:,.3g}"
    return f"{figure:,}" if isinstance(figure, int) else figure


def median(rounds: Sequence[Mapping[str, Figure]], name: str) -> float | None:
    """Take the median over the rounds that have the figure; None where none has."""
    figures = (one.get(name) for one in rounds)
    found = [figure for figure in figures if isinstance(figure, int | float)]
    return statistics.median(found) if found else None
