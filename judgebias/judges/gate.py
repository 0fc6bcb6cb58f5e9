"""Who may send now: the one place where calls of a judge wait for each other.

`SharedPause` is the gate of a single process. A gate that shares a limit over the whole cluster
has the same three methods.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_RAMP_S = 10.0


class Gate(Protocol):
    """What the asking of calls needs to know about limits."""

    async def admit(self, tokens: int) -> None:
        """Wait until a request with about so many input tokens may be sent."""
        ...

    def rate_limited(self, after_s: float | None) -> None:
        """Take note of a refusal; None = the server does not say for how long."""
        ...

    def observed(self, headers: Mapping[str, str], tokens: int | None) -> None:
        """Take note of an accepted request: its headers, and its tokens where they are known."""
        ...


class SharedPause:
    """Makes every call of a judge wait while the server says so, and start again bit by bit."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._draw = draw
        self._until = clock()
        self._ramp = 0.0
        self._strikes = 0

    async def admit(self, tokens: int) -> None:  # noqa: ARG002 - this gate counts no tokens
        """Wait for the end of the pause, plus a random part of the ramp."""
        while (left := self._until - self._clock()) > 0:
            await self._sleep(left + self._draw() * self._ramp)

    def rate_limited(self, after_s: float | None) -> None:
        """Pause as long as told, or for a growing, random time; never shorten a pause."""
        now = self._clock()
        if after_s is None:
            if now < self._until:
                return  # one burst of refusals is one strike
            longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**self._strikes)
            after_s = longest * (0.5 + 0.5 * self._draw())
            self._strikes += 1
        self._ramp = min(LONGEST_RAMP_S, after_s / 2)
        self._until = max(self._until, now + after_s)

    def observed(self, headers: Mapping[str, str], tokens: int | None) -> None:  # noqa: ARG002
        """Forget the strikes."""
        self._strikes = 0
