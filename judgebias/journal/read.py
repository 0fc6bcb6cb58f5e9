"""Reading: every committed reply of a journal, in batches, while others may still write.

A reader takes no lock and changes nothing. It holds all segments open from the start, so a merge
that removes them meanwhile takes nothing away; what is written after the start is not seen.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its batches are unknown to the checker wherever they are passed on.

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import polars as pl
import pyarrow as pa

from judgebias.errors import JournalDamaged, UsageError
from judgebias.journal.frame import (
    Frame,
    Gap,
    SegmentInfo,
    count_rows,
    decode,
    is_changed,
    pieces,
    read_head,
)
from judgebias.journal.rows import SCHEMA
from judgebias.journal.segment import SUFFIX

CHUNK_ROWS = 65_536
"""Rows that are joined into one batch, so that small frames cost little."""

_TRIES = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalReport:
    """What a reader met."""

    segments: int = 0
    frames: int = 0
    rows: int = 0
    torn_bytes: int = 0
    """Bytes behind the last whole frame of a segment: being written, or cut by a kill."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenSegment:
    """A segment file open for reading."""

    path: Path
    file: int
    size: int
    info: SegmentInfo | None
    """None when not even the start of the file was written."""
    start: int

    @classmethod
    def open(cls, path: Path, flags: int = os.O_RDONLY) -> Self:
        """Open a segment and read its start."""
        file = os.open(path, flags | os.O_CLOEXEC)
        try:
            size = os.fstat(file).st_size
            head = read_head(file, size, str(path))
        except BaseException:
            os.close(file)
            raise
        info, start = (None, 0) if head is None else head
        return cls(path=path, file=file, size=size, info=info, start=start)

    def pieces(self) -> Iterator[Frame | Gap]:
        """The frames and the gaps between them."""
        # Without a start any frame counts: one that follows tells damage from a torn start.
        number = None if self.info is None else self.info.segment
        return pieces(self.file, self.start, self.size, number)

    def is_torn(self, gap: Gap) -> bool:
        """Whether a gap is what a cut write leaves at the end; any other is damage."""
        if gap.end < self.size or gap.end == gap.start:
            return False
        return self.info is None or not is_changed(self.file, gap, self.info.segment)

    def close(self) -> None:
        """Release the file."""
        os.close(self.file)


def segment_paths(folder: Path) -> list[Path]:
    """The segment files of a journal, in the order in which they are read."""
    if not folder.is_dir():
        raise UsageError(
            f"{folder}: no journal here",
            expected="the folder `journal` of a run directory",
            do="give a run directory, or start the run first",
        )
    # By stem: the second file of a worker comes behind its first.
    found = (path for path in folder.iterdir() if path.suffix == SUFFIX)
    return sorted(found, key=lambda path: path.stem)


class JournalReader:
    """The segments of a journal as they were when it was opened; a context manager."""

    def __init__(self, folder: Path, *, since_epoch: int = 0) -> None:
        self._stack = ExitStack()
        with ExitStack() as stack:
            opened = _open_all(folder, stack)
            self._stack = stack.pop_all()
        self.replaced = {number for segment in opened for number in _replaces(segment)}
        """The numbers of segments whose rows others hold."""
        self.segments = [
            segment
            for segment in opened
            if segment.info is None
            or (segment.info.segment not in self.replaced and segment.info.epoch >= since_epoch)
        ]
        self._frames = self._rows = self._torn = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def report(self) -> JournalReport:
        """What was met so far; complete once the batches are used up."""
        return JournalReport(
            segments=len(self.segments),
            frames=self._frames,
            rows=self._rows,
            torn_bytes=self._torn,
        )

    def count(self) -> dict[int, int]:
        """Count the committed rows of each segment, by its number.

        The headers of frames are enough for that, and of each segment's last frame the payload.
        """
        return {
            one.info.segment: count_rows(one.file, one.start, one.size)
            for one in self.segments
            if one.info is not None
        }

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Every committed row, once, in batches of about 65,000 rows.

        Raises
        ------
        JournalDamaged
            At a frame that fails its checksum and is no write that was cut.
        """
        names = list(SCHEMA.names if columns is None else columns)
        held: list[pa.RecordBatch] = []
        rows = 0
        for segment in self.segments:
            for frame in self._frames_of(segment):
                batch = _decoded(frame, segment.path).select(names)
                held.append(batch)
                rows += batch.num_rows
                if rows >= CHUNK_ROWS:
                    yield pa.concat_batches(held)
                    held, rows = [], 0
        if held:
            yield pa.concat_batches(held)

    def frames(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """The same rows as Polars tables."""
        for batch in self.batches(columns):
            # Column by column: imported whole, one column kept would keep them all in memory.
            yield pl.DataFrame([pl.Series(name, batch[name]) for name in batch.schema.names])

    def _frames_of(self, segment: OpenSegment) -> Iterator[Frame]:
        for piece in segment.pieces():
            if isinstance(piece, Frame):
                self._frames += 1
                self._rows += piece.rows
                yield piece
            elif segment.is_torn(piece):
                self._torn += piece.end - piece.start
            else:
                raise damage(segment.path, piece)


def damage(path: Path, gap: Gap) -> JournalDamaged:
    """The error for a gap that no cut write leaves."""
    size = gap.end - gap.start
    what = f"{size} bytes fail their checksum" if size else "frames are missing"
    return JournalDamaged(
        f"{path}: at byte {gap.start}, {what}",
        expected="whole frames: this is damage to the file, not an interrupted write",
        do="`judgebias salvage DIR` saves what is whole and puts the damaged file aside; "
        "calls whose replies are lost are asked again",
    )


def _open_all(folder: Path, stack: ExitStack) -> list[OpenSegment]:
    for _ in range(_TRIES):
        with ExitStack() as attempt:
            try:
                opened = [_open_one(path, attempt) for path in segment_paths(folder)]
            except FileNotFoundError:
                # A merge removed a segment after it was listed: its rows are in a new one.
                continue
            stack.push(attempt.pop_all())
            return opened
    raise JournalDamaged(
        f"{folder}: segments keep vanishing while they are read",
        do="see whether another program removes files there",
    )


def _open_one(path: Path, stack: ExitStack) -> OpenSegment:
    segment = OpenSegment.open(path)
    stack.callback(segment.close)
    return segment


def _replaces(segment: OpenSegment) -> tuple[int, ...]:
    return () if segment.info is None else segment.info.replaces


def _decoded(frame: Frame, path: Path) -> pa.RecordBatch:
    try:
        batch = decode(frame)
    except (pa.ArrowInvalid, OSError) as error:
        raise JournalDamaged(
            f"{path}: the frame at byte {frame.offset} holds its checksum but no table: {error}",
            do="read it with the version of judgebias that wrote it",
        ) from error
    if batch.num_rows != frame.rows:
        raise JournalDamaged(
            f"{path}: the frame at byte {frame.offset} holds {batch.num_rows} rows",
            expected=f"{frame.rows} rows",
            do="read it with the version of judgebias that wrote it",
        )
    return batch
