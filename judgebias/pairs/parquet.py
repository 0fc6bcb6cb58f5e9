"""Pairs from Parquet, read forward in slices, so that a row group never lies in memory whole."""

# pyarrow ships no complete types: a schema or an array is unknown to the checker.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from judgebias.errors import InputError
from judgebias.pairs.block import Chunk, Fault, Faults, Source
from judgebias.pairs.header import Header
from judgebias.pairs.source import open_seekable, reading
from judgebias.pairs.spec import CHUNK_BYTES, LABELS, NUMBERS, SCHEMA, PairsSpec

_BATCH = 2048
"""Rows decoded together; fewer where rows are long."""
_PAGES = 1 << 20
"""Bytes of a column that are read ahead; without it a whole column chunk is."""


class Rows:
    """A Parquet file read forward from any row; going back starts over at that row's group."""

    def __init__(self, source: Source, spec: PairsSpec) -> None:
        self._source = source
        with reading(source.file):
            self._stream = open_seekable(source)
            self._file = pq.ParquetFile(self._stream, buffer_size=_PAGES, pre_buffer=False)
        schema = self._file.schema_arrow
        self.names: tuple[str, ...] = tuple(schema.names)
        self.n_rows: int = self._file.metadata.num_rows
        self._columns = _match_columns(schema, spec, source.file)
        self.float_labels: list[str] = [
            ours for ours, theirs in self._columns.items()
            if ours in LABELS and pa.types.is_floating(schema.field(theirs).type)
        ]  # fmt: skip
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._rest: pl.DataFrame | None = None
        self._batch = _batch_rows(self._file.metadata)
        self.position = -1

    def take(self, first: int, n_rows: int, n_bytes: int | None = None) -> pl.DataFrame:
        """Read rows [first, first + n) in our columns and types, or until n bytes are passed."""
        if first != self.position:
            self._move_to(first)
        parts: list[pl.DataFrame] = []
        size = 0
        while n_rows and (n_bytes is None or size < n_bytes):
            batch = self._rest if self._rest is not None else self._next()
            if batch is None:
                break
            part = batch[:n_rows]
            self._rest = batch[n_rows:] if batch.height > n_rows else None
            parts.append(part)
            n_rows -= part.height
            self.position += part.height
            size += _n_bytes(part)
        return pl.concat(parts) if parts else pl.DataFrame(schema=SCHEMA)

    def close(self) -> None:
        """Let the file go."""
        self._file.close()
        self._stream.close()

    def _move_to(self, first: int) -> None:
        """Stand at a row: read on where that is in the same row group, else open its group."""
        group, start = self.group_of(first)
        if not max(0, start) <= self.position <= first:
            self._rest = None
            self.position = start
            groups = list(range(group, self._file.metadata.num_row_groups))
            columns = sorted(set(self._columns.values()))
            self._batches = self._file.iter_batches(self._batch, row_groups=groups, columns=columns)
        while self.position < first:
            self.take(self.position, min(self._batch, first - self.position))

    def group_of(self, row: int) -> tuple[int, int]:
        """Name the row group that a row is in, and the group's first row."""
        start = 0
        for group in range(self._file.metadata.num_row_groups):
            n_rows = self._file.metadata.row_group(group).num_rows
            if row < start + n_rows:
                return group, start
            start += n_rows
        return 0, 0

    def _next(self) -> pl.DataFrame | None:
        with reading(self._source.file):
            batch = next(self._batches, None)
        if batch is None:
            return None
        place = f"{self._source.file}, near row {self.position + 1}"
        series = [
            _to_series(batch.column(self._columns[ours]), ours, place)
            if ours in self._columns
            else pl.Series(ours, [None] * batch.num_rows, dtype=dtype)
            for ours, dtype in SCHEMA.items()
        ]
        return pl.DataFrame(series)


def read_chunks(source: Source, spec: PairsSpec, header: Header) -> Iterator[Chunk]:
    """Read a whole file chunk by chunk."""
    if not source.size:
        return
    rows = Rows(source, spec)
    try:
        header.require(rows.names, source.file)
        header.note(rows.names)
        first = 0
        while first < rows.n_rows:
            group, frame = rows.group_of(first)[0], rows.take(first, spec.chunk_rows, CHUNK_BYTES)
            if frame.is_empty():
                raise InputError(f"{source.file} ends at row {first} of {rows.n_rows}")
            faults = _refuse_floats(frame, rows.float_labels)
            yield Chunk(frame=frame, first_row=first, faults=faults, starts=[], group=group)
            first += frame.height
    finally:
        rows.close()


def _batch_rows(metadata: pq.FileMetaData) -> int:
    longest = 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        longest = max(longest, group.total_byte_size // max(1, group.num_rows))
    return max(1, min(_BATCH, CHUNK_BYTES // longest))


def _n_bytes(frame: pl.DataFrame) -> int:
    sizes = frame.select(pl.col(pl.String).str.len_bytes().sum().cast(pl.Int64))
    return sum(sizes.row(0))


def _match_columns(schema: pa.Schema, spec: PairsSpec, file: str) -> dict[str, str]:
    """Find our columns in the file and refuse a type that cannot be read as ours."""
    matched: dict[str, str] = {}
    for ours, theirs in spec.names.items():
        places = schema.get_all_field_indices(theirs)
        if len(places) > 1:
            raise InputError(f"{file} has the column {theirs} {len(places)} times")
        if not places:
            continue
        type_ = schema.field(theirs).type
        if not any(fits(type_) for fits in _fitting(ours)):
            raise InputError(
                f"{file}: the column {theirs} is {type_}",
                expected="a number" if ours in NUMBERS else "text",
                do=f"write it as {'a number' if ours in NUMBERS else 'text'}, or map {ours}"
                " to another column",
            )
        matched[ours] = theirs
    return matched


def _fitting(ours: str) -> list[Callable[[pa.DataType], bool]]:
    numbers = [pa.types.is_integer, pa.types.is_floating]
    if ours in NUMBERS:
        return [*numbers, pa.types.is_decimal, pa.types.is_null]
    return [_is_text, pa.types.is_null, *(numbers if ours in LABELS else [])]


def _is_text(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    return type_ in (pa.string(), pa.large_string(), pa.string_view())


def _to_series(array: pa.Array, ours: str, place: str) -> pl.Series:
    if ours in NUMBERS:
        return pl.Series(ours, array.cast(pa.float64()))
    if not _is_text(array.type):
        return pl.Series(ours, array).cast(pl.String)
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    try:
        # Arrow does not look whether text is UTF-8; Polars does when it makes text of bytes.
        return pl.Series(ours, array.cast(pa.large_binary())).cast(pl.String)
    except pl.exceptions.ComputeError as error:
        raise InputError(
            f"{place}: {ours} holds bytes that are not UTF-8",
            expected="UTF-8 text",
            do="write the file again from clean text; nothing is replaced silently",
        ) from error


def _refuse_floats(frame: pl.DataFrame, names: list[str]) -> Faults:
    """Refuse ids that went through a floating-point column: 7 has become 7.0, and nulls NaN."""
    faults: Faults = {}
    for name in names:
        for place in frame[name].is_not_null().arg_true():
            reason = f"a floating-point number, {frame[name][place]}, where an id must be text"
            faults.setdefault(place, Fault(field=name, reason=reason))
    return faults
