"""Who may send now: the one place where calls of a judge wait for each other.

`SharedPause` is the gate of a single process. A gate that shares a limit over the whole cluster
has the same methods.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from judgebias.calls import Call

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_RAMP_S = 10.0


class NotSent(Exception):
    """A request is not sent because the run stops: its call stays pending."""


class Unaffordable(NotSent):
    """A request is not sent because the run's budget has nothing left for it."""


class Gate(Protocol):
    """What the asking of calls needs to know about limits."""

    async def admit(self, tokens: int) -> None:
        """Wait until a request with about so many input tokens may be sent."""
        ...

    async def again(self, call: Call) -> bool:
        """Tell whether one more request of a call may be bought."""
        ...

    async def clear(self, call: Call) -> bool:
        """Tell whether an admitted request of a call may go; where not, it is admitted anew.

        Raises
        ------
        NotSent
            When nothing may be sent from here any more.
        """
        ...

    def rate_limited(self, after_s: float | None) -> None:
        """Take note of a refusal; None = the server does not say for how long."""
        ...

    def failed(self, *, trouble: bool) -> None:
        """Take note of a request that failed for a moment; `trouble` = so many in a row."""
        ...

    def observed(
        self, headers: Mapping[str, str], tokens: int | None, estimated: int | None = None
    ) -> None:
        """Take note of an accepted request: its headers, and its tokens where they are known."""
        ...


async def pass_gate(
    gate: Gate, call: Call, tokens: int, check: Callable[[], None] = lambda: None
) -> None:
    """Wait until a request of a call may go; `check` may raise, as a pause may have been long."""
    cleared = False
    while not cleared:
        await gate.admit(tokens)
        check()
        cleared = await gate.clear(call)


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

    async def again(self, call: Call) -> bool:  # noqa: ARG002 - this gate has no budget
        """Everything may be bought."""
        return True

    async def clear(self, call: Call) -> bool:  # noqa: ARG002 - this gate has no budget
        """Whatever was admitted may go."""
        return True

    def failed(self, *, trouble: bool) -> None:
        """Pause after many failures in a row."""
        if trouble:
            self.rate_limited(None)

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

    def observed(
        self,
        headers: Mapping[str, str],  # noqa: ARG002
        tokens: int | None,  # noqa: ARG002
        estimated: int | None = None,  # noqa: ARG002
    ) -> None:
        """Forget the strikes."""
        self._strikes = 0
