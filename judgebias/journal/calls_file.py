"""`calls.parquet`: one row per call, sorted, written from a journal of any size.

A first pass over the journal names the rows that count and their places in the file, by keys alone;
a second one takes those rows to the part of the file that they belong to. So texts of replies are
only ever in memory for one part.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its batches are unknown to the checker wherever they are passed on.

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from judgebias.divided import write_divided
from judgebias.journal.read import JournalReader
from judgebias.journal.rows import SCHEMA
from judgebias.journal.table import CALL_KEY, TRY, categories, first_wins
from judgebias.publish import publish, unfinished
from judgebias.verdicts import Order

CALL_COLUMNS: Final = (
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

PART_ROWS = 131_072
"""Rows that are in memory at once, and a row group of the file."""

Choice: TypeAlias = Callable[[str, pl.DataFrame], pl.DataFrame]
"""Of a judge, by name, and its rows: those to take."""

_AT = "_at"
"""The row's place in the journal."""
_RANK = "_rank"
"""The row's place in the file, among its judge's."""
_HASHED: Final = ("pair", "order", "repeat")
_NUMBER: Final = "number"
_NAMES: Final = ["task", "pair_id"]


def write_calls(
    folder: Path,
    out: Path,
    *,
    judges: Sequence[str] | None = None,
    choose: Choice = lambda _, rows: rows,
    divided: bool = False,
) -> int:
    """Write `calls.parquet` from the journal, whole or not at all, and return its rows.

    Parameters
    ----------
    folder, out
        The journal, and where the table is to appear.
    judges
        Whose calls, sorted; None: of all judges in the journal.
    choose
        Leaves out what the journal keeps and the tables do not count, as rows that have left the
        input. It is given the columns of `CALL_KEY` and `TRY`, and may add the pair's `number`
        among the pairs sorted by task and id: names then need not be held and sorted.
    divided
        Whether it is a folder with a file per judge and task, in the place of one file.

    Raises
    ------
    UsageError
        The folder cannot be written.
    """
    rows = 0

    def parts(journal: JournalReader) -> Iterator[pa.Table]:
        nonlocal rows
        for judge in _judges(journal) if judges is None else judges:
            for part in _parts_of(journal, judge, choose, unfinished(out)):
                rows += part.num_rows
                yield part

    def write(beside: Path) -> None:
        with JournalReader(folder) as journal:
            if divided:
                write_divided(beside, CALLS_SCHEMA, parts(journal))
            else:
                _write_file(beside, parts(journal))

    publish(out, write)
    return rows


def _write_file(path: Path, parts: Iterable[pa.Table]) -> None:
    # Replies are for their owner alone.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with (
        os.fdopen(handle, "wb") as file,
        pq.ParquetWriter(file, CALLS_SCHEMA, compression="zstd") as writer,
    ):
        for part in parts:
            writer.write_table(part)


def _judges(journal: JournalReader) -> list[str]:
    names = (frame["judge"].unique() for frame in journal.frames(["judge"]))
    return sorted({str(name) for unique in names for name in unique})


def _parts_of(journal: JournalReader, judge: str, choose: Choice, room: Path) -> Iterator[pa.Table]:
    """Give the rows of a judge that count, sorted, part by part."""
    counted = _counted(journal, judge, choose)
    room.mkdir(mode=0o700)
    try:
        parts = _Parts(room, counted.height)
        for rows in _taken(journal, counted):
            parts.add(rows)
        for part in parts.read():
            yield part.sort(_RANK).select(CALL_COLUMNS).to_arrow().cast(CALLS_SCHEMA)
    finally:
        shutil.rmtree(room)


def _counted(journal: JournalReader, judge: str, choose: Choice) -> pl.DataFrame:
    """Name the rows that count, in the journal's order, with their places in the file.

    `attempts` is that of the call; null where it is the row's own.
    """
    frames = [_keys_of(rows) for rows in _chosen(journal, judge, choose)]
    keys = _with_sort_key(pl.concat(frames)) if frames else pl.DataFrame()
    if keys.is_empty():
        return pl.DataFrame(schema={_AT: pl.Int64, _RANK: pl.Int64, "attempts": pl.Int64})
    # Nearly every call has one row. Equal hashes only pick the candidates, so none is missed and
    # the exact work is done on few rows.
    again = keys["hash"].is_duplicated()
    keys = keys.drop("hash").with_columns(attempts=pl.lit(None, pl.Int64))
    if again.any():
        candidates = keys.filter(again)[_AT]
        tries = [
            rows.filter(pl.col(_AT).is_in(candidates.implode()))
            for rows in _chosen(journal, judge, choose)
        ]
        winners = first_wins(pl.concat(tries))[0].select(_AT, "attempts")
        kept = keys.filter(again).drop("attempts").join(winners, on=_AT, how="inner")
        keys = pl.concat([keys.filter(~again), kept.select(keys.columns)])
    keys = keys.sort("key", _AT)
    return keys.select(_AT, pl.int_range(pl.len()).alias(_RANK), "attempts").sort(_AT)


def _keys_of(rows: pl.DataFrame) -> pl.DataFrame:
    names = [_NUMBER] if _NUMBER in rows.columns else _NAMES
    order = pl.col("order").cast(pl.Enum(Order)).to_physical()
    kept = rows.select(_AT, *names, "repeat", order)
    return kept.with_columns(hash=rows.select(_HASHED).hash_rows())


def _with_sort_key(keys: pl.DataFrame) -> pl.DataFrame:
    """Put one number in the place of what rows are sorted by: pair, repeat and order."""
    if _NUMBER not in keys.columns:
        names = keys.select(_NAMES).unique().sort(_NAMES).with_row_index(_NUMBER)
        keys = keys.join(names, on=_NAMES, how="left", maintain_order="left")
    number, repeat = (pl.col(name).cast(pl.UInt64) for name in (_NUMBER, "repeat"))
    key = number * 2**32 + repeat * 2 + pl.col("order")
    return keys.select(_AT, "hash", key=key)


def _chosen(journal: JournalReader, judge: str, choose: Choice) -> Iterator[pl.DataFrame]:
    """Give a judge's rows that are taken, by their keys, with their places in the journal."""
    before = 0
    for frame in journal.frames([*CALL_KEY, *TRY]):
        placed = frame.with_columns(pl.int_range(before, before + frame.height).alias(_AT))
        before += frame.height
        mine = placed.filter(pl.col("judge") == judge)
        if mine.height:
            yield choose(judge, categories(mine))


def _taken(journal: JournalReader, counted: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Give the rows that count with all columns, a batch of the journal at a time."""
    places, before = counted[_AT].to_numpy(), 0
    for frame in journal.frames(CALL_COLUMNS):
        first, end = np.searchsorted(places, [before, before + frame.height])
        if end > first:
            part = counted[int(first) : int(end)]
            rows = frame[(part[_AT] - before).to_numpy()].with_columns(part[_RANK])
            tries = pl.coalesce(part["attempts"], rows["attempts"].cast(pl.Int64))
            yield rows.with_columns(tries.alias("attempts").cast(pl.Int32))
        before += frame.height


class _Parts:
    """Rows on their way to the part of the file that they belong to; a small file has one part."""

    def __init__(self, room: Path, rows: int) -> None:
        self._room = room
        self._number = -(-rows // PART_ROWS)
        self._held: list[pl.DataFrame] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Keep rows, on disk where there are several parts."""
        self._held.append(rows)
        if self._number > 1 and sum(part.height for part in self._held) >= PART_ROWS:
            self._spill()

    def _spill(self) -> None:
        rows, self._held = pl.concat(self._held), []
        parts = rows.with_columns(part=pl.col(_RANK) // PART_ROWS)
        for (number,), part in parts.partition_by("part", as_dict=True, include_key=False).items():
            folder = self._room / str(number)
            folder.mkdir(exist_ok=True)
            part.write_ipc(folder / f"{len(list(folder.iterdir()))}.arrow", compression="zstd")

    def read(self) -> Iterator[pl.DataFrame]:
        """Give each part, in the order of the file."""
        if self._number <= 1:
            yield from ([pl.concat(self._held)] if self._held else [])
            return
        if self._held:
            self._spill()
        for number in range(self._number):
            files = sorted((self._room / str(number)).iterdir())
            # One by one: a folder's name may hold what a pattern would read otherwise.
            yield pl.concat([pl.scan_ipc(file, glob=False) for file in files]).collect()
