"""A judge's gate under a budget: each request is bought and cleared before it goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from judgebias.calls import Call
from judgebias.judges.gate import Gate
from judgebias.pace.line import now
from judgebias.pace.schedule import TRANSIT_S


class Bought:
    """Another gate, with a wallet."""

    def __init__(
        self,
        gate: Gate,
        again: Callable[[Call], Awaitable[bool]],
        clear: Callable[[Call], Awaitable[None]],
    ) -> None:
        """Make a gate of another one; `again` and `clear` are those of a wallet, for a judge."""
        self.admit = gate.admit
        self.rate_limited = gate.rate_limited
        self.failed = gate.failed
        self.observed = gate.observed
        self._again, self._clear = again, clear

    async def again(self, call: Call) -> bool:
        """Reserve one more request of a call."""
        return await self._again(call)

    async def clear(self, call: Call) -> bool:
        """Have the purse know of a request; a slot that passed meanwhile is not used."""
        since = now()
        await self._clear(call)
        return now() - since < TRANSIT_S / 2
