"""The window of one judge in one worker, with a judge and a permit that the test holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.calls import Call, Pair
from judgebias.errors import JudgeHalted
from judgebias.judges.gate import NotSent
from judgebias.pace.budget import Answer, Grant, Spending, Tariff
from judgebias.pace.wallet import Wallet
from judgebias.pipeline.window import Window
from judgebias.replies import Reply
from judgebias.verdicts import Order, Slot

TARIFF = Tariff(judges={}, template_bytes={})
REPLY = Reply(slot=Slot.FIRST)


def calls(n: int, name: str = "p") -> list[Call]:
    pairs = [Pair(pair_id=f"{name}{i}", question="", answer_a="", answer_b="") for i in range(n)]
    return [Call(pair=pair, order=Order.AB) for pair in pairs]


class HeldJudge:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.open: dict[str, asyncio.Future[Reply]] = {}
        self.asked: list[str] = []
        self.most = 0

    async def ask(self, call: Call) -> Reply:
        name = call.pair.pair_id + ("" if call.order is Order.AB else "-ba")
        self.asked.append(name)
        self.open[name] = asyncio.get_running_loop().create_future()
        self.most = max(self.most, len(self.open))
        try:
            return await self.open[name]
        finally:
            del self.open[name]

    async def aclose(self) -> None:
        """Nothing is open."""

    async def answer(self, *names: str, error: Exception | None = None) -> None:
        for name in names or list(self.open):
            if error is None:
                self.open[name].set_result(REPLY)
            else:
                self.open[name].set_exception(error)
        await settle()


class HeldPermit:
    """Granted, withdrawn and closed by the test."""

    def __init__(self, *, granted: bool = True) -> None:
        self.granted = granted
        self.closed = False
        self._news = asyncio.Event()

    async def changed(self) -> None:
        await self._news.wait()

    async def set(self, *, granted: bool = True, closed: bool = False) -> None:
        self.granted, self.closed = granted, closed
        self._news.set()
        self._news = asyncio.Event()
        await settle()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


class Bench:
    """A window with all its parts, and what became of the calls."""

    def __init__(self, size: int, *, granted: bool = True) -> None:
        self.judge, self.permit = HeldJudge(), HeldPermit(granted=granted)
        self.halts: list[JudgeHalted] = []
        self.recorded: list[str] = []
        self.window = Window(
            judge=self.judge, permit=self.permit, size=size, on_halt=self.halts.append
        )

    def record(self, call: Call, reply: Reply) -> None:
        assert reply is REPLY
        self.recorded.append(call.pair.pair_id)

    async def start(self, wanted: Sequence[Call]) -> asyncio.Task[int]:
        task = asyncio.create_task(self.window.ask(wanted, self.record))
        await settle()
        return task

    async def answer_all(self, *blocks: asyncio.Task[int]) -> None:
        while not all(block.done() for block in blocks):
            await self.judge.answer()


def run(story: Callable[[], Coroutine[object, object, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(bounded())


def test_no_calls_need_no_window() -> None:
    async def story() -> None:
        assert await Bench(0).window.ask([], lambda *_: None) == 0

    run(story)


def test_blocks_share_the_window_and_the_tail_of_one_leaves_no_gap() -> None:
    async def story() -> None:
        bench = Bench(4)
        one, two = await bench.start(calls(6, "a")), await bench.start(calls(6, "b"))
        await bench.judge.answer()
        assert bench.judge.asked == ["a0", "a1", "a2", "a3", "a4", "a5", "b0", "b1"]
        assert bench.window.in_flight == 4
        await bench.answer_all(one, two)
        assert (one.result(), two.result(), bench.judge.most) == (0, 0, 4)
        assert sorted(bench.recorded) == sorted(bench.judge.asked)
        assert len(bench.recorded) == 12
        assert bench.window.in_flight == 0

    run(story)


def test_a_block_ends_with_its_last_call_and_waits_for_no_other() -> None:
    async def story() -> None:
        bench = Bench(4)
        one, two = await bench.start(calls(2, "a")), await bench.start(calls(2, "b"))
        await bench.judge.answer("a0", "a1")
        assert one.done()
        assert not two.done()
        await bench.answer_all(two)

    run(story)


@pytest.mark.parametrize(("before", "after"), [(2, 5), (5, 2), (0, 3), (3, 0)])
def test_a_new_size_holds_for_every_call_that_is_sent_after_it(before: int, after: int) -> None:
    async def story() -> None:
        bench = Bench(before)
        block = await bench.start(calls(20))
        assert bench.window.in_flight == before
        bench.window.resize(after)
        await settle()
        assert bench.window.in_flight == max(before, after)
        while bench.window.in_flight > after:
            await bench.judge.answer(next(iter(bench.judge.open)))
        await bench.judge.answer()
        assert bench.window.in_flight == after
        bench.window.resize(4)
        await settle()
        await bench.answer_all(block)
        assert block.result() == 0

    run(story)


def test_a_window_that_shrank_while_it_waited_for_its_permit_sends_no_more_than_its_size() -> None:
    async def story() -> None:
        bench = Bench(8, granted=False)
        block = await bench.start(calls(20))
        bench.window.resize(3)
        await bench.permit.set(granted=True)
        assert bench.window.in_flight == 3
        await bench.answer_all(block)
        assert bench.judge.most == 3

    run(story)


def test_nothing_is_sent_without_the_permit() -> None:
    async def story() -> None:
        bench = Bench(2, granted=False)
        block = await bench.start(calls(5))
        assert bench.judge.asked == []
        await bench.permit.set(granted=True)
        assert bench.window.in_flight == 2
        await bench.permit.set(granted=False)
        await bench.judge.answer()
        assert (bench.window.in_flight, len(bench.recorded)) == (0, 2)
        await bench.permit.set(granted=True)
        await bench.answer_all(block)
        assert block.result() == 0

    run(story)


def test_a_closed_permit_lands_what_is_in_flight_and_leaves_the_rest_pending() -> None:
    async def story() -> None:
        bench = Bench(3)
        one, two = await bench.start(calls(5, "a")), await bench.start(calls(4, "b"))
        await bench.permit.set(closed=True)
        assert not one.done()
        await bench.judge.answer()
        assert (await one, await two) == (2, 4)
        assert bench.recorded == ["a0", "a1", "a2"]
        assert await bench.window.ask(calls(3), bench.record) == 3

    run(story)


@pytest.mark.parametrize("end", ["close", "halt", "cancel"])
def test_a_window_of_size_zero_ends_as_well(end: str) -> None:
    async def story() -> None:
        bench = Bench(0)
        block = await bench.start(calls(5))
        if end == "close":
            await bench.permit.set(closed=True)
        elif end == "halt":
            bench.window.halted = True
        else:
            bench.window.cancel()
        bench.window.resize(0)
        assert await block == 5
        assert bench.judge.asked == []

    run(story)


def test_a_halted_judge_is_asked_nothing_more_and_says_so_once() -> None:
    async def story() -> None:
        bench = Bench(3)
        one, two = await bench.start(calls(5, "a")), await bench.start(calls(4, "b"))
        reason = JudgeHalted("the key was refused")
        await bench.judge.answer("a0", "a2", error=reason)
        assert await two == 4
        await bench.judge.answer("a1")
        # The reply that was under way is kept.
        assert (await one, bench.recorded) == (4, ["a1"])
        assert bench.halts == [reason]
        assert await bench.window.ask(calls(2), bench.record) == 2
        assert len(bench.judge.asked) == 3

    run(story)


def test_giving_up_leaves_everything_pending_and_loses_no_reply() -> None:
    async def story() -> None:
        bench = Bench(2)
        block = await bench.start(calls(6))
        await bench.judge.answer("p0")
        bench.window.cancel()
        assert await block == 5
        await settle()
        assert (bench.recorded, bench.window.in_flight) == (["p0"], 0)
        assert bench.judge.asked == ["p0", "p1", "p2"]

    run(story)


def test_a_fault_reaches_every_block_that_waits() -> None:
    async def story() -> None:
        bench = Bench(2)
        blocks = [await bench.start(calls(3, name)) for name in "abc"]
        await bench.judge.answer("a0", error=RuntimeError("a fault of ours"))
        for block in blocks:
            with pytest.raises(RuntimeError, match="a fault of ours"):
                await block
        # The window is not used up: a later block is asked.
        later = await bench.start(calls(2, "d"))
        await bench.answer_all(later)
        assert later.result() == 0

    run(story)


def test_a_reply_that_cannot_be_recorded_is_a_fault_and_not_an_answer() -> None:
    async def story() -> None:
        bench = Bench(2)

        def full(_call: Call, _reply: Reply) -> None:
            raise OSError(28, "No space left on device")

        task = asyncio.create_task(bench.window.ask(calls(3), full))
        await settle()
        await bench.judge.answer("p0")
        with pytest.raises(OSError, match="No space"):
            await task

    run(story)


def test_a_judge_that_answers_at_once_lets_others_run() -> None:
    class Quick(HeldJudge):
        async def ask(self, call: Call) -> Reply:  # noqa: ARG002
            return REPLY

    async def story() -> None:
        bench = Bench(1)
        bench.window.judge = Quick()
        block = asyncio.create_task(bench.window.ask(calls(1000), bench.record))
        ticks = 0
        while not block.done():
            await asyncio.sleep(0)
            ticks += 1
        assert ticks >= 10

    run(story)


MOVES = st.lists(
    st.sampled_from(["answer", "ask", "size 0", "size 1", "size 4", "grant", "withdraw"]),
    max_size=30,
)


@settings(max_examples=60)
@given(MOVES, st.sampled_from(["close", "cancel", "halt", "finish"]))
def test_every_call_ends_once_recorded_or_pending(moves: list[str], end: str) -> None:
    async def story() -> None:
        bench = Bench(2)
        blocks, sizes = [await bench.start(calls(5, "b0-"))], [2]
        for move in moves:
            before = bench.window.in_flight
            match move.split():
                case ["answer"]:
                    for name in list(bench.judge.open)[:1]:
                        await bench.judge.answer(name)
                case ["ask"]:
                    blocks.append(await bench.start(calls(5, f"b{len(blocks)}-")))
                case ["size", size]:
                    sizes.append(int(size))
                    bench.window.resize(int(size))
                    await settle()
                case _:
                    await bench.permit.set(granted=move == "grant")
            assert bench.window.in_flight <= max(before, sizes[-1])
        if end == "cancel":
            bench.window.cancel()
            await settle()
        elif end == "finish":
            bench.window.resize(3)
            await bench.permit.set()
        else:
            bench.window.halted = end == "halt"
            await bench.permit.set(closed=end == "close")
            bench.window.resize(sizes[-1])
        await bench.answer_all(*blocks)
        pending = sum(block.result() for block in blocks)
        assert len(bench.recorded) + pending == 5 * len(blocks)
        assert len(set(bench.recorded)) == len(bench.recorded)
        assert end != "finish" or pending == 0
        assert bench.window.in_flight == 0

    run(story)


class Lots:
    """A wallet that has a number of requests and no more."""

    def __init__(self, requests: int) -> None:
        self.left = requests
        self.log: list[str] = []

    async def exchange(self, spending: Spending) -> Grant:
        self.left -= spending.need.calls
        self.left += spending.released.calls - spending.spent.calls
        if self.left < 0:
            self.left += spending.need.calls
            return Grant(answer=Answer.SPENT)
        return Grant(answer=Answer.GRANTED, amount=spending.need)


def pairs(n: int) -> list[Call]:
    made = [Pair(pair_id=f"p{i}", question="", answer_a="", answer_b="") for i in range(n)]
    return [
        Call(pair=pair, order=order, digest=f"{i:016}".encode(), key=f"{i}{order}".encode())
        for i, pair in enumerate(made)
        for order in Order
    ]


def test_a_budget_ends_a_block_between_pairs_and_the_rest_stays_pending() -> None:
    async def story() -> None:
        bench, lots = Bench(3), Lots(7)
        bench.window.wallet = Wallet(lots.exchange, TARIFF, usd=False)
        block = await bench.start(pairs(10))
        await bench.answer_all(block)
        # Three pairs of seven requests; nobody asks half of a fourth one.
        assert (block.result(), bench.judge.asked) == (
            14,
            ["p0", "p0-ba", "p1", "p1-ba", "p2", "p2-ba"],
        )
        assert bench.window.waiting == 0

    run(story)


def test_calls_under_a_budget_are_reserved_as_the_window_has_room_for_them() -> None:
    async def story() -> None:
        bench, lots = Bench(2), Lots(1000)
        bench.window.wallet = Wallet(lots.exchange, TARIFF, usd=False)
        block = await bench.start(pairs(100))
        assert lots.left >= 1000 - 6
        assert bench.window.waiting + bench.window.in_flight == 200
        bench.permit.closed = True
        await bench.judge.answer()
        await settle()
        assert block.result() == 198
        await bench.window.wallet.report(idle=True)
        assert lots.left == 998

    run(story)


def test_nothing_is_reserved_without_a_part_of_the_window_nor_a_part_held_without_money() -> None:
    async def story() -> None:
        bench, lots = Bench(0), Lots(4)
        bench.window.wallet = wallet = Wallet(lots.exchange, TARIFF, usd=False)
        block = await bench.start(pairs(3))
        assert (lots.left, bench.window.ready) == (4, 6)
        wallet.poor = True
        assert (bench.window.ready, bench.window.waiting) == (0, 6)
        bench.window.resize(2)
        await settle()
        await bench.answer_all(block)
        assert (block.result(), len(bench.recorded)) == (2, 4)

    run(story)


def test_a_call_that_is_not_sent_stays_pending_and_halts_nobody() -> None:
    async def story() -> None:
        bench = Bench(2)
        block = await bench.start(calls(2))
        await bench.judge.answer("p0", error=NotSent())
        await bench.judge.answer("p1")
        assert (block.result(), bench.recorded, bench.halts) == (1, ["p1"], [])

    run(story)


def test_a_window_that_is_too_small_for_its_calls_says_so() -> None:
    async def story() -> None:
        bench, said = Bench(0), list[int]()
        bench.window.on_short = lambda: said.append(1)
        block = await bench.start(calls(2))
        assert said == [1]
        bench.window.resize(2)
        await settle()
        await bench.answer_all(block)

    run(story)
