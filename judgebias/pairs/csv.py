"""Pairs from CSV (RFC 4180 with a header); line ends inside quotes stay as they are."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from judgebias.errors import InputError
from judgebias.pairs.block import Block, Chunk, Fault, Faults, Source
from judgebias.pairs.columns import Columns, to_frame
from judgebias.pairs.header import Header
from judgebias.pairs.lines import skip_bom
from judgebias.pairs.source import not_text, open_plain, reading
from judgebias.pairs.spec import CHUNK_BYTES, COLUMNS, NUMBERS, ROW_BYTES, PairsSpec

_EMPTY_IS_TEXT = ("pair_id", "question", "answer_a", "answer_b")
_TOO_LONG = Fault(field=None, reason=f"row is longer than {ROW_BYTES} bytes")
_PIECE = 1 << 20


class _RowTooLongError(Exception):
    pass


class _Lines:
    """Feeds the csv reader and knows at which byte it stands."""

    def __init__(self, stream: BinaryIO, file: str, offset: int) -> None:
        self.offset = offset
        self._stream = stream
        self._file = file
        self.has_end = True
        self._left = ROW_BYTES
        self._quotes = 0

    def begin_record(self) -> None:
        self._left = ROW_BYTES
        self._quotes = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        start = self.offset
        line = self._take(self._left + 1)
        if not line:
            raise StopIteration
        self.has_end = line.endswith(b"\n")
        self._left -= len(line)
        if self._left < 0:
            self._drop_record(line)
            raise _RowTooLongError
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise not_text(self._file, start + error.start, line) from error

    def _take(self, limit: int) -> bytes:
        line = self._stream.readline(limit)
        self.offset += len(line)
        self._quotes += line.count(b'"')
        return line

    def _drop_record(self, line: bytes) -> None:
        """Read on to the end of the record: a line end after an even number of quotes."""
        while line and not (line.endswith(b"\n") and self._quotes % 2 == 0):
            line = self._take(_PIECE)


class _Records:
    """The records of a CSV stream, with the faulty ones marked and blank lines passed over."""

    def __init__(self, stream: BinaryIO, file: str, offset: int) -> None:
        # The csv module's own bound is one for the whole process; ours is on the row.
        csv.field_size_limit(max(csv.field_size_limit(), ROW_BYTES))
        self._lines = _Lines(stream, file, offset)
        self._reader = csv.reader(self._lines, strict=True)

    @property
    def offset(self) -> int:
        return self._lines.offset

    @property
    def is_cut(self) -> bool:
        """Whether the last record ended with the file and not with its line."""
        return not self._lines.has_end

    def take(self) -> list[str] | Fault | None:
        """Give the next record (empty for a blank line), its fault, or None at the end."""
        self._lines.begin_record()
        try:
            return next(self._reader, None)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                return Fault(field=None, reason="cut off: a quoted field has no end")
            return Fault(field=None, reason=f"not valid CSV: {error}")
        except _RowTooLongError:
            return _TOO_LONG


def read_chunks(source: Source, spec: PairsSpec, header: Header) -> Iterator[Chunk]:
    """Read a whole file chunk by chunk."""
    with reading(source.file), open_plain(source) as stream:
        records = _Records(stream, source.file, skip_bom(stream))
        names = _read_names(records, source.file)
        if names is None:
            return
        header.require(names, source.file)
        header.note(names)
        _refuse_twins(names, spec, source.file)
        first_row = 0
        while True:
            rows, faults, starts = _read_rows(records, len(names), spec.chunk_rows)
            if not rows:
                return
            frame = to_frame(_to_columns(rows, faults, names, spec))
            yield Chunk(
                frame=frame, first_row=first_row, faults=faults, starts=starts, header=names
            )
            first_row += len(rows)


def read_columns(stream: BinaryIO, block: Block, spec: PairsSpec) -> Columns:
    """Read the accepted rows of a block from a stream that stands at its first byte."""
    records = _Records(stream, block.source.file, block.offset)
    rows, _, starts = _read_rows(records, len(block.header), block.n_rows)
    if starts[-1] != block.offset + block.length:
        raise InputError(f"{block.source.file}: block {block.number} does not end where it did")
    skip = set(block.skip)
    kept = [row for place, row in enumerate(rows) if place not in skip]
    faults: Faults = {}
    columns = _to_columns(kept, faults, block.header, spec)
    if faults:
        raise InputError(f"{block.source.file}: block {block.number} no longer reads as it did")
    return columns


def _read_names(records: _Records, file: str) -> tuple[str, ...] | None:
    names = records.take()
    while names == []:
        names = records.take()
    if isinstance(names, Fault):
        raise InputError(
            f"{file}: the header cannot be read: {names.reason}",
            expected="a first line of column names, separated by commas",
            do="write the file again as UTF-8 CSV",
        )
    return None if names is None else tuple(names)


def _refuse_twins(names: Sequence[str], spec: PairsSpec, file: str) -> None:
    twins = sorted(name for name in set(spec.names.values()) if names.count(name) > 1)
    if twins:
        raise InputError(
            f"{file} has the column {', '.join(twins)} more than once",
            expected="each column once",
            do="rename one of them",
        )


def _read_rows(
    records: _Records, width: int, n_rows: int
) -> tuple[list[list[str]], Faults, list[int]]:
    rows: list[list[str]] = []
    faults: Faults = {}
    starts = [records.offset]
    end = records.offset + CHUNK_BYTES
    while len(rows) < n_rows and records.offset < end:
        record = records.take()
        if record is None:
            break
        if not isinstance(record, Fault) and len(record) == width:
            rows.append(record)
        else:
            faults[len(rows)] = _fault_of(record, width, is_cut=records.is_cut)
            rows.append([])
        starts.append(records.offset)
    return rows, faults, starts


def _fault_of(record: list[str] | Fault, width: int, *, is_cut: bool) -> Fault | None:
    if isinstance(record, Fault):
        return record
    if not record:
        return None
    cut = "cut off: the last line has no line end and " if is_cut and len(record) < width else ""
    reason = f"{cut}{len(record)} fields where the header has {width}"
    return Fault(field=None, reason=reason)


def _to_columns(
    rows: list[list[str]], faults: Faults, names: Sequence[str], spec: PairsSpec
) -> Columns:
    columns: Columns = {}
    for ours, theirs in spec.names.items():
        if theirs not in names:
            columns[ours] = [None] * len(rows)
            continue
        at = names.index(theirs)
        values = [row[at] if row else None for row in rows]
        if ours in NUMBERS:
            columns[ours] = _numbers(ours, values, faults)
        elif ours in _EMPTY_IS_TEXT:
            columns[ours] = values
        else:
            columns[ours] = [value or None for value in values]
    return {ours: columns[ours] for ours in COLUMNS}


def _numbers(ours: str, values: list[str | None], faults: Faults) -> list[float | None]:
    numbers: list[float | None] = []
    for place, value in enumerate(values):
        try:
            numbers.append(float(value) if value else None)
        except ValueError:
            numbers.append(None)
            reason = f"expected a number, found {(value or '')[:40]!r}"
            faults.setdefault(place, Fault(field=ours, reason=reason))
    return numbers
