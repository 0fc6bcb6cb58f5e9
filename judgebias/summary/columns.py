"""Columns of the smaller tables: figures with bounds, and frames of rows with declared types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import polars as pl

from judgebias.stats.interval import Interval
from judgebias.summary.profiles import ALL

Figure: TypeAlias = int | float | str | None
Row: TypeAlias = dict[str, Figure]
Schema: TypeAlias = dict[str, pl.DataType]

TEXT: Final = pl.String()
WHOLE: Final = pl.Int64()
NUMBER: Final = pl.Float64()


def typed(kind: pl.DataType, *names: str) -> Schema:
    """Declare columns of one type."""
    return dict.fromkeys(names, kind)


def bounded(name: str) -> Schema:
    """Declare a figure and its bounds; iterated, their names."""
    return typed(NUMBER, name, f"{name}_low", f"{name}_high")


def estimate(name: str, value: float | None, interval: Interval | None) -> Row:
    """Return a figure with its bounds."""
    low, high = (interval.low, interval.high) if interval else (None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def place(row: Mapping[str, Figure]) -> tuple[str, bool, str]:
    """Sort by judge and task, ALL last."""
    task = str(row["task"])
    return str(row["judge"]), task == ALL, task


def frame_of(rows: Iterable[Mapping[str, Figure]], schema: Schema) -> pl.DataFrame:
    """Make the frame of rows, every column with its type; a column a row lacks is null."""
    data = [[row.get(name) for name in schema] for row in rows]
    return pl.DataFrame(data, schema, orient="row")
