"""A worker's part of the budget: reserved and cleared in lots of a quarter second's worth."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from judgebias.calls import Call
from judgebias.judges.gate import NotSent
from judgebias.pace.budget import NOTHING, Amount, Answer, Grant, Spending, Tariff
from judgebias.replies import Reply

QUARTER_S = 0.25
WAIT_S = 0.1
RETRY_WAIT_S = 10.0
"""So long a call waits for one more try to be bought. Not for ever: what others hold may be for
calls that can start only when this one has ended."""
_MOST = 4096


@dataclass(kw_only=True, slots=True)
class _Bought:
    """What is reserved for one call that has not ended."""

    worst: Amount
    """Of one request."""
    counted: int = 0
    """Requests that count as spent already."""
    reserved: bool = True
    """Whether its current request is reserved."""
    cleared: bool = False
    """Whether its current request may have been sent."""


class _Lot:
    """A size that doubles where it lasts for less than a quarter second, and else shrinks."""

    def __init__(self) -> None:
        self.size = 1
        self._asked_at = 0.0

    def next(self) -> int:
        """Give the size for the next question, which is asked now."""
        now = asyncio.get_running_loop().time()
        quick = now - self._asked_at < QUARTER_S
        self.size = min(_MOST, self.size * 2) if quick else max(1, self.size // 2)
        self._asked_at = now
        return self.size


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
        """Reserved, and for no call yet."""
        self._cleared = NOTHING
        """Cleared, and for no request yet."""
        self._news = Spending()
        """What the purse is to be told with the next question."""
        self._calls: dict[bytes, _Bought] = {}
        # A judge's retries pass by its pairs that wait: those hold what a pair may be waiting for.
        self._pairs: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._retries: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._clearing = asyncio.Lock()
        self._reserving, self._sending = _Lot(), _Lot()
        self._request = NOTHING
        """The last one that was cleared, at its worst."""
        self.poor: set[str] = set()
        """Judges whose pairs wait here for what others may give back."""

    async def afford(self, judge: str, calls: Sequence[Call]) -> bool:
        """Reserve one request of each call, all or nothing; waits while others may give back."""
        bought = {call.key: _Bought(worst=self._worst(judge, call)) for call in calls}
        need = sum((each.worst for each in bought.values()), NOTHING)
        async with self._pairs[judge]:
            try:
                granted = await self._take(judge, need)
            finally:
                self.poor.discard(judge)
        if granted:
            self._calls.update(bought)
        return granted

    async def again(self, judge: str, call: Call) -> bool:
        """Reserve one more request of a call whose last one was sent."""
        bought = self._of(judge, call)
        if bought.reserved and not bought.cleared:
            # Bought for a second request that was not sent.
            return True
        if bought.reserved:
            # It does not come back before the call ends: nobody waits for it.
            self._count(bought)
            bought.counted += 1
            self._note(doubtful=bought.worst)
            bought.reserved = False
        async with self._retries[judge]:
            bought.reserved = await self._take(judge, bought.worst, retry=True)
        return bought.reserved

    async def clear(self, judge: str, call: Call) -> None:
        """Have the purse know of a request before it is sent.

        Raises
        ------
        NotSent
            When this worker counts as dead, and what it held as spent.
        """
        bought = self._of(judge, call)
        if bought.cleared:
            return
        self._request = bought.worst
        if not _covers(self._cleared, bought.worst):
            async with self._clearing:
                while not _covers(self._cleared, bought.worst):
                    self._sending.next()
                    self._request = bought.worst
                    if (await self._ask(starved=True)).answer is Answer.SPENT:
                        raise NotSent
        self._cleared -= bought.worst
        bought.cleared = True

    def settle(self, judge: str, call: Call, reply: Reply) -> None:
        """Exchange the reservations of a call that ended for what it cost."""
        bought, requests = self._end(judge, call), max(1, reply.attempts)
        cost = Amount(calls=requests)
        if self._usd:
            cost = self._tariff.actual(judge, call, requests, reply.cost_usd)
        counted = bought.worst.times(bought.counted)
        self._note(
            spent=cost - counted,
            doubtful=NOTHING - counted,
            released=bought.worst if bought.reserved else NOTHING,
            landed=bought.worst if bought.cleared else NOTHING,
        )

    def lose(self, judge: str, call: Call) -> None:
        """Count a call that was broken off: at its worst where it may have been sent."""
        bought = self._end(judge, call)
        self._note(doubtful=NOTHING - bought.worst.times(bought.counted))
        if bought.cleared:
            self._count(bought)
        elif bought.reserved:
            self._free += bought.worst

    def unsent(self, judge: str, call: Call) -> None:
        """Keep the reservation of a call that was never begun for another one."""
        self._free += self._end(judge, call).worst

    async def report(self, *, idle: bool) -> None:
        """Tell what was spent; an idle worker gives back all that it has no use for."""
        if idle:
            self._give_back()
            self._note(landed=self._cleared)
            self._cleared = NOTHING
        if self._news != Spending():
            await self._ask(top_up=not idle)

    def _worst(self, judge: str, call: Call) -> Amount:
        return self._tariff.worst(judge, call) if self._usd else Amount(calls=1)

    def _of(self, judge: str, call: Call) -> _Bought:
        if (bought := self._calls.get(call.key)) is None:
            bought = self._calls[call.key] = _Bought(worst=self._worst(judge, call))
        return bought

    def _end(self, judge: str, call: Call) -> _Bought:
        bought = self._of(judge, call)
        del self._calls[call.key]
        return bought

    def _count(self, bought: _Bought) -> None:
        """Count a request as spent at its worst."""
        landed = bought.worst if bought.cleared else NOTHING
        self._note(spent=bought.worst, released=bought.worst, landed=landed)
        bought.cleared = False

    def _note(
        self,
        *,
        spent: Amount = NOTHING,
        released: Amount = NOTHING,
        doubtful: Amount = NOTHING,
        landed: Amount = NOTHING,
    ) -> None:
        news = self._news
        self._news = Spending(
            spent=news.spent + spent,
            released=news.released + released,
            doubtful=news.doubtful + doubtful,
            landed=news.landed + landed,
        )

    def _give_back(self) -> None:
        self._note(released=self._free)
        self._free = NOTHING

    async def _take(self, judge: str, need: Amount, *, retry: bool = False) -> bool:
        until = asyncio.get_running_loop().time() + RETRY_WAIT_S
        while not _covers(self._free, need):
            # Nobody may wait for what lies here unused.
            self._give_back()
            wish = need.times(self._reserving.next())
            grant = await self._ask(judge=judge, need=need, wish=wish, retry=retry)
            if grant.answer is Answer.SPENT:
                return False
            if grant.answer is Answer.WAIT:
                if retry and asyncio.get_running_loop().time() >= until:
                    return False
                self._reserving.size = 1
                if not retry:
                    self.poor.add(judge)
                await asyncio.sleep(WAIT_S)
        self._free -= need
        return True

    async def _ask(
        self,
        *,
        judge: str = "",
        need: Amount = NOTHING,
        wish: Amount = NOTHING,
        retry: bool = False,
        starved: bool = False,
        top_up: bool = True,
    ) -> Grant:
        """Ask the purse; what is to be cleared soon is asked for with whatever else is."""
        news, self._news = self._news, Spending()
        lot = self._sending.size if starved else self._sending.size - self._cleared.calls
        spending = replace(
            news,
            judge=judge,
            need=need,
            wish=wish,
            retry=retry,
            request=self._request,
            lot=max(0, lot) if top_up and self._request != NOTHING else 0,
            starved=starved,
        )
        exchange = asyncio.ensure_future(self._exchange(spending))
        try:
            await asyncio.shield(exchange)
        except asyncio.CancelledError:
            # Who asked was broken off; what is granted is this wallet's all the same.
            exchange.add_done_callback(self._bank)
            raise
        return self._bank(exchange)

    def _bank(self, exchange: asyncio.Future[Grant]) -> Grant:
        grant = exchange.result()
        self._free += grant.amount
        self._cleared += grant.cleared
        return grant


def _covers(amount: Amount, need: Amount) -> bool:
    return amount.calls >= need.calls and amount.usd >= need.usd - 1e-12
