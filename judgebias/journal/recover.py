"""Mending: torn tails are cut by the journal's owner, damaged segments are salvaged by hand."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from judgebias.crash import crash_point
from judgebias.errors import JournalDamaged, UsageError
from judgebias.journal.frame import Frame, Gap, SegmentInfo, pieces, read_head
from judgebias.journal.read import OpenSegment, damage, segment_paths
from judgebias.journal.segment import SegmentFile, new_info, sync_folder

ASIDE = ".damaged"
"""What the name of a segment ends with that was salvaged."""

_POLL_S = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovery:
    """What `recover` found."""

    segments: int
    rows: int
    torn_bytes: int
    """Bytes cut off the ends of segments; they are kept in `<segment>.torn`."""
    torn_segments: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Salvage:
    """What `salvage` saved and what is lost."""

    frames: int
    rows: int
    lost: tuple[tuple[int, int], ...]
    """Byte ranges of the original that hold no valid frame."""
    named: bool
    """Whether the original still says which segment it is."""


@contextmanager
def locked(path: Path, *, wait_s: float) -> Generator[OpenSegment]:
    """Open a segment that no writer holds any more, and keep writers off it.

    Raises
    ------
    UsageError
        When a writer still holds it after `wait_s` seconds.
    """
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        _lock(file, path, time.monotonic() + wait_s)
        segment = OpenSegment.open(path, os.O_RDWR)
        try:
            yield segment
        finally:
            segment.close()
    finally:
        os.close(file)


def _lock(file: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise UsageError(
                    f"{path}: a worker still writes this segment",
                    expected="no writer: the journal is recovered before the first call",
                    do="wait until the other run has ended, or stop it",
                ) from error
            time.sleep(_POLL_S)
        else:
            return


def recover(folder: Path, *, wait_s: float = 10.0) -> Recovery:
    """Cut the torn tail of every segment; only the run's owner does this, before it asks.

    Every checksum is read. `wait_s` is the time that all writers of a dead run together get to
    let go of their segments.

    Raises
    ------
    JournalDamaged
        At a frame that fails its checksum and is no write that was cut; it is left as it is.
    UsageError
        When a writer still holds a segment after `wait_s` seconds.
    """
    deadline = time.monotonic() + wait_s
    paths = segment_paths(folder)
    rows = torn_bytes = torn_segments = 0
    for path in paths:
        with locked(path, wait_s=deadline - time.monotonic()) as segment:
            counted, torn = _inspect(segment)
            rows += counted
            # A kill before its sync leaves a frame that no disk holds yet, and its calls count now.
            os.fsync(segment.file)
            if torn is not None:
                _cut(segment, torn)
                torn_bytes += torn.end - torn.start
                torn_segments += 1
    return Recovery(
        segments=len(paths), rows=rows, torn_bytes=torn_bytes, torn_segments=torn_segments
    )


def _inspect(segment: OpenSegment) -> tuple[int, Gap | None]:
    rows, torn = 0, None
    for piece in segment.pieces():
        if isinstance(piece, Frame):
            rows += piece.rows
        elif segment.is_torn(piece):
            torn = piece
        else:
            raise damage(segment.path, piece)
    return rows, torn


def _cut(segment: OpenSegment, torn: Gap) -> None:
    kept = segment.path.with_name(segment.path.name + ".torn")
    data = os.pread(segment.file, torn.end - torn.start, torn.start)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(kept, flags, 0o600), "wb") as target:
        target.write(data)
        target.flush()
        os.fsync(target.fileno())
    sync_folder(kept.parent)
    os.ftruncate(segment.file, torn.start)
    os.fsync(segment.file)


def salvage(segment: Path, out: Path) -> Salvage:
    """Write every valid frame of a damaged segment to a new one; the original is not touched.

    A segment whose very start is damaged is salvaged too: each frame proves itself. The caller
    moves the original out of the journal, so that nothing is deleted unseen.
    """
    file = os.open(segment, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        info, start = _start_of(file, size, segment)
        number = None if info is None else info.segment
        found = pieces(file, start, size, number)
        return _copy(found, _salvaged(info, out), named=info is not None)
    finally:
        os.close(file)


@dataclass(frozen=True, kw_only=True, slots=True)
class Salvaged:
    """One damaged segment that was replaced by its whole frames."""

    original: Path
    aside: Path
    """Where the original is now: in the journal's folder, and no part of the journal."""
    rows: int
    lost: tuple[tuple[int, int], ...]
    """Byte ranges of the original that hold no valid frame."""
    named: bool
    """Whether the original still says which segment it is."""


def salvage_journal(folder: Path) -> list[Salvaged]:
    """Replace every damaged segment; only the run's owner does this.

    The copy is in place before the original is put aside, so no moment is without its replies; a
    reply that is in both counts once.
    """
    return [_replace(path) for path in segment_paths(folder) if _damaged(path)]


def _damaged(path: Path) -> bool:
    try:
        with closing(OpenSegment.open(path)) as segment:
            _inspect(segment)
    except JournalDamaged:
        return True
    return False


def _replace(path: Path) -> Salvaged:
    copy = path.with_name(f"{path.stem}-salvaged{path.suffix}")
    beside = copy.with_name(f".{copy.name}.tmp")
    beside.unlink(missing_ok=True)
    saved = salvage(path, beside)
    beside.replace(copy)
    sync_folder(path.parent)
    crash_point("salvage:before_aside")
    aside = path.with_name(path.name + ASIDE)
    path.replace(aside)
    sync_folder(path.parent)
    return Salvaged(original=path, aside=aside, rows=saved.rows, lost=saved.lost, named=saved.named)


def _start_of(file: int, size: int, path: Path) -> tuple[SegmentInfo | None, int]:
    try:
        head = read_head(file, size, str(path))
    except JournalDamaged:
        head = None
    return (None, 0) if head is None else head


def _numbers(folder: Path) -> set[int]:
    """Give the numbers of the segments that lie in a journal and say who they are."""
    numbers: set[int] = set()
    for path in segment_paths(folder):
        with suppress(JournalDamaged), closing(OpenSegment.open(path)) as segment:
            numbers |= set() if segment.info is None else {segment.info.segment}
    return numbers


def _salvaged(info: SegmentInfo | None, out: Path) -> SegmentFile:
    if info is None:
        fresh = new_info(epoch=0, worker="salvaged")
    else:
        # A merged segment may be damaged before its sources are deleted: then they count.
        there = _numbers(out.parent)
        replaces = (*(number for number in info.replaces if number not in there), info.segment)
        fresh = new_info(epoch=info.epoch, worker=info.worker, replaces=replaces)
    try:
        return SegmentFile(out, fresh)
    except FileExistsError as error:
        raise UsageError(
            f"{out}: the file exists", expected="a new file", do="name another one"
        ) from error


def _copy(found: Iterator[Frame | Gap], target: SegmentFile, *, named: bool) -> Salvage:
    frames = rows = 0
    lost: list[tuple[int, int]] = []
    with closing(target):
        for piece in found:
            if isinstance(piece, Gap):
                lost.append((piece.start, piece.end))
                continue
            target.write_payload(piece.payload, plain=piece.plain, rows=piece.rows)
            frames += 1
            rows += piece.rows
    return Salvage(frames=frames, rows=rows, lost=tuple(lost), named=named)
