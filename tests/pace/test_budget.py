"""A budget that holds for all workers together, whatever fails, dies or is not known."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.calls import Call, Pair
from judgebias.config import Budget
from judgebias.config.judge import WireJudge
from judgebias.pace.budget import NOTHING, Amount, Answer, Grant, Purse, Spending, Tariff
from judgebias.pace.wallet import Wallet
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot
from tests.pace.fleet import in_virtual_time

PRICE = {"input": 3.0, "output": 15.0}
JUDGE = WireJudge.model_validate(
    {"name": "j", "provider": "openai", "model": "m", "max_tokens": 100, "price": PRICE}
)
TARIFF = Tariff(judges={"j": JUDGE}, template_bytes={"j": 200})


def pair(number: int) -> list[Call]:
    texts = Pair(pair_id=str(number), question="q", answer_a="a" * 50, answer_b="b" * 50)
    digest = number.to_bytes(16, "little")
    return [
        Call(pair=texts, order=order, digest=digest, key=digest + order.encode()) for order in Order
    ]


def need(calls: int) -> Spending:
    return Spending(need=Amount(calls=calls), wish=Amount(calls=calls))


def test_what_is_reserved_is_not_given_twice_and_the_end_is_the_end() -> None:
    purse = Purse(Budget(max_calls=5), Amount(calls=1))
    assert purse.exchange("a", need(2)).answer is Answer.GRANTED
    assert purse.exchange("b", need(2)).answer is Answer.GRANTED
    assert purse.exchange("a", need(2)).answer is Answer.WAIT
    done = Amount(calls=2)
    assert purse.exchange("b", Spending(spent=done, released=done)).answer is Answer.GRANTED
    assert purse.exchange("b", need(1)).answer is Answer.WAIT
    purse.exchange("a", Spending(spent=done, released=done))
    assert (purse.spent, purse.exhausted) == (Amount(calls=5), False)
    assert purse.exchange("b", need(1)).answer is Answer.SPENT
    assert purse.exhausted


def test_a_reservation_that_was_too_large_comes_back() -> None:
    purse = Purse(Budget(max_usd=1.0))
    worst, real = Amount(calls=2, usd=0.9), Amount(calls=2, usd=0.1)
    assert purse.exchange("a", Spending(need=worst, wish=worst)).answer is Answer.GRANTED
    assert purse.exchange("b", Spending(need=worst, wish=worst)).answer is Answer.WAIT
    purse.exchange("a", Spending(spent=real, released=worst))
    assert purse.exchange("b", Spending(need=worst, wish=worst)).answer is Answer.GRANTED


def test_a_lot_is_given_only_while_it_leaves_as_much_for_the_others() -> None:
    purse = Purse(Budget(max_calls=100))
    lot = Spending(need=Amount(calls=2), wish=Amount(calls=40))
    assert purse.exchange("a", lot).amount == Amount(calls=40)
    assert purse.exchange("b", lot).amount == Amount(calls=2)


def test_what_a_dead_worker_held_counts_as_spent() -> None:
    purse = Purse(Budget(max_calls=10))
    purse.exchange("dead", need(4))
    purse.forget("dead")
    assert purse.spent == Amount(calls=4)
    assert purse.exchange("a", need(7)).answer is Answer.SPENT


def test_the_worst_case_is_a_token_a_byte_and_the_whole_output() -> None:
    call = pair(1)[0]
    worst = TARIFF.worst("j", call)
    assert worst.usd == pytest.approx(((200 + 101 + 1024) * 3.0 + 100 * 15.0) / 1e6)
    assert TARIFF.actual("j", call, 2, None) == worst.times(2)
    assert TARIFF.actual("j", call, 2, 0.5) == Amount(calls=2, usd=0.5)


class Fleet:
    """Workers that buy pairs from a server that fails, under one purse."""

    def __init__(self, budget: Budget, failing: float, seed: int, spent: Amount = NOTHING) -> None:
        self.purse = Purse(budget, spent)
        self.sent = 0
        self.usd = 0.0
        self.ended: dict[str, set[Order]] = {}
        self.exchanges = 0
        self._draw = random.Random(seed).random
        self._failing = failing

    async def _exchange(self, worker: str, spending: Spending) -> Grant:
        self.exchanges += 1
        await asyncio.sleep(0.002)
        return self.purse.exchange(worker, spending)

    async def work(self, worker: str, pairs: list[list[Call]], at_once: int, *, usd: bool) -> None:
        async def exchange(spending: Spending) -> Grant:
            return await self._exchange(worker, spending)

        wallet, left = Wallet(exchange, TARIFF, usd=usd), list(pairs)

        async def ask_pairs() -> None:
            while left:
                both = left.pop(0)
                if not await wallet.afford("j", both):
                    return
                await asyncio.gather(*(self._call(wallet, call) for call in both))

        await asyncio.gather(*(ask_pairs() for _ in range(at_once)))
        await wallet.report(idle=True)

    async def _call(self, wallet: Wallet, call: Call) -> None:
        requests, cost = 0, 0.0
        while True:
            requests, self.sent = requests + 1, self.sent + 1
            await asyncio.sleep(0.05 + 0.1 * self._draw())
            spent = 0.0005 * self._draw()
            self.usd, cost = self.usd + spent, cost + spent
            failed = self._draw() < self._failing
            if not failed or requests == 6 or not await wallet.again("j", call):
                break
        self.ended.setdefault(call.pair.pair_id, set()).add(call.order)
        kind = FailureKind.SERVER if failed else None
        slot = None if failed else Slot.TIE
        wallet.settle("j", call, Reply(slot=slot, failure=kind, attempts=requests, cost_usd=cost))


@settings(deadline=None, max_examples=40)
@given(
    most=st.integers(0, 300),
    failing=st.sampled_from([0.0, 0.2, 0.9]),
    workers=st.integers(1, 4),
    at_once=st.integers(1, 20),
    seed=st.integers(0, 1000),
)
@pytest.mark.slow
def test_no_fleet_sends_more_than_max_calls_and_no_pair_is_begun_by_halves(
    most: int, failing: float, workers: int, at_once: int, seed: int
) -> None:
    fleet = Fleet(Budget(max_calls=most + 1), failing, seed)

    async def story() -> None:
        mine = [[pair(1000 * w + n) for n in range(60)] for w in range(workers)]
        await asyncio.gather(
            *(fleet.work(f"w{w}", mine[w], at_once, usd=False) for w in range(workers))
        )

    in_virtual_time(story())
    assert fleet.sent <= most + 1
    assert all(len(orders) == 2 for orders in fleet.ended.values())
    assert fleet.purse.spent.calls == fleet.sent
    # What is left is too little for another pair, or every pair was asked.
    everything = len(fleet.ended) == 60 * workers
    assert everything or (fleet.purse.exhausted and fleet.sent >= most)


@settings(deadline=None, max_examples=40)
@given(usd=st.floats(0.001, 0.2), failing=st.sampled_from([0.0, 0.2]), seed=st.integers(0, 1000))
@pytest.mark.slow
def test_no_fleet_spends_more_than_max_usd(usd: float, failing: float, seed: int) -> None:
    fleet = Fleet(Budget(max_usd=usd), failing, seed)

    async def story() -> None:
        await asyncio.gather(
            *(
                fleet.work(f"w{w}", [pair(1000 * w + n) for n in range(60)], 8, usd=True)
                for w in range(2)
            )
        )

    in_virtual_time(story())
    assert fleet.usd <= usd
    assert fleet.purse.spent.usd == pytest.approx(fleet.usd, abs=1e-9)
    # Nothing is left that a pair and a retry, at their worst, would have fitted in.
    worst = TARIFF.worst("j", pair(0)[0]).usd
    assert len(fleet.ended) == 120 or fleet.usd >= usd - 3 * worst


def test_a_larger_budget_goes_on_from_what_is_spent() -> None:
    fleet = Fleet(Budget(max_calls=100), 0.0, 1, spent=Amount(calls=60))

    async def story() -> None:
        await fleet.work("w", [pair(n) for n in range(60)], 8, usd=False)

    in_virtual_time(story())
    assert fleet.sent == 40


@pytest.mark.slow
def test_the_purse_is_not_asked_per_call() -> None:
    fleet = Fleet(Budget(max_calls=100_000), 0.0, 1)

    async def story() -> None:
        await fleet.work("w", [pair(n) for n in range(2000)], 200, usd=False)

    in_virtual_time(story())
    assert (fleet.sent, fleet.exchanges < 60) == (4000, True)
