"""Records from CSV and Parquet, brought to the common form without guessing a type."""

from __future__ import annotations

from typing import Final

import polars as pl
from polars import selectors as cs

from judgebias.errors import InputError
from judgebias.records.columns import (
    QUESTION,
    REQUIRED,
    SHARES,
    WHOLE,
    Chunk,
    Source,
    question_digests,
    schema,
)
from judgebias.records.sources import open_plain

_UNREADABLE: Final = (pl.exceptions.PolarsError, EOFError, OSError, UnicodeDecodeError)


def read_csv(source: Source) -> Chunk:
    """Read a CSV file with a header, every field as text; an empty field is null."""
    try:
        with open_plain(source.path) as handle:
            frame = pl.read_csv(handle.read(), infer_schema=False)
    except pl.exceptions.NoDataError:
        frame = pl.DataFrame(schema=dict.fromkeys(REQUIRED, pl.String))
    except _UNREADABLE as fault:
        raise _unreadable(source, "CSV", fault) from fault
    return _chunk(source, frame)


def read_parquet(source: Source) -> Chunk:
    """Read a Parquet file; whole numbers are taken as ids, fractions are not."""
    try:
        with open_plain(source.path) as handle:
            frame = pl.read_parquet(handle)
    except _UNREADABLE as fault:
        raise _unreadable(source, "Parquet", fault) from fault
    for name in set(source.ids) & set(frame.columns):
        if frame.schema[name].is_float():
            raise InputError(
                f"{source.path}: the column {name} holds {frame.schema[name]} values",
                expected="text or whole numbers, since 7 and 7.0 would be two names",
                do=f"write {name} as text",
            )
    words = cs.categorical() | cs.enum()
    return _chunk(source, frame.with_columns(words.cast(pl.String)))


def _unreadable(source: Source, kind: str, fault: BaseException) -> InputError:
    first_line = (str(fault).splitlines() or [type(fault).__name__])[0]
    return InputError(
        f"{source.path}: cannot be read as {kind} ({first_line})",
        expected=f"a whole {kind} file in UTF-8",
        do="mend the file or leave it out",
    )


def _chunk(source: Source, frame: pl.DataFrame) -> Chunk:
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise InputError(
            f"{source.path}: no column {', '.join(missing)}, only {', '.join(frame.columns)}",
            expected=f"verdict records with {', '.join(REQUIRED)}",
            do="name only files of verdict records",
        )
    numbered = frame.with_row_index("row", offset=1)
    types = schema(source)
    columns = [
        _cast(source, numbered, name, dtype)
        if name in frame.columns
        else pl.Series(name, [None] * frame.height, dtype=dtype)
        for name, dtype in types.items()
    ]
    common = pl.DataFrame(columns).with_columns(
        row=numbered["row"].cast(pl.Int64), file=pl.lit(source.number, dtype=pl.Int32)
    )
    if QUESTION in frame.columns:
        common = common.with_columns(question_digests(common[QUESTION]))
    unused = frozenset(frame.columns) - types.keys()
    return Chunk(frame=common, unused=frozenset(unused))


def _cast(source: Source, frame: pl.DataFrame, name: str, dtype: pl.DataType) -> pl.Series:
    column = frame[name]
    if column.dtype.is_nested() or column.dtype == pl.Binary or column.dtype == pl.Boolean:
        source.refuse(1, f"{name} is of type {column.dtype}", expected=_expected(name))
    if column.dtype == dtype:
        return column
    cast = column.cast(dtype, strict=False)
    # A fraction would be cut to a whole number without a word.
    lost = cast.is_null() & column.is_not_null()
    if name in WHOLE and column.dtype.is_float():
        lost = lost | (column.is_not_null() & (column != column.floor()))
    if lost.any():
        row = int(frame["row"].filter(lost)[0])
        source.refuse(row, f'{name} is "{column.filter(lost)[0]}"', expected=_expected(name))
    return cast


def _expected(name: str) -> str:
    if name in WHOLE:
        return f"a whole number from {WHOLE[name]}"
    return "a number from 0 to 1" if name in SHARES else "text"
