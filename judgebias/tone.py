"""Tone: how much markdown an answer is dressed in, per 1000 characters."""

from __future__ import annotations

from typing import Final

import polars as pl

_PER: Final = 1000.0

# Lines of a program may begin with # or -, and are no headers and no lists.
_FENCED: Final = r"(?ms)^[ \t]*```.*?(?:^[ \t]*```[^\n]*$|\z)"
_ITEM: Final = r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\S"
_FIRST_ITEM: Final = rf"\A{_ITEM}"
"""The first line is looked at by itself: a pattern that begins with a line feed is found five times
as fast as one that begins with the start of any line."""
_MARKS: Final = {
    "headers": r"(?m)^ {0,3}#{1,6}[ \t]+\S",
    "lists": rf"\n{_ITEM}",
    "bold": r"\*\*[^*\n]+\*\*|__[^_\n]+__",
    "tables": r"(?m)^[ \t]*\|[^\n]*\|[ \t]*\r?$",
}

KINDS: Final = tuple(_MARKS)
"""Header lines, list items, bold spans, table rows."""

DENSITY_COLUMNS: Final = tuple(f"{kind}_{side}" for side in ("a", "b") for kind in KINDS)
"""The densities of both answers of a pair, as columns."""


def markdown_density(text: pl.Expr) -> dict[str, pl.Expr]:
    """Return the marks of each of `KINDS` per 1000 code points of a text.

    Marks inside fenced code do not count, its characters do. An empty text has no marks: 0. Null
    stays null: an unknown text is not a plain one.
    """
    prose = text.str.replace_all(_FENCED, "")
    length = text.str.len_chars().clip(1).cast(pl.Float64)
    counts = {kind: prose.str.count_matches(mark) for kind, mark in _MARKS.items()}
    counts["lists"] = counts["lists"] + prose.str.contains(_FIRST_ITEM).cast(pl.UInt32)
    return {
        kind: (count.cast(pl.Float64) * _PER / length).alias(kind) for kind, count in counts.items()
    }


def pair_densities(answer_a: pl.Expr, answer_b: pl.Expr) -> list[pl.Expr]:
    """Return `DENSITY_COLUMNS` of the two answers of a pair."""
    sides = {"a": answer_a, "b": answer_b}
    return [
        density.alias(f"{kind}_{side}")
        for side, text in sides.items()
        for kind, density in markdown_density(text).items()
    ]
