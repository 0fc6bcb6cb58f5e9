"""A worker's part of the budget: reserved in lots of a quarter second's worth."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from judgebias.calls import Call
from judgebias.pace.budget import NOTHING, Amount, Answer, Grant, Spending, Tariff
from judgebias.replies import Reply

QUARTER_S = 0.25
WAIT_S = 0.1
_MOST = 4096


class Wallet:
    """One per worker, for all its judges; lives on the worker's event loop."""

    def __init__(
        self, exchange: Callable[[Spending], Awaitable[Grant]], tariff: Tariff, *, usd: bool
    ) -> None:
        """Make an empty wallet.

        Parameters
        ----------
        exchange
            Asks the purse.
        tariff
            What a request costs at its worst.
        usd
            Whether dollars are bounded; where they are not, nothing is priced.
        """
        self._exchange = exchange
        self._tariff = tariff
        self._usd = usd
        self._free = NOTHING
        self._spent = NOTHING
        self._released = NOTHING
        self._doubtful = NOTHING
        # Retries pass by pairs that wait: those hold what a pair may be waiting for.
        self._pairs, self._retries = asyncio.Lock(), asyncio.Lock()
        self._counted: dict[bytes, int] = {}
        """Call -> requests that count as spent already."""
        self._lot = 1
        self._asked_at = 0.0
        self.poor = False
        """Whether pairs wait here for what others may give back."""

    async def afford(self, judge: str, calls: Sequence[Call]) -> bool:
        """Reserve one request of each call, all or nothing; waits while others may give back."""
        need = NOTHING
        for call in calls:
            need += self._worst(judge, call)
        async with self._pairs:
            try:
                return await self._take(need)
            finally:
                self.poor = False

    async def again(self, judge: str, call: Call) -> bool:
        """Reserve one more request of a call whose last one was sent."""
        worst = self._worst(judge, call)
        # The last one's reservation does not come back before the call ends: nobody waits for it.
        self._counted[call.key] = self._counted.get(call.key, 0) + 1
        self._spent += worst
        self._released += worst
        self._doubtful += worst
        async with self._retries:
            return await self._take(worst, retry=True)

    def settle(self, judge: str, call: Call, reply: Reply) -> None:
        """Exchange the reservations of a call that ended for what it cost."""
        requests, worst = max(1, reply.attempts), self._worst(judge, call)
        counted = self._counted.pop(call.key, 0)
        cost = Amount(calls=requests)
        if self._usd:
            cost = self._tariff.actual(judge, call, requests, reply.cost_usd)
        self._spent += cost - worst.times(counted)
        self._doubtful -= worst.times(counted)
        self._released += worst.times(requests - counted)

    def lose(self, judge: str, call: Call) -> None:
        """Count a call that was broken off at its worst case."""
        worst, counted = self._worst(judge, call), self._counted.pop(call.key, 0)
        self._doubtful -= worst.times(counted)
        if not counted:
            self._spent += worst
            self._released += worst

    def unsent(self, judge: str, call: Call) -> None:
        """Keep the reservation of a call that was never sent for another one."""
        self._free += self._worst(judge, call)

    async def report(self, *, idle: bool) -> None:
        """Tell what was spent; an idle worker gives back all that it holds."""
        if idle:
            self._released += self._free
            self._free = NOTHING
        if (self._spent, self._released, self._doubtful) != (NOTHING, NOTHING, NOTHING):
            await self._ask(NOTHING, NOTHING)

    def _worst(self, judge: str, call: Call) -> Amount:
        return self._tariff.worst(judge, call) if self._usd else Amount(calls=1)

    async def _take(self, need: Amount, *, retry: bool = False) -> bool:
        while not self._covers(need):
            # Nobody may wait for what lies here unused.
            self._released += self._free
            self._free = NOTHING
            self._size_lot()
            grant = await self._ask(need, need.times(self._lot), retry=retry)
            self._free += grant.amount
            if grant.answer is Answer.SPENT:
                return False
            if grant.answer is Answer.WAIT:
                self._lot = 1
                self.poor |= not retry
                await asyncio.sleep(WAIT_S)
        self._free -= need
        return True

    def _covers(self, need: Amount) -> bool:
        return self._free.calls >= need.calls and self._free.usd >= need.usd - 1e-12

    def _size_lot(self) -> None:
        now = asyncio.get_running_loop().time()
        quick = now - self._asked_at < QUARTER_S
        self._lot = min(_MOST, self._lot * 2) if quick else max(1, self._lot // 2)
        self._asked_at = now

    async def _ask(self, need: Amount, wish: Amount, *, retry: bool = False) -> Grant:
        spending = Spending(
            spent=self._spent,
            released=self._released,
            doubtful=self._doubtful,
            need=need,
            retry=retry,
            wish=wish,
        )
        self._spent = self._released = self._doubtful = NOTHING
        return await self._exchange(spending)
