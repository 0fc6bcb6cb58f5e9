"""The run's owner, on a clock that only waiting moves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from judgebias.config import Budget
from judgebias.pace.budget import Amount, Answer, Spending
from judgebias.pace.purse import Purse
from judgebias.pipeline.blocks import OPEN, TaskBlock
from judgebias.pipeline.owner import BEAT_S, LEASE_S, LOST_S, Beat, Demand, RunOwner


class World:
    """An owner and the time it lives in."""

    def __init__(
        self, windows: Mapping[str, int] | None = None, purse: Purse | None = None, **judges: int
    ) -> None:
        self.now = 100.0
        self.each_wait: Callable[[], Awaitable[object]] | None = None
        blocks = [
            TaskBlock(judge=judge, number=number, n_calls=2)
            for judge, n in judges.items()
            for number in range(n)
        ]
        self.owner = RunOwner(
            blocks, None, windows, purse, clock=lambda: self.now, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        assert seconds > 0
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + BEAT_S)
            if self.each_wait is not None:
                await self.each_wait()
        await asyncio.sleep(0)

    async def drive(self, seconds: float, *workers: str) -> None:
        """Let time pass with the driver and these workers alive."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + BEAT_S)
            await self.owner.driver_beat()
            for worker in workers:
                await self.owner.beat(worker, {})


def test_a_lease_lasts_only_as_long_as_the_drivers_own_beat_is_fresh() -> None:
    async def story() -> None:
        world = World(j=1)
        await world.owner.register("w", "actor")
        leases = []
        for _ in range(5):
            leases.append((await world.owner.beat("w", {})).lease_s)
            world.now += 0.75
        assert leases == [2.0, 1.25, 0.5, 0.0, 0.0]
        await world.owner.driver_beat()
        assert (await world.owner.beat("w", {})).lease_s == LEASE_S

    asyncio.run(story())


def test_nobody_sends_without_having_registered() -> None:
    beat = asyncio.run(World(j=1).owner.beat("stranger", {"j": {"verdicts": 9.0}}))
    assert (beat.lease_s, beat.workers) == (0.0, 1)


def test_ranks_divide_the_windows() -> None:
    async def story() -> list[Beat]:
        world = World(j=1)
        for name in ("b", "a", "c"):
            await world.owner.register(name, f"actor of {name}")
        return [await world.owner.beat(name, {}) for name in ("a", "b", "c")]

    beats = asyncio.run(story())
    # By who came first: a share of a window never falls to nothing for one that has blocks open.
    assert [(beat.rank, beat.workers) for beat in beats] == [(1, 3), (0, 3), (2, 3)]


def test_a_new_process_of_an_actor_waits_for_the_lease_of_the_old() -> None:
    async def story() -> None:
        world = World(j=2)
        await world.owner.register("old", "actor")
        held = await world.owner.take("old")
        assert held is not None
        await world.owner.beat("old", {"j": {"verdicts": 5.0, "in_flight": 3.0}})
        sent_until = world.now + LEASE_S
        world.now += 0.5
        await world.owner.register("new", "actor")
        assert world.now >= sent_until
        again = await world.owner.take("new")
        assert again is not None
        assert (again.block, again.again) == (held.block, ("old",))
        progress = await world.owner.driver_beat()
        assert (progress.workers, progress.counters) == (1, {"j": {"verdicts": 5.0}})

    asyncio.run(story())


def test_the_beats_of_an_orphan_renew_no_lease_once_it_is_replaced() -> None:
    async def story() -> None:
        world = World(j=1)
        await world.owner.register("orphan", "actor")
        allowed_until = world.now + (await world.owner.beat("orphan", {})).lease_s

        async def orphan_beats() -> None:
            nonlocal allowed_until
            await world.owner.driver_beat()
            lease = (await world.owner.beat("orphan", {})).lease_s
            allowed_until = max(allowed_until, world.now + lease)

        world.each_wait = orphan_beats
        await world.owner.register("heir", "actor")
        assert world.now >= allowed_until

    asyncio.run(story())


def test_a_process_that_is_lost_while_its_heir_waits_is_buried_once() -> None:
    async def story() -> None:
        world = World(j=1)
        await world.owner.register("old", "actor")
        await world.owner.beat("old", {})

        async def lose() -> None:
            world.now += LOST_S
            await world.owner.driver_beat()

        world.each_wait = lose
        await world.owner.register("new", "actor")
        assert (await world.owner.driver_beat()).workers == 1

    asyncio.run(story())


def test_a_worker_that_falls_silent_is_buried_and_its_blocks_go_to_another() -> None:
    async def story() -> None:
        world = World(j=1)
        await world.owner.register("silent", "one")
        await world.owner.register("alive", "two")
        held = await world.owner.take("silent")
        await world.drive(LOST_S, "alive")
        assert (await world.owner.driver_beat()).workers == 2
        await world.drive(BEAT_S, "alive")
        assert (await world.owner.driver_beat()).workers == 1
        again = await world.owner.take("alive")
        assert held is not None
        assert again is not None
        assert again.block == held.block
        assert (await world.owner.beat("silent", {})).lease_s == 0
        # What it still says about the block changes nothing.
        await world.owner.close_block("silent", held)
        await world.owner.close_block("alive", again)
        assert await world.owner.take("alive") is None

    asyncio.run(story())


def test_take_waits_for_a_block_that_a_dead_worker_may_give_back() -> None:
    async def story() -> None:
        world = World(j=1)
        await world.owner.register("one", "1")
        await world.owner.register("two", "2")
        first = await world.owner.take("one")
        waiting = asyncio.create_task(world.owner.take("two"))
        await asyncio.sleep(0)
        assert not waiting.done()
        await world.owner.register("heir", "1")
        second = await waiting
        assert first is not None
        assert second is not None
        assert second.block == first.block

    asyncio.run(story())


def test_a_halted_judge_is_dropped_and_the_others_go_on() -> None:
    async def story() -> None:
        world = World(bad=5, good=1)
        await world.owner.register("w", "actor")
        first = await world.owner.take("w")
        assert first is not None
        assert first.block.judge == "bad"
        await world.owner.halt("bad", "the key was refused")
        await world.owner.halt("bad", "a later reason")
        assert (await world.owner.beat("w", {})).halted == {"bad"}
        second = await world.owner.take("w")
        assert second is not None
        assert second.block.judge == "good"
        for assignment in (first, second):
            await world.owner.close_block("w", assignment)
        assert await world.owner.take("w") is None
        assert (await world.owner.driver_beat()).halted == {"bad": "the key was refused"}

    asyncio.run(story())


def test_a_form_is_settled_by_one_worker_and_the_others_wait_for_it() -> None:
    async def story() -> None:
        world = World(j=3)
        for name in ("one", "two"):
            await world.owner.register(name, f"actor of {name}")
        assert await world.owner.form("one", "j") is None
        waiting = asyncio.create_task(world.owner.form("two", "j"))
        await asyncio.sleep(0)
        assert not waiting.done()
        await world.owner.settle("j", {"verdict": "tool"})
        await world.owner.settle("j", {"verdict": "text"})
        assert await waiting == {"verdict": "tool"}
        assert (await world.owner.driver_beat()).forms == {"j": {"verdict": "tool"}}

    asyncio.run(story())


@pytest.mark.parametrize("how", ["gave up", "died", "halted", "stopped"])
def test_nobody_waits_for_a_form_that_will_not_come(how: str) -> None:
    async def story() -> None:
        world = World(j=3)
        for name in ("one", "two"):
            await world.owner.register(name, f"actor of {name}")
        assert await world.owner.form("one", "j") is None
        waiting = asyncio.create_task(world.owner.form("two", "j"))
        await asyncio.sleep(0)
        if how == "gave up":
            await world.owner.settle("j", None)
        elif how == "died":
            await world.drive(LOST_S + 1, "two")
        elif how == "halted":
            await world.owner.halt("j", "the key was refused")
        else:
            await world.owner.stop()
        assert await waiting is None

    asyncio.run(story())


@pytest.mark.parametrize("how", ["stop", "fail"])
def test_stopping_hands_out_nothing_more_and_tells_the_workers(how: str) -> None:
    async def story() -> None:
        world = World(j=OPEN + 2)
        await world.owner.register("w", "actor")
        for _ in range(OPEN):
            assert await world.owner.take("w") is not None
        waiting = asyncio.create_task(world.owner.take("w"))
        await asyncio.sleep(0)
        if how == "stop":
            await world.owner.stop()
        else:
            await world.owner.fail("the disk is full")
            await world.owner.fail("and more")
        assert await waiting is None
        assert (await world.owner.beat("w", {})).stopping
        fault = (await world.owner.driver_beat()).fault
        assert fault == ("the disk is full" if how == "fail" else "")

    asyncio.run(story())


def test_totals_add_the_living_and_keep_what_the_dead_counted() -> None:
    async def story() -> dict[str, dict[str, float]]:
        world = World(j=1)
        for worker, actor in (("a", "1"), ("b", "2"), ("c", "1")):
            await world.owner.register(worker, actor)
            counters = {"j": {"verdicts": 2.0, "timeout": 1.0, "in_flight": 4.0, "cost_usd": 0.5}}
            await world.owner.beat(worker, counters)
        await world.owner.beat("b", {"j": {"verdicts": 3.0, "in_flight": 0.0}, "k": {"empty": 1.0}})
        return (await world.owner.driver_beat()).counters

    # a is dead, b was heard twice, c took the place of a.
    assert asyncio.run(story()) == {
        "j": {"verdicts": 7.0, "timeout": 2.0, "in_flight": 4.0, "cost_usd": 1.0},
        "k": {"empty": 1.0},
    }


def test_a_concluded_judge_gets_no_more_blocks_and_the_others_go_on() -> None:
    async def story() -> None:
        world = World(enough=9, other=2)
        await world.owner.register("w", "actor")
        held = await world.owner.take("w")
        assert held is not None
        assert held.block.judge == "enough"
        await world.owner.conclude("enough")
        beat = await world.owner.beat("w", {})
        assert beat.halted == {"enough"}
        # It is no failure of the judge: nothing says that it was halted.
        assert (await world.owner.driver_beat()).halted == {}
        assert await world.owner.form("w", "enough") is None
        rest = [await world.owner.take("w") for _ in range(2)]
        assert [a.block.judge for a in rest if a] == ["other", "other"]
        for assignment in (held, *rest):
            assert assignment is not None
            await world.owner.close_block("w", assignment)
        assert await world.owner.take("w") is None

    asyncio.run(story())


def test_a_judge_with_one_block_has_its_whole_window_in_one_worker() -> None:
    async def story() -> None:
        world = World({"j": 40, "k": 10}, j=1, k=9)
        for name in ("a", "b"):
            await world.owner.register(name, f"actor of {name}")
        calls = Demand(busy=0, waiting=4096)
        one = await world.owner.beat("a", {}, {"j": calls, "k": calls})
        other = await world.owner.beat("b", {}, {"k": calls})
        assert (one.windows, other.windows) == ({"j": 40, "k": 10}, {"k": 0})
        busy = Demand(busy=10, waiting=4000)
        assert (await world.owner.beat("a", {}, {"k": busy})).windows == {"k": 5}

    asyncio.run(story())


def test_a_learned_window_follows_what_the_workers_hear_of_it() -> None:
    async def story() -> list[int]:
        world = World({"j": 64}, j=1)
        await world.owner.register("a", "actor")
        asked = [Demand(busy=0, waiting=4096, window=size) for size in (0, 128, 20)]
        return [(await world.owner.beat("a", {}, {"j": one})).windows["j"] for one in asked]

    assert asyncio.run(story()) == [64, 128, 20]


def test_the_part_of_a_dead_worker_is_free_within_two_seconds() -> None:
    async def story() -> None:
        world = World({"j": 40}, j=1)
        for name in ("a", "b"):
            await world.owner.register(name, f"actor of {name}")
        calls = {"j": Demand(busy=0, waiting=4096)}
        await world.owner.beat("a", {}, calls)
        assert (await world.owner.beat("b", {}, calls)).windows == {"j": 0}
        world.now += LEASE_S + 0.01
        assert (await world.owner.beat("b", {}, calls)).windows == {"j": 40}

    asyncio.run(story())


def test_a_budget_that_is_used_up_hands_out_no_more_blocks() -> None:
    async def story() -> None:
        world = World({"j": 40}, Purse(Budget(max_calls=3)), j=5)
        await world.owner.register("a", "actor")
        held = await world.owner.take("a")
        assert held is not None
        pair = Spending(judge="j", need=Amount(calls=2), wish=Amount(calls=2))
        assert (await world.owner.reserve("a", pair)).answer is Answer.GRANTED
        assert (await world.owner.reserve("a", pair)).answer is Answer.WAIT
        done = Amount(calls=2)
        await world.owner.reserve("a", Spending(spent=done, released=done))
        assert not (await world.owner.driver_beat()).budget_spent
        assert (await world.owner.reserve("a", pair)).answer is Answer.SPENT
        assert (await world.owner.driver_beat()).budget_spent
        assert (await world.owner.reserve("stranger", pair)).answer is Answer.SPENT
        await world.owner.close_block("a", held)
        assert await world.owner.take("a") is None

    asyncio.run(story())
