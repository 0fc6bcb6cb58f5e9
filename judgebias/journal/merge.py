"""Merging: the closed segments of many starts become one, so that files stay few.

The new segment names those it replaces, and readers skip a replaced segment. So there is no moment
at which a row is missing or counted twice, whatever step a crash comes at.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its batches are unknown to the checker wherever they are passed on.

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pyarrow as pa

from judgebias.crash import crash_point
from judgebias.errors import JournalDamaged
from judgebias.journal.frame import Frame, decode, plain_bytes
from judgebias.journal.read import OpenSegment, damage, segment_paths
from judgebias.journal.segment import FRAME_ROWS, SUFFIX, SegmentFile, new_info, sync_folder

KEEP_BELOW = 64
"""Segments below which nothing is merged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Closed:
    """A segment without a writer and without a gap."""

    segment: OpenSegment
    rows: int


def merge_segments(folder: Path, *, keep_below: int = KEEP_BELOW) -> int:
    """Merge the closed segments into one where there are `keep_below` or more; return how many.

    Only the run's owner does this, after `recover`. Segments that a writer holds are left alone,
    and so are those with a torn tail. Nothing is deleted before its copy has been read back.
    """
    for left in folder.glob(".*.tmp"):
        left.unlink()
    if len(segment_paths(folder)) < max(keep_below, 2) and not _left_behind(folder):
        # Nothing to do, and a large journal takes seconds to read.
        return 0
    with ExitStack() as stack:
        sources = _remove_replaced(folder, _closed(folder, stack))
        if len(sources) < max(keep_below, 2):
            return 0
        _write(folder, sources)
        crash_point("merge:before_delete")
        _delete(folder, sources)
        return len(sources)


def _left_behind(folder: Path) -> bool:
    """Tell by their heads whether segments lie about whose rows another one holds."""
    with ExitStack() as stack:
        opened = [OpenSegment.open(path) for path in segment_paths(folder)]
        for segment in opened:
            stack.callback(segment.close)
        infos = [segment.info for segment in opened if segment.info is not None]
        return any(
            number in info.replaces for number in {i.segment for i in infos} for info in infos
        )


def _closed(folder: Path, stack: ExitStack) -> list[_Closed]:
    found: list[_Closed] = []
    for path in segment_paths(folder):
        segment = OpenSegment.open(path, os.O_RDWR)
        stack.callback(segment.close)
        try:
            fcntl.flock(segment.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        rows = _rows(segment)
        if rows is not None:
            found.append(_Closed(segment=segment, rows=rows))
    return found


def _rows(segment: OpenSegment) -> int | None:
    rows = 0
    for piece in segment.pieces():
        if isinstance(piece, Frame):
            rows += piece.rows
        elif segment.is_torn(piece):
            return None
        else:
            raise damage(segment.path, piece)
    return rows


def _remove_replaced(folder: Path, found: list[_Closed]) -> list[_Closed]:
    """Delete what an earlier merge left when it was killed; its copy has just been read whole."""
    infos = [source.segment.info for source in found]
    replaced = {number for info in infos if info is not None for number in info.replaces}
    left = [
        source
        for source, info in zip(found, infos, strict=True)
        if info is not None and info.segment in replaced
    ]
    _delete(folder, left)
    return [source for source in found if source not in left]


def _write(folder: Path, sources: list[_Closed]) -> None:
    infos = [info for source in sources if (info := source.segment.info) is not None]
    info = new_info(
        epoch=max((info.epoch for info in infos), default=0),
        worker="merged",
        # Those of the sources too: an owner may have noted them before it noted the sources.
        replaces=tuple(number for info in infos for number in (*info.replaces, info.segment)),
    )
    name = f"{info.epoch:06d}-merged-{info.segment:016x}{SUFFIX}"
    temporary = folder / f".{name}.tmp"
    sums: list[int] = []
    with closing(SegmentFile(temporary, info)) as target:
        for batch in _batches(sources):
            target.write(batch)
            sums.append(crc32(batch.serialize()))
        _verify(temporary, sums, sum(source.rows for source in sources))
        crash_point("merge:before_rename")
        temporary.rename(folder / name)
    sync_folder(folder)


def _batches(sources: list[_Closed]) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for source in sources:
        for piece in source.segment.pieces():
            if not isinstance(piece, Frame):
                raise damage(source.segment.path, piece)
            held.append(decode(piece))
            rows += piece.rows
            if rows >= FRAME_ROWS:
                yield pa.concat_batches(held)
                held, rows = [], 0
    if held:
        yield pa.concat_batches(held)


def _verify(path: Path, sums: list[int], rows: int) -> None:
    found: list[int] = []
    counted = 0
    with closing(OpenSegment.open(path)) as merged:
        for piece in merged.pieces():
            if isinstance(piece, Frame):
                found.append(crc32(plain_bytes(piece)))
                counted += piece.rows
    if found != sums or counted != rows:
        raise JournalDamaged(
            f"{path}: the merged segment does not read back as it was written",
            expected=f"{rows} rows in {len(sums)} frames",
            do="check the disk; the segments that were to be merged are whole and still count",
        )


def _delete(folder: Path, sources: list[_Closed]) -> None:
    for source in sources:
        source.segment.path.unlink()
    if sources:
        sync_folder(folder)
