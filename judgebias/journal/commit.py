"""Group commit: many replies of an event loop share one fsync, made in a thread."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from judgebias.journal.rows import Row
from judgebias.journal.segment import FRAME_ROWS, Segment

EVERY_S = 0.05
"""Seconds that a recorded reply waits for company at most.

What a killed worker had received in this time is bought again. A frame costs about 1 ms of CPU
whatever it holds, so a shorter wait would cost more than 2% of a core.
"""


class GroupCommit:
    """Records replies at once and makes them durable together; one event loop's object."""

    def __init__(
        self, segment: Segment, *, every_s: float = EVERY_S, rows: int = FRAME_ROWS
    ) -> None:
        self._segment = segment
        self._every_s = every_s
        self._limit = rows
        self._recorded = segment.durable + segment.buffered
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[int] | None = None
        # A thread of our own: the loop's shared ones may all wait for name servers.
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self.error: BaseException | None = None
        """Why the last flush failed, or None; senders look here before they send."""

    def record(self, row: Row) -> None:
        """Keep a received reply; it is on disk within `every_s` and the time of a flush."""
        self._segment.append(row)
        self._recorded += 1
        if self._segment.buffered >= self._limit:
            self._start()
        else:
            self._arm()

    async def durable(self) -> None:
        """Return when everything recorded so far is on disk.

        Raises
        ------
        JournalWriteError
            When the flush failed. The rows are still held, and the next `durable` tries again.
        """
        if self._segment.durable >= self._recorded:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append((self._recorded, waiter))
        self._arm()
        await waiter

    async def flush(self) -> None:
        """Make everything recorded so far durable without waiting for company."""
        target = self._recorded
        if self._task is not None:
            await asyncio.wait([self._task])
        while self._segment.durable < target:
            self._start()
            await self.durable()

    async def aclose(self) -> None:
        """Make everything durable and release the segment."""
        await self.flush()
        await asyncio.get_running_loop().run_in_executor(self._pool, self._segment.close)
        if self._timer is not None:
            self._timer.cancel()
        self._pool.shutdown()

    def _arm(self) -> None:
        if self._timer is None and self._task is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._every_s, self._start)

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._flush())
            self._task.add_done_callback(self._settle)

    async def _flush(self) -> int:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._segment.flush)

    def _settle(self, task: asyncio.Task[int]) -> None:
        self._task = None
        self.error = asyncio.CancelledError() if task.cancelled() else task.exception()
        durable, waiting = self._segment.durable, self._waiters
        self._waiters = []
        for target, waiter in waiting:
            if waiter.done():
                continue
            if target <= durable:
                waiter.set_result(None)
            elif self.error is not None:
                waiter.set_exception(self.error)
            else:
                self._waiters.append((target, waiter))
        if self.error is None and durable < self._recorded:
            if self._segment.buffered >= self._limit:
                self._start()
            else:
                self._arm()
