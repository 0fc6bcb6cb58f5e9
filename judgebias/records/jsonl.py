"""Records from JSON Lines, every fault with its line.

Polars would read these files faster, but it cannot say which line is at fault, reads `007` by
guessing a type, keeps one of two equal keys silently and turns a lone surrogate into NUL.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeAlias

import polars as pl
from jiter import LosslessFloat, from_json

from judgebias.errors import InputError
from judgebias.records.columns import (
    QUESTION,
    REQUIRED,
    SHARES,
    WHOLE,
    WORDS,
    Chunk,
    Source,
    question_digests,
    schema,
)
from judgebias.records.sources import open_plain

_LINES: Final = 50_000
_BOM: Final = b"\xef\xbb\xbf"

Value: TypeAlias = object
_Line: TypeAlias = tuple[int, bytes]
_Object: TypeAlias = dict[str, Value]


def read_jsonl(source: Source) -> Iterator[Chunk]:
    """Read a file of one JSON object per line; blank lines are skipped."""
    try:
        with open_plain(source.path) as handle:
            start = 1
            while lines := list(islice(handle, _LINES)):
                if start == 1:
                    lines[0] = lines[0].removeprefix(_BOM)
                numbered = [line for line in enumerate(lines, start) if not line[1].isspace()]
                start += len(lines)
                if numbered:
                    yield _chunk(source, numbered)
    except (EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise InputError(
            f"{source.path}: the compressed file is damaged or cut off ({fault})",
            expected="a whole .gz file",
            do="copy the file again",
        ) from fault


def _chunk(source: Source, lines: list[_Line]) -> Chunk:
    records = _parse(source, lines)
    numbers = [number for number, _ in lines]
    present = set[str]().union(*records)
    _check_required(source, records, numbers)
    types = schema(source)
    columns = {
        name: _column(source, name, dtype, records, numbers)
        if name in present
        else pl.Series(name, [None] * len(records), dtype=dtype)
        for name, dtype in types.items()
    }
    if QUESTION in present:
        columns[QUESTION] = question_digests(columns[QUESTION])
    columns["row"] = pl.Series("row", numbers, dtype=pl.Int64)
    frame = pl.DataFrame(columns).with_columns(file=pl.lit(source.number, dtype=pl.Int32))
    return Chunk(frame=frame, unused=frozenset(present - types.keys()))


def _parse(source: Source, lines: list[_Line]) -> list[_Object]:
    records: list[_Object] = []
    for number, line in lines:
        try:
            record = from_json(
                line, allow_inf_nan=False, catch_duplicate_keys=True, float_mode="lossless-float"
            )
        except ValueError as fault:
            source.refuse(
                number,
                f"not a JSON object ({fault})",
                expected="one whole JSON object on each line",
                do="mend the line or leave it out",
            )
        if not isinstance(record, dict):
            source.refuse(
                number,
                f"{_shown(record)} is not a JSON object",
                expected="one JSON object on each line",
            )
        records.append(record)
    return records


def _check_required(source: Source, records: list[_Object], numbers: list[int]) -> None:
    for name in REQUIRED:
        for number, record in zip(numbers, records, strict=True):
            if name not in record:
                source.refuse(
                    number,
                    f'the record has no "{name}", only {", ".join(record) or "nothing"}',
                    expected=f"verdict records with {', '.join(REQUIRED)}",
                    do="name only files of verdict records",
                )


def _column(
    source: Source, name: str, dtype: pl.DataType, records: list[_Object], numbers: list[int]
) -> pl.Series:
    values = [record.get(name) for record in records]
    if dtype == pl.String:
        try:
            return pl.Series(name, values, dtype=dtype, strict=True)
        except TypeError:
            # Some value is not a string: go through them one by one, to mend it or to name it.
            pass
    read = _reader(source, name)
    cells = [_cell(source, name, value, read, n) for value, n in zip(values, numbers, strict=True)]
    return pl.Series(name, cells, dtype=dtype, strict=True)


_Read: TypeAlias = Callable[[Value], str | int | float | None]


def _cell(
    source: Source, name: str, value: Value, read: tuple[_Read, str], row: int
) -> str | int | float | None:
    if value is None:
        return None
    function, expected = read
    result = function(value)
    if result is None:
        source.refuse(row, f"{name} is {_shown(value)}", expected=expected)
    return result


def _reader(source: Source, name: str) -> tuple[_Read, str]:
    if name in source.ids:
        return _identifier, "a string or a number"
    if name in WHOLE:
        return _whole, f"a whole number from {WHOLE[name]}"
    if name in SHARES:
        return _share, "a number from 0 to 1"
    words = WORDS.get(name)
    return _string, f"{', '.join(words)} or null" if words else "a string"


def _identifier(value: Value) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return str(value) if isinstance(value, LosslessFloat) else None


def _whole(value: Value) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31:
        return value
    return None


def _share(value: Value) -> float | None:
    if isinstance(value, LosslessFloat):
        return float(value)
    # A larger whole number is no share, and may be too large for a float.
    return float(value) if type(value) is int and value in (0, 1) else None


def _string(value: Value) -> str | None:
    return value if isinstance(value, str) else None


def _shown(value: Value) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
