"""A block: a stretch of one input file that a worker can find and read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import polars as pl

Format = Literal["parquet", "jsonl", "csv"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One input file as it was found."""

    file: str
    format: Format
    gzip: bool
    """Told by the first bytes, not by the name."""
    size: int
    mtime_ns: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Consecutive rows of one file: small enough to send anywhere, enough to read them again."""

    number: int
    """Its place in the survey's list of blocks."""
    source: Source
    first_row: int
    """Rows of the file before this block."""
    n_rows: int
    offset: int = 0
    """First byte, after decompression (text formats)."""
    length: int = 0
    header: tuple[str, ...] = ()
    """The column names of a CSV file."""
    skip: tuple[int, ...] = ()
    """Rows of the block (from 0) that are not judged: rejects, repeats, blank lines."""
    group: int | None = None
    """Parquet: the row group it begins in, which can only be read from its start."""

    @property
    def n_pairs(self) -> int:
        """Pairs that `read_block` gives back."""
        return self.n_rows - len(self.skip)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """Why a row cannot be judged."""

    field: str | None
    """Our name of the column; None where the whole row is at fault."""
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reject:
    """A row that was left out."""

    file: str
    row: int
    """From 1: the line of a JSONL file, the record after the header of a CSV file."""
    pair_id: str | None
    field: str | None
    reason: str


Faults = dict[int, Fault | None]
"""Rows (from 0) that are not pairs; None for a blank line, which is no row at all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Rows read together, in our columns; a faulty row is a row of nulls."""

    frame: pl.DataFrame
    first_row: int
    faults: Faults
    starts: list[int]
    """First byte of each row and of the one after the last; empty for Parquet."""
    header: tuple[str, ...] = ()
    group: int | None = None
    """The row group of a Parquet file that it begins in."""
