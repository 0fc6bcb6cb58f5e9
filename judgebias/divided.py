"""Tables too large for one file: a folder with a file per judge and task.

A path names both, escaped, behind numbers, so that the files sort as the rows do. The columns are
in the files too: whoever reads the folder as one table loses nothing.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its tables are unknown to the checker wherever they are passed on.

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

DIVIDED_ABOVE: Final = 1_000_000
"""Calls from which on calls and verdicts are folders."""
_LONGEST: Final = 80


def write_divided(folder: Path, schema: pa.Schema, rows: Iterable[pa.Table]) -> None:
    """Write a table with judge and task among its columns, sorted by them, file by file.

    Parameters
    ----------
    folder
        Is made.
    schema
        The columns of each file.
    rows
        The table, part by part.
    """
    folder.mkdir(mode=0o700)
    judges: list[str] = []
    tasks: list[str] = []
    writer: pq.ParquetWriter | None = None
    try:
        for judge, task, part in _pieces(rows):
            if writer is None or [judge, task] != [judges[-1], tasks[-1]]:
                if writer is not None:
                    writer.close()
                if not judges or judge != judges[-1]:
                    judges, tasks = [*judges, judge], []
                tasks.append(task)
                inside = folder / _named(len(judges), judge)
                inside.mkdir(mode=0o700, exist_ok=True)
                path = inside / f"{_named(len(tasks), task)}.parquet"
                path.touch(mode=0o600)
                writer = pq.ParquetWriter(path, schema, compression="zstd")
            writer.write_table(part)
    finally:
        if writer is not None:
            writer.close()


def _pieces(rows: Iterable[pa.Table]) -> Iterator[tuple[str, str, pa.Table]]:
    """Cut parts where the judge or the task changes."""
    for part in rows:
        start = 0
        keys = pl.DataFrame({name: pl.Series(part[name]) for name in ("judge", "task")})
        runs = keys.select(run=pl.struct("judge", "task").rle()).unnest("run").unnest("value")
        for n_rows, judge, task in runs.iter_rows():
            yield judge, task, part.slice(start, n_rows)
            start += n_rows


def _named(number: int, name: str) -> str:
    return f"{number:04d}-{quote(name, safe='')[:_LONGEST]}"
