"""Readers kept open in a worker, so that consecutive blocks of one file are read in one pass.

A gzip stream and a Parquet row group can only be read forward. A worker that takes the blocks of
a file in their order reads each byte once; one that goes back starts over. The cost is linear in
the size of the file for each worker, not for each block.
"""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar

_KEPT = 16
"""As many judges can read one file side by side without starting over."""


class Reader(Protocol):
    """Something open that stands at a place in a file."""

    def close(self) -> None:
        """Let the file go."""
        ...


R = TypeVar("R", bound=Reader)


class OpenReaders(Generic[R]):
    """The readers that wait for the next block, the one given back last at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reading = threading.Lock()
        """Held by who reads a block: another block is read on from there, not beside it."""
        self._waiting: list[tuple[object, int, R]] = []

    def take(self, key: object, first: int) -> R | None:
        """Take out, for this caller alone, the reader of `key` that stands nearest to `first`."""
        with self._lock:
            fit = [entry for entry in self._waiting if entry[0] == key and entry[1] <= first]
            if not fit:
                return None
            best = max(fit, key=lambda entry: entry[1])
            self._waiting.remove(best)
            return best[2]

    def give(self, key: object, position: int, reader: R) -> None:
        """Leave a reader for the next block; the one that waited longest makes room."""
        with self._lock:
            self._waiting.append((key, position, reader))
            old = self._waiting.pop(0)[2] if len(self._waiting) > _KEPT else None
        if old is not None:
            old.close()

    def close(self) -> None:
        """Close all that wait."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for _, _, reader in waiting:
            reader.close()
