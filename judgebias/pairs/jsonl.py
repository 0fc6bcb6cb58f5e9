"""Pairs from JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, cast

import jiter

from judgebias.errors import InputError
from judgebias.pairs.block import Block, Chunk, Fault, Faults, Source
from judgebias.pairs.columns import Columns, to_frame
from judgebias.pairs.header import Header
from judgebias.pairs.lines import read_lines, skip_bom
from judgebias.pairs.source import not_text, open_plain, reading
from judgebias.pairs.spec import COLUMNS, LABELS, NUMBERS, ROW_BYTES, PairsSpec

_Row = dict[str, object]
_FIRST_ROWS = 1000
"""A required key that is in none of these is a missing column."""
_TOO_LONG = Fault(field=None, reason=f"row is longer than {ROW_BYTES} bytes")
_CUT = Fault(field=None, reason="cut off: the last line has no line end and is not whole JSON")
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})
_LONGEST_ID_BITS = 12_000
"""Python refuses to write out integers of many more digits than these bits give."""
_TEXT_TYPES = {str, type(None)}
_KINDS: dict[type, str] = {bool: "true or false", dict: "an object", list: "a list"}


def read_chunks(source: Source, spec: PairsSpec, header: Header) -> Iterator[Chunk]:
    """Read a whole file chunk by chunk."""
    with reading(source.file), open_plain(source) as stream:
        offset, first_row = skip_bom(stream), 0
        checked = False
        while True:
            lines, starts = read_lines(stream, offset, spec.chunk_rows)
            if not lines:
                return
            rows, faults = _parse(lines, starts, source.file, spec)
            checked = _watch(rows, faults, header, source.file, checked=checked)
            columns = _to_columns(rows, faults, spec)
            yield Chunk(frame=to_frame(columns), first_row=first_row, faults=faults, starts=starts)
            offset, first_row = starts[-1], first_row + len(lines)


def read_columns(stream: BinaryIO, block: Block, spec: PairsSpec) -> Columns:
    """Read the accepted rows of a block from a stream that stands at its first byte."""
    lines, starts = read_lines(stream, block.offset, block.n_rows)
    if starts[-1] != block.offset + block.length:
        raise InputError(f"{block.source.file}: block {block.number} does not end where it did")
    skip = set(block.skip)
    kept = [line for place, line in enumerate(lines) if place not in skip]
    rows, faults = _parse(kept, starts, block.source.file, spec)
    columns = _to_columns(rows, faults, spec)
    if faults:
        raise InputError(f"{block.source.file}: block {block.number} no longer reads as it did")
    return columns


def _parse(
    lines: list[bytes | None], starts: list[int], file: str, spec: PairsSpec
) -> tuple[list[_Row], Faults]:
    rows: list[_Row] = []
    faults: Faults = {}
    empty: _Row = {}
    parse = jiter.from_json
    for place, line in enumerate(lines):
        row = empty
        try:
            if line is None:
                faults[place] = _TOO_LONG
            else:
                row = parse(
                    line,
                    allow_inf_nan=False,
                    catch_duplicate_keys=True,
                    float_mode="lossless-float",
                )
                if type(row) is not dict:
                    faults[place] = Fault(field=None, reason="not a JSON object")
                    row = empty
        except ValueError as error:
            faults[place] = _explain(line or b"", starts[place], file, str(error), spec)
        rows.append(row)
    return rows, faults


def _explain(line: bytes, offset: int, file: str, message: str, spec: PairsSpec) -> Fault | None:
    """Say what is wrong with a line: bytes that are no text are the file's fault, not the row's."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise not_text(file, offset + error.start, line) from error
    if not line.strip():
        return None
    message = re.sub(r"line 1 column", "column", message)
    if twice := re.match(r'Detected duplicate key "(.*)" at column', message):
        ours = next((ours for ours, theirs in spec.names.items() if theirs == twice[1]), None)
        return Fault(field=ours, reason=f"the key {twice[1]!r} is there twice")
    if "hex escape" in message:
        return Fault(field=None, reason=f"a lone surrogate or a broken \\u escape: {message}")
    if fault := _no_json_number(line, spec):
        return fault
    if not line.endswith(b"\n"):
        return _CUT
    return Fault(field=None, reason=f"not valid JSON: {message}")


def _no_json_number(line: bytes, spec: PairsSpec) -> Fault | None:
    """Name the NaN or Infinity that alone keeps a line from being JSON; Python writes them."""
    try:
        row = jiter.from_json(line, catch_duplicate_keys=True, float_mode="lossless-float")
    except ValueError:
        return None
    items = row.items() if type(row) is dict else ()
    words = {key: word for key, value in items if (word := _word_of(value))}
    field = next((ours for ours, theirs in spec.names.items() if theirs in words), None)
    key = next(iter(words), "") if field is None else spec.names[field]
    where = f" in {key!r}" if key and field is None else ""
    word = words.get(key, "NaN or Infinity")
    return Fault(
        field=field, reason=f"not valid JSON: {word} is not a finite number{where}; use null"
    )


def _word_of(value: object) -> str:
    text = bytes(value).decode() if isinstance(value, jiter.LosslessFloat) else ""
    return text if text in _NO_NUMBERS else ""


def _watch(rows: list[_Row], faults: Faults, header: Header, file: str, *, checked: bool) -> bool:
    """Note every key; refuse a file whose first rows all lack a required one."""
    if not checked and len(rows) > len(faults):
        header.require({key for row in rows[:_FIRST_ROWS] for key in row}, file)
        checked = True
    for shape in {tuple(row) for row in rows}:
        header.note(shape)
    return checked


def _to_columns(rows: list[_Row], faults: Faults, spec: PairsSpec) -> Columns:
    columns: Columns = {}
    names = spec.names
    present = {key for shape in {tuple(row) for row in rows} for key in shape}
    for ours in COLUMNS:
        theirs = names[ours]
        if theirs not in present:
            columns[ours] = [None] * len(rows)
            continue
        values = [row.get(theirs) for row in rows]
        if ours in NUMBERS:
            columns[ours] = _numbers(ours, values, faults)
        elif set(map(type, values)) <= _TEXT_TYPES:
            columns[ours] = cast("list[str | None]", values)
        else:
            columns[ours] = _texts(ours, values, faults)
    return columns


def _texts(ours: str, values: list[object], faults: Faults) -> list[str | None]:
    texts: list[str | None] = []
    for place, value in enumerate(values):
        text = _text(value) if ours in LABELS or value is None or isinstance(value, str) else ""
        if text == "" and value != "":
            huge = ours in LABELS and type(value) is int
            number = "a number of thousands of digits" if huge else "a number"
            reason = f"expected a text, found {_KINDS.get(type(value), number)}"
            faults.setdefault(place, Fault(field=ours, reason=reason))
            text = None
        texts.append(text)
    return texts


def _text(value: object) -> str | None:
    """Keep an id in the form it has in the source; "" for what is no id."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if value.bit_length() < _LONGEST_ID_BITS else ""
        case jiter.LosslessFloat():
            return bytes(value).decode()
        case _:
            return ""


def _numbers(ours: str, values: list[object], faults: Faults) -> list[float | None]:
    numbers: list[float | None] = []
    for place, value in enumerate(values):
        number = None
        if isinstance(value, int | float | jiter.LosslessFloat) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = float("inf")
        elif value is not None:
            kind = "a text" if isinstance(value, str) else _KINDS.get(type(value), "something else")
            reason = f"expected a number, found {kind}"
            faults.setdefault(place, Fault(field=ours, reason=reason))
        numbers.append(number)
    return numbers
