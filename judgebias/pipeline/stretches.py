"""The blocks of one judge that nobody has yet, in stretches that one worker reads best alone.

The rows of a Parquet row group can only be decoded one after the other: two workers that took its
blocks in turn would both decode all of it. So a worker keeps to the stretch that it has begun, and
one that finds none left takes over the second half of the longest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Stretches(Generic[T]):
    """Hands out items one by one, to each worker from a stretch of its own."""

    def __init__(self, stretches: Iterable[Iterable[T]] = ()) -> None:
        self._first: deque[T] = deque()
        self._free = deque(deque(stretch) for stretch in stretches)
        self._mine: dict[str, deque[T]] = {}

    def __bool__(self) -> bool:
        """Whether an item waits."""
        return bool(self._first) or bool(self._free) or bool(self._mine)

    def take(self, worker: str) -> T:
        """Give the worker its next item.

        Raises
        ------
        IndexError
            None waits.
        """
        if self._first:
            return self._first.popleft()
        mine = self._mine.pop(worker, None) or self._begin()
        item = mine.popleft()
        if mine:
            self._mine[worker] = mine
        return item

    def put_first(self, item: T) -> None:
        """Have an item handed out before all others."""
        self._first.appendleft(item)

    def release(self, worker: str) -> None:
        """Let others have the stretch of a worker that is gone."""
        if mine := self._mine.pop(worker, None):
            self._free.appendleft(mine)

    def _begin(self) -> deque[T]:
        if self._free:
            return self._free.popleft()
        worker = max(self._mine, key=lambda name: len(self._mine[name]), default=None)
        if worker is None:
            msg = "no item waits"
            raise IndexError(msg)
        longest = self._mine[worker]
        kept = len(longest) // 2
        taken = deque(longest.pop() for _ in range(len(longest) - kept))
        taken.reverse()
        if not longest:
            del self._mine[worker]
        return taken
