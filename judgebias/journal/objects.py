"""The journal on an object store: a segment is a row of small objects that never change.

The objects of a segment, put together in the order of their numbers, are the bytes of a segment
file. So every reader works on a copy in a folder, and on nothing else. An object is written only
where there is none, whole or not at all: there are no torn tails.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its batches are unknown to the checker wherever they are passed on.

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pyarrow as pa

from judgebias.errors import Stopped
from judgebias.journal.commit import GroupCommit
from judgebias.journal.frame import SegmentInfo, encode, pack_frame, pack_head
from judgebias.journal.merge import merge_segments
from judgebias.journal.recover import ASIDE
from judgebias.journal.segment import SUFFIX, Segment, SegmentWriter
from judgebias.objects import Found, ObjectStore, is_uri

EVERY_S = 5.0
"""Seconds that a reply waits for company on an object store at most."""
ROWS = 128
"""Replies that make an object at once: what a kill may lose, beside what is in flight."""

KEEP_BELOW = 256
"""Objects below which nothing is merged."""
CLOSED_AFTER = timedelta(minutes=5)
"""A segment without a new object for so long has no writer any more: far beyond any lease."""

_AT_ONCE = 32
_TRIES = 10


class ObjectSegment:
    """A segment whose every frame is an object of its own."""

    def __init__(self, store: ObjectStore, name: str, info: SegmentInfo) -> None:
        self.path = Path(name)
        self.info = info
        self.trusted = True
        self._store = store
        self._name = name
        self._sequence = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Make one batch durable as an object."""
        payload, plain = encode(batch)
        number, sequence = self.info.segment, self._sequence
        data = pack_frame(
            payload, plain=plain, rows=batch.num_rows, segment=number, sequence=sequence
        )
        if sequence == 0:
            data = pack_head(self.info) + data
        self.trusted = False
        self._store.write_new(_part(self._name, sequence), data)
        self.trusted = True
        self._sequence += 1

    def close(self) -> None:
        """Nothing is held open."""


def create_segment(journal: str, *, epoch: int, worker: str) -> Segment:
    """Open a segment in a journal, wherever it is."""
    if not is_uri(journal):
        return Segment.create(Path(journal), epoch=epoch, worker=worker)
    store = ObjectStore(journal)

    def open_file(name: str, info: SegmentInfo) -> SegmentWriter:
        return ObjectSegment(store, name, info)

    return Segment(open_file, epoch=epoch, worker=worker)


def open_commit(journal: str, *, epoch: int, worker: str) -> GroupCommit:
    """Open a segment whose replies become durable together, as often as the place is fit for."""
    segment = create_segment(journal, epoch=epoch, worker=worker)
    if is_uri(journal):
        return GroupCommit(segment, every_s=EVERY_S, rows=ROWS)
    return GroupCommit(segment)


@contextmanager
def journal_folder(journal: str, *, since_epoch: int = 0) -> Generator[Path]:
    """Give a folder with the journal as it is now: itself, or a copy for the while."""
    if not is_uri(journal):
        yield Path(journal)
        return
    with tempfile.TemporaryDirectory(prefix="judgebias-journal-") as folder:
        JournalCopy(ObjectStore(journal), Path(folder)).pull(since_epoch=since_epoch)
        yield Path(folder)


class JournalCopy:
    """A folder that follows the journal on an object store."""

    def __init__(self, store: ObjectStore, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._parts: dict[str, list[str]] = {}
        """Segment -> the objects that the copy holds, in their order."""
        self._aside: set[str] = set()
        """Damaged segments that were put aside, and are on the store."""

    def pull(self, *, since_epoch: int = 0) -> None:
        """Fetch what is new, and drop the segments that a merge removed.

        An object that is missing in the middle of a segment leaves a gap in the copy, which every
        reader finds.
        """
        for _ in range(_TRIES):
            listed = _segments(self._store.list(), since_epoch)
            try:
                for gone in self._parts.keys() - listed.keys():
                    self._forget(gone)
                for name, parts in listed.items():
                    self._append(name, parts)
            except FileNotFoundError:
                # A merge removed a segment after it was listed: its rows are in a new one.
                continue
            return
        raise Stopped(
            f"{self._store.uri}: segments keep vanishing while they are read",
            do="see whether another program removes objects there",
        )

    def merge(self) -> int:
        """Merge the closed segments where there are many objects; returns how many segments.

        Only the run's owner does this. A writer cannot be seen from here, so the segments that
        grew lately are left alone.
        """
        if sum(map(len, self._parts.values())) < KEEP_BELOW:
            return 0
        closed = self._store.now() - CLOSED_AFTER
        listed = _segments(self._store.list(), since_epoch=0)
        young = {name for name, parts in listed.items() if parts[-1].written > closed}
        with ExitStack() as held:
            for name in young & self._parts.keys():
                file = held.enter_context((self._folder / name).open("rb"))
                # As its writer would hold it on a disk: the merge passes it by.
                fcntl.flock(file, fcntl.LOCK_EX)
            merged = merge_segments(self._folder, keep_below=2)
        self.push()
        return merged

    def push(self) -> None:
        """Bring a merge or a salvage of the copy to the store: the new first, then the removal."""
        names = {path.name for path in self._folder.iterdir()}
        here = {name for name in names if _is_segment(name)}
        for name in sorted(here - self._parts.keys()):
            self._store.write(_part(name, 0), self._folder / name)
            self._parts[name] = [_part(name, 0)]
        for name in sorted({name for name in names if name.endswith(ASIDE)} - self._aside):
            self._store.write(name, self._folder / name)
            self._aside.add(name)
        for name in sorted(self._parts.keys() - here):
            self._store.remove(self._parts.pop(name))

    def _append(self, name: str, parts: list[Found]) -> None:
        there, held = [part.name for part in parts], self._parts.get(name, [])
        if held and there[: len(held)] != held:
            # Somebody removed objects, or brought some back.
            self._forget(name)
            held = []
        path, new = self._folder / name, there[len(held) :]
        if not held and len(new) == 1:
            self._store.fetch(new[0], path)
        elif new:
            self._join(path, new)
        self._parts[name] = there

    def _join(self, path: Path, names: list[str]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool, path.open("ab") as file:
            start = file.tell()
            try:
                for data in pool.map(self._store.read, names):
                    file.write(data)
            except OSError:
                file.truncate(start)
                raise

    def _forget(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
        del self._parts[name]


def _segments(found: Iterable[Found], since_epoch: int) -> dict[str, list[Found]]:
    segments: dict[str, list[Found]] = {}
    for one in found:
        name = one.name.rpartition("/")[0]
        if _is_segment(name) and int(name[:6]) >= since_epoch:
            segments.setdefault(name, []).append(one)
    return segments


def _is_segment(name: str) -> bool:
    return name.endswith(SUFFIX) and name[:6].isdecimal()


def _part(segment: str, number: int) -> str:
    return f"{segment}/{number:08d}"
