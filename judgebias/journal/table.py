"""The journal as a table: one row per call, the first verdict wins, the rest is extra spend."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from judgebias.crash import crash_point
from judgebias.journal.read import JournalReader, JournalReport
from judgebias.journal.rows import SCHEMA
from judgebias.journal.segment import sync_folder
from judgebias.publish import unfinished
from judgebias.verdicts import Order, Slot

CALL_COLUMNS = (
    "judge",
    "task",
    "pair_id",
    "repeat",
    "order",
    "slot",
    "failure",
    "message",
    "raw",
    "p_first",
    "p_second",
    "p_tie",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost_usd",
    "attempts",
    "latency_ms",
    "model",
    "request_id",
    "worker",
    "time",
)
"""The columns of `calls.parquet`, in its order; it is sorted by the first five."""

CALLS_SCHEMA = pa.schema([(name, SCHEMA.field(name).type) for name in CALL_COLUMNS])

CALL_KEY = ("judge", "fingerprint", "task", "pair_id", "repeat", "order", "pair")
"""The columns that name a call."""

_HASHED = ("pair", "order", "repeat", "judge")
_SORTED_BY = CALL_COLUMNS[:5]
_SLICE_ROWS = 131_072
_POSITION = "_position"
_TRY = ("time", "worker", "request_id", "slot", "failure", "attempts")
_SPEND = ("cost_usd", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_DTYPES: dict[str, pl.DataType] = {
    "order": pl.Enum(Order),
    "slot": pl.Enum(Slot),
    **dict.fromkeys(
        ("judge", "fingerprint", "task", "failure", "model", "worker"), pl.Categorical()
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalContents:
    """Every committed row of a journal."""

    table: pl.DataFrame
    """The journal's columns, in the order of segments and frames; names that repeat are
    categories, which Polars compares with strings."""
    report: JournalReport


def read_journal(
    folder: Path,
    *,
    columns: Sequence[str] | None = None,
    since_epoch: int = 0,
    judge: str | None = None,
) -> JournalContents:
    """Read all committed rows; leave `raw` out of `columns` where memory matters.

    With `judge`, only the rows of that judge are kept (the report still counts all); `columns`
    then names `judge`.

    Raises
    ------
    JournalDamaged
        At a frame that fails its checksum and is not the last of its segment.
    """
    names = list(SCHEMA.names if columns is None else columns)
    parts = [_categories(pl.DataFrame(SCHEMA.empty_table().select(names)))]
    with JournalReader(folder, since_epoch=since_epoch) as journal:
        frames = journal.frames(names)
        if judge is not None:
            frames = (frame.filter(pl.col("judge") == judge) for frame in frames)
        parts.extend(_categories(frame) for frame in frames)
    return JournalContents(table=pl.concat(parts), report=journal.report)


def _categories(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.cast({name: _DTYPES[name] for name in frame.columns if name in _DTYPES})


def first_wins(table: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split the rows of a journal into one row per call, and the rows that are only spend.

    Of the rows of a call its first verdict is taken, by time; without a verdict its last failure.
    Equal times are settled by worker, request id and then place in the journal. `attempts` of a
    call adds those of all its rows: the tries so far. A try that lies in two segments, as after a
    failed sync, counts once. Needs the columns of `CALL_KEY` and of a try: time, worker,
    request_id, slot, failure, attempts.

    Returns
    -------
    calls, extra
        With the columns of `table`, each in the order of the journal.
    """
    placed = table.with_row_index(_POSITION).with_columns(pl.col("attempts").cast(pl.Int64))
    # Nearly every call has one row. Equal hashes only pick the candidates, so none is missed and
    # the exact work is done on few rows.
    repeated = placed.select(_HASHED).hash_rows().is_duplicated()
    if not repeated.any():
        calls = placed.drop(_POSITION)
        return calls, calls.clear()
    single = placed.filter(~repeated)
    tries = placed.filter(repeated).unique([*CALL_KEY, *_TRY], keep="first", maintain_order=True)
    chosen = _chosen(tries)
    winners = tries.drop("attempts").join(chosen, on=_POSITION).select(placed.columns)
    extra = tries.join(chosen, on=_POSITION, how="anti")
    calls = pl.concat([single, winners])
    return calls.sort(_POSITION).drop(_POSITION), extra.sort(_POSITION).drop(_POSITION)


def _chosen(tries: pl.DataFrame) -> pl.DataFrame:
    """The place of each call's winning row, and its attempts in all."""
    names = ("worker", "request_id")
    ordered = tries.with_columns(pl.col(names).cast(pl.String)).sort("time", *names, _POSITION)
    place = pl.col(_POSITION)
    verdict = place.filter(pl.col("slot").is_not_null()).first()
    return (
        ordered.group_by(CALL_KEY)
        .agg(pl.coalesce(verdict, place.last()), pl.col("attempts").sum())
        .select(_POSITION, "attempts")
    )


def extra_spend(extra: pl.DataFrame) -> pl.DataFrame:
    """What the rows that are no call's answer cost, per judge.

    Columns `judge`, `n_verdicts` (bought twice), `n_failures` (tries before the answer, or beside
    it), `n_unpriced` (cost unknown), and the sums of cost and tokens that are known.
    """
    return (
        extra.group_by("judge")
        .agg(
            pl.col("slot").is_not_null().sum().alias("n_verdicts"),
            pl.col("slot").is_null().sum().alias("n_failures"),
            pl.col("cost_usd").is_null().sum().alias("n_unpriced"),
            pl.col(_SPEND).sum(),
        )
        .sort(pl.col("judge").cast(pl.String))
    )


def judges_of(folder: Path) -> list[str]:
    """Name the judges that have rows in a journal, sorted."""
    return sorted(read_journal(folder, columns=["judge"]).table["judge"].unique().cast(pl.String))


def write_calls(folder: Path, out: Path, *, pairs: pl.Series | None = None) -> int:
    """Write `calls.parquet` from the journal, whole or not at all, and return its rows.

    One judge is held in memory at a time. With `pairs`, digests of sixteen bytes, only calls of
    those pairs are written: not those of rows that have left the input or were edited.
    """
    temporary = unfinished(out)
    # Replies are for their owner alone.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    rows = 0
    try:
        with os.fdopen(handle, "wb") as file:
            with pq.ParquetWriter(file, CALLS_SCHEMA, compression="zstd") as writer:
                for judge in judges_of(folder):
                    rows += _write_judge(folder, judge, pairs, writer)
            file.flush()
            os.fsync(file.fileno())
        crash_point("calls:before_rename")
        temporary.replace(out)
    except BaseException:
        temporary.unlink()
        raise
    sync_folder(out.parent)
    return rows


def _write_judge(
    folder: Path, judge: str, pairs: pl.Series | None, writer: pq.ParquetWriter
) -> int:
    calls = first_wins(read_journal(folder, judge=judge).table)[0].drop("fingerprint")
    if pairs is not None:
        calls = calls.join(pairs.to_frame("pair"), on="pair", how="semi")
    # Sort places, not rows, and gather a slice at a time: no second copy of the table is made.
    places = calls.select(pl.arg_sort_by(_SORTED_BY, maintain_order=True)).to_series()
    for start in range(0, calls.height, _SLICE_ROWS):
        part = calls.select(CALL_COLUMNS)[places[start : start + _SLICE_ROWS]]
        words = part.cast({pl.Categorical: pl.String, pl.Enum: pl.String})
        writer.write_table(words.to_arrow().cast(CALLS_SCHEMA))
    return calls.height
