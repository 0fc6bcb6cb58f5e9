"""Reading a block again, in a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import BinaryIO

from judgebias.calls import Pair
from judgebias.errors import InputError
from judgebias.pairs.block import Block
from judgebias.pairs.columns import Columns, fill_labels, to_pairs
from judgebias.pairs.csv import read_columns as read_csv
from judgebias.pairs.jsonl import read_columns as read_jsonl
from judgebias.pairs.parquet import Rows
from judgebias.pairs.reopen import OpenReaders
from judgebias.pairs.source import check_unchanged, open_plain, reading
from judgebias.pairs.spec import PairsSpec

# Only what cannot be reopened cheaply at any place is kept: gzip streams and Parquet files.
_STREAMS: OpenReaders[BinaryIO] = OpenReaders()
_PARQUET: OpenReaders[Rows] = OpenReaders()


def read_block(block: Block, spec: PairsSpec) -> list[Pair]:
    """Read the accepted pairs of a block, in input order.

    Blocks of one compressed or Parquet file are best read in their order (see `reopen`).

    Raises
    ------
    InputError
        The file was changed after the survey, or can no longer be read.
    """
    check_unchanged(block.source)
    if not block.n_pairs:
        return []
    if block.source.format == "parquet":
        pairs = to_pairs(_read_parquet(block, spec))
    else:
        pairs = to_pairs(_read_text(block, spec))
    if len(pairs) != block.n_pairs:
        raise InputError(
            f"{block.source.file}: block {block.number} has {len(pairs)} pairs, not {block.n_pairs}"
        )
    return pairs


def close_readers() -> None:
    """Close the files that wait in this process for another block."""
    _STREAMS.close()
    _PARQUET.close()


def _read_text(block: Block, spec: PairsSpec) -> Columns:
    read_columns = read_csv if block.source.format == "csv" else read_jsonl
    with reading(block.source.file), ExitStack() as closing:
        kept = _STREAMS.take(block.source, block.offset) if block.source.gzip else None
        stream = kept or open_plain(block.source)
        closing.callback(stream.close)
        stream.seek(block.offset)
        columns = read_columns(stream, block, spec)
        if block.source.gzip:
            closing.pop_all()
            _STREAMS.give(block.source, stream.tell(), stream)
        return columns


def _read_parquet(block: Block, spec: PairsSpec) -> Mapping[str, Sequence[object]]:
    key = (block.source, tuple(sorted(spec.names.items())))
    with _PARQUET.reading, ExitStack() as closing:
        rows = _PARQUET.take(key, block.first_row) or Rows(block.source, spec)
        closing.callback(rows.close)
        frame = rows.take(block.first_row, block.n_rows)
        closing.pop_all()
        _PARQUET.give(key, rows.position, rows)
    if block.skip:
        skip = set(block.skip)
        frame = frame[[place for place in range(frame.height) if place not in skip]]
    return fill_labels(frame).to_dict(as_series=False)
