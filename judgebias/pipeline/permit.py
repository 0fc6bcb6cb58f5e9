"""A worker's permission to send: the lease, kept alive by beats to the run's owner."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping

from ray.exceptions import RayError

from judgebias.crash import crash_point
from judgebias.journal import GroupCommit
from judgebias.pipeline.handle import OwnerHandle
from judgebias.pipeline.owner import BEAT_S, Beat, Demand
from judgebias.progress import Counters

SOON_S = 0.02
"""Between two beats at least."""


class Lease:
    """Granted while the owner answered within the lease's length and our parent lives.

    Nothing is sent, either, while what was received cannot be written down.
    """

    def __init__(
        self,
        owner: OwnerHandle,
        worker: str,
        counters: Callable[[], Counters],
        journal: GroupCommit,
        demand: Callable[[], Mapping[str, Demand]],
    ) -> None:
        self._owner = owner
        self._journal = journal
        self._worker = worker
        self._counters = counters
        self._demand = demand
        self._hurry = asyncio.Event()
        self._until = 0.0
        self._parent = os.getppid()
        self._news = asyncio.Event()
        self.closed = False
        """Whether nothing is to be sent any more."""

    @property
    def granted(self) -> bool:
        """Whether a call may be sent now."""
        return time.monotonic() < self._until and self._journal.error is None

    async def changed(self) -> None:
        """Wait for the next beat's answer."""
        await self._news.wait()

    async def keep(self, heed: Callable[[Beat], None]) -> None:
        """Beat until closed; every answer is passed on to `heed`."""
        while True:
            asked = time.monotonic()
            beat = await self._beat()
            if os.getppid() != self._parent:
                # The raylet is gone: nobody waits for what this orphan would buy.
                self.closed = True
            elif beat is not None:
                crash_point("lease:before_renewal")
                self._until = asked + beat.lease_s
                self.closed = self.closed or beat.stopping
                heed(beat)
            self._news.set()
            self._news = asyncio.Event()
            await self._pause(asked)

    def soon(self) -> None:
        """Beat before its time: this worker could use more of a window."""
        self._hurry.set()

    async def _pause(self, asked: float) -> None:
        await asyncio.sleep(max(0.0, asked + SOON_S - time.monotonic()))
        try:
            async with asyncio.timeout(max(0.0, asked + BEAT_S - time.monotonic())):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._hurry.clear()

    async def _beat(self) -> Beat | None:
        try:
            async with asyncio.timeout(BEAT_S * 4):
                return await self._owner.beat(self._worker, self._counters(), self._demand())
        except (TimeoutError, RayError):
            # An owner that does not answer grants nothing: the lease runs out by itself.
            return None
