"""A budget that holds for all workers together, whatever fails, dies or is not known."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.calls import Call, Pair
from judgebias.config import Budget
from judgebias.config.judge import WireJudge
from judgebias.judges.hedge import Hedge
from judgebias.pace.budget import NOTHING, Amount, Answer, Grant, Spending, Tariff
from judgebias.pace.purse import CLEARED_PART, Purse
from judgebias.pace.wallet import Wallet
from judgebias.pipeline.window import Window
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot
from tests.pace.fleet import in_virtual_time

PRICE = {"input": 3.0, "output": 15.0}
JUDGE = WireJudge.model_validate(
    {"name": "j", "provider": "openai", "model": "m", "max_tokens": 100, "price": PRICE}
)
TARIFF = Tariff(judges={"j": JUDGE, "dear": JUDGE}, template_bytes={"j": 200})


def pair(number: int, question: str = "q") -> list[Call]:
    texts = Pair(pair_id=str(number), question=question, answer_a="a" * 50, answer_b="b" * 50)
    digest = number.to_bytes(16, "little")
    return [
        Call(pair=texts, order=order, digest=digest, key=digest + order.encode()) for order in Order
    ]


def need(calls: int) -> Spending:
    return Spending(judge="j", need=Amount(calls=calls), wish=Amount(calls=calls))


def test_what_is_reserved_is_not_given_twice_and_the_end_is_the_end() -> None:
    purse = Purse(Budget(max_calls=5), Amount(calls=1))
    assert purse.exchange("a", need(2)).answer is Answer.GRANTED
    assert purse.exchange("b", need(2)).answer is Answer.GRANTED
    assert purse.exchange("a", need(2)).answer is Answer.WAIT
    done = Amount(calls=2)
    assert purse.exchange("b", Spending(spent=done, released=done)).answer is Answer.GRANTED
    assert purse.exchange("b", need(1)).answer is Answer.WAIT
    purse.exchange("a", Spending(spent=done, released=done))
    assert (purse.spent, purse.exhausted) == (Amount(calls=5), set())
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


def cleared(calls: int) -> Spending:
    return Spending(request=Amount(calls=1), lot=calls, starved=True)


def test_of_what_a_dead_worker_held_only_what_it_may_have_sent_counts_as_spent() -> None:
    purse = Purse(Budget(max_calls=100))
    purse.exchange("dead", need(40))
    assert purse.exchange("dead", cleared(4)).cleared == Amount(calls=4)
    done = Amount(calls=1)
    purse.exchange("dead", Spending(spent=done, released=done, landed=done))
    purse.forget("dead")
    assert (purse.spent, purse.lost) == (Amount(calls=4), Amount(calls=3))
    assert purse.exchange("a", need(96)).answer is Answer.GRANTED


def test_a_dead_worker_cannot_have_sent_more_than_it_held() -> None:
    purse = Purse(Budget(max_calls=100))
    purse.exchange("dead", need(2))
    purse.exchange("dead", cleared(4))
    purse.forget("dead")
    assert purse.spent == Amount(calls=2)


def test_lots_of_cleared_requests_shrink_as_the_budget_ends_and_none_is_refused() -> None:
    purse = Purse(Budget(max_calls=1000), Amount(calls=800))
    purse.exchange("a", need(100))
    assert purse.exchange("a", cleared(64)).cleared == Amount(calls=16)
    purse.exchange("b", need(100))
    assert purse.exchange("b", cleared(64)).cleared == Amount(calls=8)
    # What nobody waits for is cleared only where there is plenty.
    late = Purse(Budget(max_calls=10))
    late.exchange("a", need(10))
    assert late.exchange("a", replace(cleared(4), starved=False)).cleared == Amount(calls=1)
    assert late.exchange("a", replace(cleared(4), starved=False)).cleared == Amount(calls=1)
    assert late.exchange("a", replace(cleared(4), starved=False)).cleared == Amount(calls=1)
    assert late.exchange("a", replace(cleared(4), starved=False)).cleared == NOTHING
    assert late.exchange("a", cleared(4)).cleared == Amount(calls=1)


def test_a_judge_whose_pair_does_not_fit_ends_no_cheaper_one() -> None:
    purse = Purse(Budget(max_usd=1.0), Amount(usd=0.5))
    dear = replace(need(2), judge="dear", need=Amount(calls=2, usd=0.6), wish=NOTHING)
    cheap = replace(need(2), judge="cheap", need=Amount(calls=2, usd=0.1), wish=NOTHING)
    assert purse.exchange("a", cheap).answer is Answer.GRANTED
    # Whatever comes back of the cheap pair, it is not enough for the dear one.
    assert purse.exchange("a", dear).answer is Answer.SPENT
    assert purse.exchange("b", cheap).answer is Answer.GRANTED
    assert purse.exhausted == {"dear"}


def test_a_pair_waits_while_what_is_in_doubt_may_come_back() -> None:
    purse = Purse(Budget(max_usd=1.0))
    pair, retry = Amount(calls=2, usd=0.9), Amount(calls=1, usd=0.45)
    purse.exchange("a", Spending(need=pair, wish=pair))
    purse.exchange("a", Spending(spent=pair, released=pair, doubtful=pair))
    assert purse.exchange("a", Spending(need=retry, retry=True)).answer is Answer.SPENT
    assert purse.exchange("b", Spending(judge="j", need=pair)).answer is Answer.WAIT
    cost = Amount(calls=0, usd=0.05 - 0.9)
    purse.exchange("a", Spending(spent=cost, doubtful=NOTHING - pair))
    assert purse.exchange("b", Spending(judge="j", need=pair)).answer is Answer.GRANTED


def test_the_worst_case_is_a_token_a_byte_and_the_whole_output() -> None:
    call = pair(1)[0]
    worst = TARIFF.worst("j", call)
    assert worst.usd == pytest.approx(((200 + 101 + 1024) * 3.0 + 100 * 15.0) / 1e6)
    assert TARIFF.actual("j", call, 2, None) == worst.times(2)
    assert TARIFF.actual("j", call, 2, 0.5) == Amount(calls=2, usd=0.5)


class Permit:
    """Granted to the end."""

    granted = True

    def __init__(self) -> None:
        self.closed = False

    async def changed(self) -> None:
        """Nobody waits for a change."""


class Worker:
    """One process; once it is dead, nothing of it is heard, sent or recorded any more."""

    def __init__(self, fleet: Fleet, name: str, judges: Iterable[str], at_once: int) -> None:
        self.fleet, self.name, self.dead = fleet, name, False
        self._permit = Permit()
        self.wallet = Wallet(self._exchange, TARIFF, usd=fleet.usd_is_bounded)
        self.windows = {
            judge: Window(
                judge=Judge(self, judge),
                permit=self._permit,
                size=at_once,
                on_halt=lambda _: None,
                name=judge,
                wallet=self.wallet,
            )
            for judge in judges
        }

    def die(self) -> None:
        self.dead = self._permit.closed = True
        for window in self.windows.values():
            window.cancel()

    async def lives(self) -> None:
        if self.dead:
            await asyncio.Event().wait()

    async def _exchange(self, spending: Spending) -> Grant:
        self.fleet.exchanges += 1
        await asyncio.sleep(0.001)
        await self.lives()
        grant = self.fleet.purse.exchange(self.name, spending)
        await asyncio.sleep(0.001)
        return grant

    def record(self, call: Call, _reply: Reply) -> None:
        if not self.dead:
            self.fleet.ended.setdefault(call.pair.pair_id, set()).add(call.order)

    async def work(self, pairs: Mapping[str, list[list[Call]]]) -> None:
        beats = asyncio.create_task(self._beat())
        try:
            await asyncio.gather(*(self._ask(judge, mine) for judge, mine in pairs.items()))
        finally:
            beats.cancel()
        await self.wallet.report(idle=True)

    async def _ask(self, judge: str, pairs: list[list[Call]]) -> None:
        """Ask the pairs in blocks, two of them open."""
        blocks = [list(chain(*pairs[i : i + 10])) for i in range(0, len(pairs), 10)]

        async def ask_blocks() -> None:
            while blocks and judge not in self.fleet.purse.exhausted:
                await self.windows[judge].ask(blocks.pop(0), self.record)

        await asyncio.gather(ask_blocks(), ask_blocks())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            idle = not any(window.ready for window in self.windows.values())
            await self.wallet.report(idle=idle)


class Judge:
    """Sends requests to the fleet's server, each in its turn, and tries again those that fail."""

    def __init__(self, worker: Worker, name: str) -> None:
        self._worker, self._name = worker, name
        self._turn = asyncio.Lock()
        self._hedge = Hedge(worker.fleet.hedge)

    async def ask(self, call: Call) -> Reply:
        wallet, sent = self._worker.wallet, list[float | None]()
        failed, cost = True, 0.0
        while failed and len(sent) < 6:
            if sent and not await wallet.again(self._name, call):
                break
            await self._pass(call)
            sent.append(0.0)
            failed, spent = await self._hedge.first_of(
                self._send, partial(self._send_again, call, sent)
            )
            cost += spent
        kind = FailureKind.SERVER if failed else None
        slot = None if failed else Slot.TIE
        known = None if None in sent else cost
        return Reply(slot=slot, failure=kind, attempts=len(sent), cost_usd=known)

    async def _pass(self, call: Call) -> None:
        fleet = self._worker.fleet
        if fleet.every_s:
            async with self._turn:
                await asyncio.sleep(fleet.every_s)
        await self._worker.wallet.clear(self._name, call)
        await self._worker.lives()

    async def _send(self) -> tuple[bool, float]:
        return await self._worker.fleet.answer(self._name)

    async def _send_again(self, call: Call, sent: list[float | None]) -> tuple[bool, float] | None:
        if not await self._worker.wallet.again(self._name, call):
            return None
        await self._pass(call)
        sent.append(None)
        self._worker.fleet.twice += 1
        return await self._send()

    async def aclose(self) -> None:
        """Nothing is open."""


class Fleet:
    """Workers that buy pairs from a server that fails, under one purse."""

    def __init__(
        self,
        budget: Budget,
        failing: float,
        seed: int,
        spent: Amount = NOTHING,
        *,
        every_s: float = 0.0,
        hedge: float = 0.0,
    ) -> None:
        self.purse = Purse(budget, spent)
        self.usd_is_bounded = budget.max_usd is not None
        self.every_s = every_s
        """Between two requests of a worker and judge; 0 = no limit."""
        self.hedge = hedge
        """Share of the calls that may be sent twice; then some take long."""
        self.sent, self.twice, self.usd = 0, 0, 0.0
        self.ended: dict[str, set[Order]] = {}
        self.exchanges = 0
        self._draw = random.Random(seed).random
        self._failing = failing

    async def answer(self, judge: str) -> tuple[bool, float]:
        """Take one request: whether it failed, and its price."""
        self.sent += 1
        spent = (0.05 if judge == "dear" else 0.0005) * self._draw()
        self.usd += spent
        slow = self.hedge and self._draw() < 0.1
        await asyncio.sleep(1.0 if slow else 0.05 + 0.1 * self._draw())
        return self._draw() < self._failing, spent

    async def work(
        self,
        name: str,
        pairs: Mapping[str, list[list[Call]]],
        at_once: int,
        *,
        deaths: Sequence[float] = (),
    ) -> None:
        """Let a worker ask all pairs of each judge; after each death another one does the rest."""
        for number, lived_s in enumerate([*deaths, None]):
            worker = Worker(self, f"{name}.{number}", pairs, at_once)
            task = asyncio.create_task(worker.work(pairs))
            done, _ = await asyncio.wait([task], timeout=lived_s)
            if done:
                return task.result()
            worker.die()
            task.cancel()
            await asyncio.sleep(2.0)
            self.purse.forget(worker.name)
            pairs = {judge: self._left(mine) for judge, mine in pairs.items()}
        return None

    def _left(self, pairs: list[list[Call]]) -> list[list[Call]]:
        left = [[call for call in pair if not self._has(call)] for pair in pairs]
        return [pair for pair in left if pair]

    def _has(self, call: Call) -> bool:
        return call.order in self.ended.get(call.pair.pair_id, ())


def some(n: int, first: int = 0) -> dict[str, list[list[Call]]]:
    return {"j": [pair(first + number) for number in range(n)]}


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
        await asyncio.gather(
            *(fleet.work(f"w{w}", some(60, 1000 * w), at_once) for w in range(workers))
        )

    in_virtual_time(story())
    assert fleet.sent <= most + 1
    assert all(len(orders) == 2 for orders in fleet.ended.values())
    assert fleet.purse.spent.calls == fleet.sent
    # What is left is too little for another pair, or every pair was asked.
    everything = len(fleet.ended) == 60 * workers
    assert everything or (fleet.purse.exhausted and fleet.sent >= most)


@settings(deadline=None, max_examples=60)
@given(
    most=st.integers(1, 400),
    failing=st.sampled_from([0.0, 0.2, 0.9]),
    deaths=st.lists(st.lists(st.floats(0.01, 5.0), max_size=3), min_size=1, max_size=4),
    at_once=st.integers(1, 64),
    every_s=st.sampled_from([0.0, 0.05, 1.0]),
    hedge=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 1000),
)
@pytest.mark.slow
def test_deaths_break_no_budget_and_cost_little_of_it(
    most: int,
    failing: float,
    deaths: list[list[float]],
    at_once: int,
    every_s: float,
    hedge: float,
    seed: int,
) -> None:
    fleet = Fleet(Budget(max_calls=most), failing, seed, every_s=every_s, hedge=hedge)

    async def story() -> None:
        await asyncio.gather(
            *(
                fleet.work(f"w{w}", some(60, 1000 * w), at_once, deaths=times)
                for w, times in enumerate(deaths)
            )
        )

    in_virtual_time(story())
    assert fleet.sent <= fleet.purse.spent.calls <= most
    n_deaths = sum(map(len, deaths))
    # Cleared and not sent: a part of what was left at that time, or the one that waited for it.
    unproven = fleet.purse.spent.calls - fleet.sent
    assert unproven <= sum(max(1, most // CLEARED_PART) for _ in range(n_deaths))
    everything = sum(map(len, fleet.ended.values())) == 120 * len(deaths)
    assert everything or (fleet.purse.exhausted and fleet.purse.spent.calls >= most - 1)


def test_a_death_under_a_slow_limit_costs_what_was_on_its_way() -> None:
    fleet = Fleet(Budget(max_calls=400), 0.0, 1, every_s=1.0)

    async def story() -> None:
        await fleet.work("w", some(300), 64, deaths=[30.5])

    in_virtual_time(story())
    # A hundred and more calls were reserved and waited for their turn.
    assert fleet.purse.lost.calls <= 2
    assert fleet.sent >= 398


@settings(deadline=None, max_examples=40)
@given(
    usd=st.floats(0.001, 0.2),
    failing=st.sampled_from([0.0, 0.2]),
    dies_after=st.one_of(st.none(), st.floats(0.01, 2.0)),
    hedge=st.sampled_from([0.0, 0.5]),
    seed=st.integers(0, 1000),
)
@pytest.mark.slow
def test_no_fleet_spends_more_than_max_usd(
    usd: float, failing: float, dies_after: float | None, hedge: float, seed: int
) -> None:
    fleet = Fleet(Budget(max_usd=usd), failing, seed, hedge=hedge)
    deaths = [] if dies_after is None else [dies_after]

    async def story() -> None:
        await asyncio.gather(
            *(fleet.work(f"w{w}", some(60, 1000 * w), 8, deaths=deaths) for w in range(2))
        )

    in_virtual_time(story())
    assert fleet.usd <= fleet.purse.spent.usd + 1e-9 <= usd + 2e-9
    worst = TARIFF.worst("j", pair(0)[0]).usd
    everything = sum(map(len, fleet.ended.values())) == 240
    if not deaths and not hedge:
        assert fleet.purse.spent.usd == pytest.approx(fleet.usd, abs=1e-9)
        # Nothing is left that a pair and a retry, at their worst, would have fitted in.
        assert everything or fleet.usd >= usd - 3 * worst
    assert everything or fleet.purse.exhausted == {"j"}


@pytest.mark.slow
def test_a_dear_judge_at_its_end_waits_for_no_cheap_one_and_ends_none() -> None:
    fleet = Fleet(Budget(max_usd=1.0), 0.0, 1)
    dear = [pair(number, "a long question " * 1000) for number in range(5000, 5040)]

    async def story() -> None:
        await fleet.work("w", {"dear": dear, "j": some(60)["j"]}, 8)

    in_virtual_time(story())
    assert fleet.purse.exhausted == {"dear"}
    assert sum(int(name) < 5000 for name in fleet.ended) == 60
    assert fleet.usd <= 1.0


def test_calls_that_are_sent_twice_leave_nothing_reserved() -> None:
    fleet = Fleet(Budget(max_calls=1000), 0.2, 1, hedge=0.5)

    async def story() -> None:
        await fleet.work("w", some(100), 16)

    in_virtual_time(story())
    assert fleet.twice >= 5
    assert fleet.purse.spent == Amount(calls=fleet.sent)
    left = 1000 - fleet.sent
    assert fleet.purse.exchange("other", need(left)).answer is Answer.GRANTED


def test_a_request_that_was_bought_and_not_sent_is_not_bought_twice() -> None:
    purse = Purse(Budget(max_calls=10))

    async def exchange(spending: Spending) -> Grant:
        return purse.exchange("w", spending)

    async def story() -> None:
        wallet, (one, other) = Wallet(exchange, TARIFF, usd=False), pair(1)
        assert await wallet.afford("j", [one, other])
        await wallet.clear("j", one)
        assert await wallet.again("j", one)
        assert await wallet.again("j", one)
        await wallet.clear("j", one)
        wallet.settle("j", one, Reply(slot=Slot.TIE, attempts=2))
        wallet.lose("j", other)
        await wallet.report(idle=True)

    asyncio.run(story())
    # The other call of the pair was never sent, and all that was reserved is free again.
    assert purse.spent == Amount(calls=2)
    assert purse.exchange("other", need(8)).answer is Answer.GRANTED


def test_where_every_try_fails_calls_that_wait_for_one_more_do_not_wait_for_ever() -> None:
    fleet = Fleet(Budget(max_calls=60), 1.0, 1)

    async def story() -> None:
        await fleet.work("w", some(60), 8)

    in_virtual_time(story())
    assert (fleet.sent, fleet.purse.exhausted) == (60, {"j"})


def test_a_larger_budget_goes_on_from_what_is_spent() -> None:
    fleet = Fleet(Budget(max_calls=100), 0.0, 1, spent=Amount(calls=60))

    async def story() -> None:
        await fleet.work("w", some(60), 8)

    in_virtual_time(story())
    assert fleet.sent == 40


@pytest.mark.slow
def test_the_purse_is_not_asked_per_call() -> None:
    fleet = Fleet(Budget(max_calls=100_000), 0.0, 1)

    async def story() -> None:
        await fleet.work("w", some(2000), 200)

    in_virtual_time(story())
    # Some ten times a second, however many calls that are.
    assert (fleet.sent, fleet.exchanges < 160) == (4000, True)
