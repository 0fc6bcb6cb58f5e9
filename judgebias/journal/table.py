"""The journal as a table: one row per call, the first verdict wins, the rest is extra spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from judgebias.journal.read import JournalReader, JournalReport
from judgebias.journal.rows import SCHEMA
from judgebias.verdicts import Order, Slot

CALL_KEY = ("judge", "fingerprint", "task", "pair_id", "repeat", "order", "pair")
"""The columns that name a call."""

_HASHED = ("pair", "order", "repeat", "judge")
_POSITION = "_position"
TRY = ("time", "worker", "request_id", "slot", "failure", "attempts")
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
    parts = [categories(pl.DataFrame(SCHEMA.empty_table().select(names)))]
    with JournalReader(folder, since_epoch=since_epoch) as journal:
        frames = journal.frames(names)
        if judge is not None:
            frames = (frame.filter(pl.col("judge") == judge) for frame in frames)
        parts.extend(categories(frame) for frame in frames)
    return JournalContents(table=pl.concat(parts), report=journal.report)


def categories(frame: pl.DataFrame) -> pl.DataFrame:
    """Make categories of the names that repeat."""
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
    tries = placed.filter(repeated).unique([*CALL_KEY, *TRY], keep="first", maintain_order=True)
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
