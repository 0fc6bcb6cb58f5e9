"""A second request for a call that takes unusually long: off by default, bounded when on.

Both requests count and may be billed. Which calls are slow has to do with load and not with what is
asked, so whichever reply comes first is as good as the other.
"""

from __future__ import annotations

import asyncio
import statistics
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

SLOW = 3.0
"""A request is a straggler when it takes so many times the median."""
_LEAST_KNOWN = 20
"""Requests that must have ended before there is a median to speak of."""
_MEMORY = 200
_MEDIAN_EVERY = 20


class Hedge:
    """One judge's stragglers in one worker."""

    def __init__(self, share: float) -> None:
        """Make a hedge that sends a second request for at most this share of the calls."""
        self._share = share
        self._begun = self._sent = self._open = self._ended = 0
        self._took: deque[float] = deque(maxlen=_MEMORY)
        self._median = 0.0

    async def first_of(
        self, send: Callable[[], Awaitable[T]], second: Callable[[], Awaitable[T | None]]
    ) -> T:
        """Give what ends first; the other one is cancelled.

        Parameters
        ----------
        send
            Sends the request.
        second
            Sends it once more, after whatever has to be waited for and bought; None = it may not.
        """
        self._begun += 1
        started = asyncio.get_running_loop().time()
        if not self._share:
            return await send()
        first = asyncio.ensure_future(send())
        try:
            if not await self._is_straggler(first):
                return await first
            return await self._race(first, asyncio.ensure_future(second()))
        finally:
            await _end(first)
            self._learn(asyncio.get_running_loop().time() - started)

    async def _is_straggler(self, first: asyncio.Future[T]) -> bool:
        if not self._median:
            return False
        await asyncio.wait([first], timeout=SLOW * self._median)
        # Open ones are bounded as well: they come on top of the calls that may be in flight.
        at_once = max(1.0, self._share * (self._begun - self._ended))
        allowed = self._sent + 1 <= self._share * self._begun and self._open + 1 <= at_once
        return allowed and not first.done()

    async def _race(self, first: asyncio.Future[T], other: asyncio.Future[T | None]) -> T:
        self._sent += 1
        self._open += 1
        try:
            await asyncio.wait([first, other], return_when=asyncio.FIRST_COMPLETED)
            if not first.done() and (reply := other.result()) is not None:
                return reply
            return await first
        finally:
            self._open -= 1
            # What was bought for it is known before its call is settled.
            await _end(other)

    def _learn(self, took: float) -> None:
        self._ended += 1
        self._took.append(took)
        if self._ended % _MEDIAN_EVERY == 0 and self._ended >= _LEAST_KNOWN:
            self._median = statistics.median(self._took)


async def _end(request: asyncio.Future[T]) -> None:
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
