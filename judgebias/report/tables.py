"""The tables as files: CSV, JSON, Parquet and Markdown, the same bytes for the same calls."""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its tables are unknown to the checker wherever they are passed on.

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from judgebias.divided import write_divided
from judgebias.publish import publish, publish_text
from judgebias.report.markdown import render_summary
from judgebias.summary import VERDICT_COLUMNS
from judgebias.summary.settle import in_order

PART_ROWS = 131_072
"""Rows in a row group, and with names in memory at once."""

VERDICTS_SCHEMA = pa.schema(
    [
        pa.field(
            name,
            pa.int32() if name == "repeat" else pa.int64() if name[:4] == "len_" else pa.string(),
        )
        for name in VERDICT_COLUMNS
    ]
)
"""The columns of verdicts.parquet."""


def write_tables(
    folder: Path,
    *,
    summary: pl.DataFrame,
    repeats: pl.DataFrame,
    failures: pl.DataFrame,
    several: Collection[tuple[str, str]],
    notices: Iterable[str] = (),
    sections: Iterable[str] = (),
) -> None:
    """Write summary.*, tables/repeats.csv and tables/failures.csv, each whole or not at all.

    Parameters
    ----------
    folder
        The run directory; made where it is missing.
    summary, repeats, failures
        What `summarize`, `repeats_table` and `failures_table` return.
    several
        The (judge, task) in which A and B are not one model each.
    notices
        Lines for the reader of summary.md.
    sections
        Sections of summary.md beyond the summary.
    """
    text = render_summary(
        summary, failures=failures, several=several, notices=notices, extra=sections
    )
    write_csv(folder / "tables" / "repeats.csv", repeats)
    write_csv(folder / "tables" / "failures.csv", failures)
    write_csv(folder / "summary.csv", summary)
    write_json(folder / "summary.json", summary)
    write_parquet(folder / "summary.parquet", summary)
    publish_text(folder / "summary.md", text)


def write_csv(path: Path, table: pl.DataFrame) -> None:
    """Write a table as CSV; null is an empty field, a number has the digits that give it back."""
    publish(path, lambda beside: table.write_csv(beside))


def write_json(path: Path, table: pl.DataFrame) -> None:
    """Write a table as a JSON list of rows, null where a figure is not available."""
    text = json.dumps(table.to_dicts(), indent=2, ensure_ascii=False, allow_nan=False)
    publish_text(path, f"{text}\n")


def write_parquet(path: Path, table: pl.DataFrame) -> None:
    """Write a table as Parquet."""
    publish(path, lambda beside: table.write_parquet(beside, compression="zstd"))


def write_verdicts(
    path: Path,
    judges: Iterable[pl.DataFrame],
    named: Callable[[pl.DataFrame], pl.DataFrame] = lambda rows: rows,
    *,
    divided: bool = False,
) -> None:
    """Write the verdicts of one judge after the other, words as plain text.

    Parameters
    ----------
    path
        Where verdicts.parquet is to appear.
    judges
        What `settle_calls` returns for each judge, judges in sorted order; one is held at a time.
    named
        Puts names in the place of numbers that sort as they do.
    divided
        Whether it is a folder with a file per judge and task, whose paths sort as the rows do.
    """
    rows = (part for judge in judges for part in _ordered(judge, named))
    if divided:
        publish(path, lambda beside: write_divided(beside, VERDICTS_SCHEMA, rows))
    else:
        publish(path, lambda beside: _write_rows(beside, rows))


def _ordered(
    verdicts: pl.DataFrame, named: Callable[[pl.DataFrame], pl.DataFrame]
) -> Iterator[pa.Table]:
    words = pl.col("slot_ab", "slot_ba", "cell", "final").cast(pl.String)
    ordered = in_order(verdicts.select(VERDICT_COLUMNS))
    for part in ordered.iter_slices(PART_ROWS):
        yield named(part).with_columns(words).to_arrow().cast(VERDICTS_SCHEMA)


def _write_rows(path: Path, rows: Iterable[pa.Table]) -> None:
    with pq.ParquetWriter(path, VERDICTS_SCHEMA, compression="zstd") as writer:
        for part in rows:
            writer.write_table(part)
