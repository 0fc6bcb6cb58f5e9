"""Which block of pairs a worker gets next: plain bookkeeping, without Ray.

A *task block* is one block of pairs for one judge. A worker may have at most `OPEN` of them open
for a judge: enough that the tail of one block does not drain the judge's window, and a bound on
what a slow judge can hold. So a slow judge holds only its own blocks, and the others go on.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass

OPEN = 3
"""Blocks one worker may have open for one judge (measured: 2 to 3 keep the window full)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskBlock:
    """One block of pairs, to be asked of one judge."""

    judge: str
    number: int
    """Index into the run's blocks."""
    n_calls: int
    """Calls still to be asked when the run started."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A block that was handed to a worker."""

    block: TaskBlock
    again: tuple[str, ...] = ()
    """Dead workers that had this block: their segments are read before anything is asked."""


class BlockQueue:
    """Hands out each block once, and again only when the worker that had it is dead."""

    def __init__(self, blocks: Iterable[TaskBlock]) -> None:
        self._waiting: dict[str, deque[Assignment]] = defaultdict(deque)
        for block in blocks:
            self._waiting[block.judge].append(Assignment(block=block))
        self._open: dict[str, list[Assignment]] = defaultdict(list)
        self._dropped: set[str] = set()

    def take(self, worker: str, *, without: Collection[str] = ()) -> Assignment | None:
        """Give the worker a block of the judge that has the fewest open, or None for now."""
        mine = [held.block.judge for held in self._open[worker]]
        everyone = [held.block.judge for open_ in self._open.values() for held in open_]
        ready = [
            j
            for j, waiting in self._waiting.items()
            if waiting and j not in without and mine.count(j) < OPEN
        ]
        if not ready:
            return None
        assignment = self._waiting[min(ready, key=everyone.count)].popleft()
        self._open[worker].append(assignment)
        return assignment

    def give_back(self, worker: str, assignment: Assignment) -> None:
        """Close a block that the worker has finished with."""
        self._open[worker].remove(assignment)

    def bury(self, worker: str) -> int:
        """Put a dead worker's blocks back to the front; returns how many there were."""
        lost = self._open.pop(worker, [])
        for held in lost:
            if held.block.judge in self._dropped:
                continue
            again = Assignment(block=held.block, again=(*held.again, worker))
            self._waiting[held.block.judge].appendleft(again)
        return len(lost)

    def drop(self, judge: str) -> None:
        """Hand out no more blocks of a judge; its calls stay pending."""
        self._dropped.add(judge)
        self._waiting.pop(judge, None)

    def drop_all(self) -> None:
        """Hand out nothing more."""
        self._waiting.clear()

    @property
    def finished(self) -> bool:
        """Whether no block waits and none is open."""
        return not any(self._waiting.values()) and not any(self._open.values())

    @property
    def exhausted(self) -> bool:
        """Whether no block waits, though some may be open."""
        return not any(self._waiting.values())
