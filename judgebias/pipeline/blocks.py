"""Which block of pairs a worker gets next: plain bookkeeping, without Ray.

A *task block* is one block of pairs for one judge. A worker may have at most `OPEN` of them open
for a judge: enough that the tail of one block does not drain the judge's window, and a bound on
what a slow judge can hold. So a slow judge holds only its own blocks, and the others go on.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import count, groupby

from judgebias.pipeline.stretches import Stretches
from judgebias.pipeline.suspects import CAREFUL_AFTER, Care, Suspects

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
    wave: int | None = None
    """Under a stop rule: the part of the block that is asked; None = all of it."""
    stretch: int | None = None
    """Blocks of one stretch are best read by one worker; None = it does not matter."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assignment:
    """A block that was handed to a worker."""

    block: TaskBlock
    again: tuple[str, ...] = ()
    """Dead workers that had this block: their segments are read before anything is asked."""
    care: Care | None = None
    """How to find the call that kills the workers; None = nothing points at this block."""


class BlockQueue:
    """Hands out each block once, and again only when the worker that had it is dead."""

    def __init__(self, blocks: Iterable[TaskBlock]) -> None:
        self._waiting = _stretches(blocks)
        self._open: dict[str, list[Assignment]] = defaultdict(list)
        self._dropped: set[str] = set()
        self._careful: deque[Assignment] = deque()
        self._nurse = ""
        """The one worker that careful blocks go to, one at a time and nothing beside them."""
        self._announced: dict[str, tuple[bytes, ...]] = {}
        self._suspects = Suspects()

    def take(self, worker: str, *, without: Collection[str] = ()) -> Assignment | None:
        """Give the worker a block of the judge that has the fewest open, or None for now."""
        if self._nurses(worker, without):
            return self._take_careful(worker)
        mine = [held.block.judge for held in self._open[worker]]
        ready = [
            j
            for j, waiting in self._waiting.items()
            if waiting and j not in without and mine.count(j) < OPEN
        ]
        if not ready:
            return None
        everyone = [held.block.judge for open_ in self._open.values() for held in open_]
        assignment = self._waiting[min(ready, key=everyone.count)].take(worker)
        self._open[worker].append(assignment)
        return assignment

    def _nurses(self, worker: str, without: Collection[str]) -> bool:
        """Tell whether this worker is the one that asks with care, and choose it when needed."""
        if not self._nurse and self._careful and self._careful[0].block.judge not in without:
            self._nurse = worker
        if worker == self._nurse and not self._careful and not self._open[worker]:
            self._nurse = ""
        return worker == self._nurse

    def _take_careful(self, worker: str) -> Assignment | None:
        if self._open[worker] or not self._careful:
            return None
        held = self._careful.popleft()
        care = self._suspects.care(held.block.judge, held.block.number)
        assignment = replace(held, care=care)
        self._open[worker].append(assignment)
        return assignment

    def announce(self, worker: str, keys: tuple[bytes, ...]) -> None:
        """Note what a careful worker is about to send."""
        self._announced[worker] = keys

    def give_back(self, worker: str, assignment: Assignment) -> None:
        """Close a block that the worker has finished with."""
        self._open[worker].remove(assignment)
        self._announced.pop(worker, None)

    def bury(self, worker: str) -> int:
        """Put a dead worker's blocks back to the front; returns how many there were."""
        lost = self._open.pop(worker, [])
        for waiting in self._waiting.values():
            waiting.release(worker)
        announced = self._announced.pop(worker, None)
        if worker == self._nurse:
            self._nurse = ""
        for held in lost:
            if held.block.judge in self._dropped:
                continue
            if held.care is not None:
                self._suspects.died(held.block.judge, held.block.number, announced)
            again = Assignment(block=held.block, again=(*held.again, worker))
            if len(again.again) >= CAREFUL_AFTER:
                self._careful.appendleft(again)
            else:
                self._waiting[held.block.judge].put_first(again)
        return len(lost)

    @property
    def hopeless(self) -> dict[str, str]:
        """Judge -> why no more of its blocks should be handed out."""
        return {j: why for j, why in self._suspects.hopeless.items() if j not in self._dropped}

    def drop(self, judge: str) -> None:
        """Hand out no more blocks of a judge; its calls stay pending."""
        self._dropped.add(judge)
        self._waiting.pop(judge, None)
        self._careful = deque(held for held in self._careful if held.block.judge != judge)

    @property
    def idle(self) -> bool:
        """Whether no block is open."""
        return not any(self._open.values())

    @property
    def finished(self) -> bool:
        """Whether no block waits and none is open."""
        waiting = any(self._waiting.values()) or bool(self._careful)
        return not waiting and self.idle


def _stretches(blocks: Iterable[TaskBlock]) -> dict[str, Stretches[Assignment]]:
    """Divide each judge's blocks into their stretches, in order."""
    by_judge: dict[str, list[TaskBlock]] = {}
    for block in blocks:
        by_judge.setdefault(block.judge, []).append(block)
    alone = count()

    def of_block(block: TaskBlock) -> tuple[bool, int]:
        return (True, next(alone)) if block.stretch is None else (False, block.stretch)

    return {
        judge: Stretches(
            [Assignment(block=block) for block in stretch]
            for _, stretch in groupby(its, key=of_block)
        )
        for judge, its in by_judge.items()
    }
