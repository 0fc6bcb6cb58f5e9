"""The tables as files: CSV, JSON, Parquet and Markdown, the same bytes for the same calls."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from judgebias.report.markdown import render_summary
from judgebias.report.publish import publish, publish_text
from judgebias.summary import VERDICT_COLUMNS, several_models
from judgebias.summary.settle import KEY


def write_tables(
    folder: Path,
    *,
    summary: pl.DataFrame,
    repeats: pl.DataFrame,
    failures: pl.DataFrame,
    verdicts: pl.LazyFrame,
    notices: Iterable[str] = (),
) -> list[Path]:
    """Write summary.*, tables/repeats.csv, tables/failures.csv and verdicts.parquet.

    Parameters
    ----------
    folder
        The run directory; made where it is missing.
    summary, repeats, failures
        What `summarize`, `repeats_table` and `failures_table` return.
    verdicts
        What `settle_calls` returns, or the columns of verdicts.parquet.
    notices
        Lines for the reader of summary.md.

    Returns
    -------
    list of Path
        The files, each written whole or not at all.
    """
    text = render_summary(
        summary, failures=failures, several=several_models(verdicts), notices=notices
    )
    write_verdicts(folder / "verdicts.parquet", verdicts)
    write_csv(folder / "tables" / "repeats.csv", repeats)
    write_csv(folder / "tables" / "failures.csv", failures)
    write_csv(folder / "summary.csv", summary)
    write_json(folder / "summary.json", summary)
    write_parquet(folder / "summary.parquet", summary)
    publish_text(folder / "summary.md", text)
    kinds = ("csv", "json", "parquet", "md")
    return [
        *(folder / f"summary.{kind}" for kind in kinds),
        folder / "tables" / "repeats.csv",
        folder / "tables" / "failures.csv",
        folder / "verdicts.parquet",
    ]


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


def write_verdicts(path: Path, verdicts: pl.LazyFrame) -> None:
    """Write the verdicts, sorted by their key, words as plain text."""
    words = pl.col("slot_ab", "slot_ba", "cell", "final").cast(pl.String)
    write_parquet(path, verdicts.select(VERDICT_COLUMNS).with_columns(words).sort(KEY).collect())
