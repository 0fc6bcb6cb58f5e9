"""Writing: one worker's replies into one file that nobody else writes.

Rows wait in a plain list. `flush` turns them into frames, each written by one call and made durable
by one fsync. When the disk refuses, the rows stay in memory and the file ends at its last good
frame; when a sync fails the file is not trusted any more, and the next flush opens a new one.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its batches are unknown to the checker wherever they are passed on.

from __future__ import annotations

import fcntl
import os
import re
import secrets
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol, Self, TypeAlias

import pyarrow as pa

from judgebias.calls import KEY_BYTES
from judgebias.crash import crash_point
from judgebias.errors import Stopped, UsageError
from judgebias.journal.frame import SegmentInfo, encode, pack_frame, pack_head
from judgebias.journal.rows import Row, batch_of

FRAME_ROWS = 8192
"""Rows in a frame at most."""

SUFFIX = ".seg"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class JournalWriteError(Stopped):
    """The disk does not take the replies; they stay in memory and `flush` may be tried again."""


def new_info(*, epoch: int, worker: str, replaces: tuple[int, ...] = ()) -> SegmentInfo:
    """Describe a segment that this process is about to write."""
    return SegmentInfo(
        segment=secrets.randbits(64),
        epoch=epoch,
        worker=worker,
        host=socket.gethostname(),
        pid=os.getpid(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        replaces=replaces,
    )


def sync_folder(folder: Path) -> None:
    """Make names created, renamed or removed in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class SegmentWriter(Protocol):
    """Where the frames of a segment go."""

    path: Path
    trusted: bool

    def write(self, batch: pa.RecordBatch) -> None:
        """Make one batch durable as a frame."""
        ...

    def close(self) -> None:
        """Release what is held."""
        ...


Opener: TypeAlias = Callable[[str, SegmentInfo], SegmentWriter]
"""Makes the place of a new segment; given its file's name and what it says about itself."""


class SegmentFile:
    """An open segment file, locked for its one writer."""

    def __init__(self, path: Path, info: SegmentInfo) -> None:
        self.path = path
        self.info = info
        self.trusted = True
        """False once a sync failed or the file could not be cut back to its last good frame."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._good = 0
        self._sequence = 0
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._append(pack_head(info))
            sync_folder(path.parent)
        except OSError:
            # Nothing but a header can be lost here, and the name is free for another try.
            path.unlink()
            os.close(self._file)
            raise

    def write(self, batch: pa.RecordBatch) -> None:
        """Make one batch durable as a frame."""
        payload, plain = encode(batch)
        self.write_payload(payload, plain=plain, rows=batch.num_rows)

    def write_payload(self, payload: bytes, *, plain: int, rows: int) -> None:
        """Make an encoded batch durable as a frame."""
        number, sequence = self.info.segment, self._sequence
        frame = pack_frame(payload, plain=plain, rows=rows, segment=number, sequence=sequence)
        crash_point("flush:before_write")
        self._append(frame)
        self._sequence += 1

    def close(self) -> None:
        """Release the file and its lock."""
        os.close(self._file)

    def _append(self, data: bytes) -> None:
        try:
            self._write_all(data)
            if self._good:
                crash_point("flush:before_fsync")
            self.trusted = False
            os.fsync(self._file)
            self.trusted = True
        except OSError:
            self._cut_back()
            raise
        self._good += len(data)

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._file, self._good)
            os.lseek(self._file, self._good, os.SEEK_SET)
        except OSError:
            self.trusted = False


class Segment:
    """The replies of one worker in one epoch, buffered and then made durable.

    `append` and `flush` may run in different threads.
    """

    def __init__(self, opener: Opener, *, epoch: int, worker: str) -> None:
        if not _NAME.fullmatch(worker):
            msg = f"a worker's name is a part of a file name, got {worker!r}"
            raise ValueError(msg)
        self._opener = opener
        self._epoch = epoch
        self._worker = worker
        self._rows: list[Row] = []
        self._swap = threading.Lock()
        self._flushing = threading.Lock()
        self._part = 0
        self._durable = 0
        self._file = self._open()

    @classmethod
    def create(cls, folder: Path, *, epoch: int, worker: str) -> Self:
        """Open a new segment file in the journal's folder.

        Raises
        ------
        UsageError
            When this worker already has a segment of this epoch.
        JournalWriteError
            When the disk does not take it.
        """
        return cls(partial(_open_in, folder), epoch=epoch, worker=worker)

    @property
    def path(self) -> Path:
        """The file that is being written now."""
        return self._file.path

    @property
    def buffered(self) -> int:
        """Rows that are not durable yet."""
        return len(self._rows)

    @property
    def durable(self) -> int:
        """Rows made durable since the segment was created."""
        return self._durable

    def append(self, row: Row) -> None:
        """Keep a row for the next flush."""
        if len(row.pair) != KEY_BYTES:
            msg = f"a pair's digest has {KEY_BYTES} bytes, got {len(row.pair)}"
            raise ValueError(msg)
        with self._swap:
            self._rows.append(row)

    def flush(self) -> int:
        """Write what is buffered, and return how many rows this made durable.

        Raises
        ------
        JournalWriteError
            When the disk refuses. No row is lost: those not written are still buffered.
        """
        with self._flushing:
            with self._swap:
                rows, self._rows = self._rows, []
            done = 0
            try:
                while done < len(rows):
                    part = rows[done : done + FRAME_ROWS]
                    self._write(batch_of(part, self._worker))
                    done += len(part)
            finally:
                self._durable += done
                if done < len(rows):
                    with self._swap:
                        self._rows[:0] = rows[done:]
            return done

    def close(self) -> None:
        """Flush and release the file; after an error it stays open for another try."""
        self.flush()
        self._file.close()

    def _write(self, batch: pa.RecordBatch) -> None:
        if not self._file.trusted:
            stale, self._file = self._file, self._open()
            stale.close()
        try:
            self._file.write(batch)
        except OSError as error:
            raise _refused(self._file.path, error) from error

    def _open(self) -> SegmentWriter:
        part = f".{self._part}" if self._part else ""
        name = f"{self._epoch:06d}-{self._worker}{part}{SUFFIX}"
        info = new_info(epoch=self._epoch, worker=self._worker)
        try:
            file = self._opener(name, info)
        except FileExistsError as error:
            raise UsageError(
                f"{name}: this worker already has a segment of epoch {self._epoch}",
                expected="one writer per segment",
                do="give every start of a worker its own epoch or name",
            ) from error
        except OSError as error:
            raise _refused(Path(name), error) from error
        self._part += 1
        return file


def _open_in(folder: Path, name: str, info: SegmentInfo) -> SegmentFile:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return SegmentFile(folder / name, info)


def _refused(path: Path, error: OSError) -> JournalWriteError:
    return JournalWriteError(
        f"{path}: cannot write the journal: {error.strerror or error}",
        expected="a disk with room that takes writes; received replies are kept in memory",
        do="free space or mend the disk; the same command goes on from here",
    )
