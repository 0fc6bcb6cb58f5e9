"""Readers kept open in a worker, so that consecutive blocks of one file are read in one pass.

A gzip stream and a Parquet row group can only be read forward. A worker that takes the blocks of
a file in their order reads each byte once; one that goes back starts over. The cost is linear in
the size of the file for each worker, not for each block.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

_KEPT = 16
"""As many judges can read one file side by side without starting over."""
_IDLE = 2 * _KEPT
"""Blocks read by others after which a reader is let go: nobody reads on from where it stands, and
the pages that it holds of every column are some 20 MB."""


class Reader(Protocol):
    """Something open that stands at a place in a file."""

    def close(self) -> None:
        """Let the file go."""
        ...


R = TypeVar("R", bound=Reader)


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[R]):
    key: object
    position: int
    since: int
    """The turn in which it was left here; later ones stand behind it."""
    reader: R


class OpenReaders(Generic[R]):
    """The readers that wait for the next block, the one given back last at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reading = threading.Lock()
        """Held by who reads a block: another block is read on from there, not beside it."""
        self._waiting: list[_Waiting[R]] = []
        self._turn = 0

    def take(self, key: object, first: int) -> R | None:
        """Take out, for this caller alone, the reader of `key` that stands nearest to `first`."""
        with self._lock:
            fit = [one for one in self._waiting if one.key == key and one.position <= first]
            if not fit:
                return None
            best = max(fit, key=lambda one: one.position)
            self._waiting.remove(best)
            return best.reader

    def give(self, key: object, position: int, reader: R) -> None:
        """Leave a reader for the next block; those that waited long make room."""
        with self._lock:
            self._turn += 1
            self._waiting.append(_Waiting(key, position, self._turn, reader))
            fresh = [one for one in self._waiting[-_KEPT:] if one.since > self._turn - _IDLE]
            old = self._waiting[: len(self._waiting) - len(fresh)]
            self._waiting = fresh
        for one in old:
            one.reader.close()

    def close(self) -> None:
        """Close all that wait."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.reader.close()
