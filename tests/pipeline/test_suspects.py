"""The search for the calls that no worker survives, played with workers that die of them."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.calls import Call, Pair
from judgebias.config import FunctionJudge, JudgeConfig, WireJudge
from judgebias.pipeline.blocks import Assignment, BlockQueue, TaskBlock
from judgebias.pipeline.suspects import (
    CAREFUL_AFTER,
    GROUP,
    HOPELESS,
    NARROW,
    STRIKES,
    Care,
    groups,
    lethal_reply,
)
from judgebias.replies import FailureKind
from judgebias.verdicts import Order

PAIR = Pair(pair_id="p", question="q", answer_a="a", answer_b="b")


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def calls_of(block: int, size: int) -> list[Call]:
    return [Call(pair=PAIR, order=Order.AB, key=key(block * size + i)) for i in range(size)]


class Fleet:
    """Workers in turn that ask what is missing, and die of lethal calls."""

    def __init__(self, n_blocks: int, size: int, lethal: set[bytes]) -> None:
        self.queue = BlockQueue(
            TaskBlock(judge="j", number=n, n_calls=size) for n in range(n_blocks)
        )
        self.size, self.lethal = size, lethal
        self.done: set[bytes] = set()
        self.failed: dict[bytes, int] = {}
        self.deaths = 0
        self.resent = 0

    def run(self) -> None:
        for name in map(str, count()):
            if self.queue.finished or self.queue.hopeless:
                return
            if not self.live(name):
                self.deaths += 1
                self.queue.bury(name)

    def live(self, name: str) -> bool:
        """Take what there is, as a worker does, and say whether it survives."""
        while not self.queue.finished:
            held = []
            while assignment := self.queue.take(name):
                held.append(assignment)
            for assignment in held:
                if not self.ask(name, assignment):
                    return False
                self.queue.give_back(name, assignment)
        return True

    def ask(self, name: str, assignment: Assignment) -> bool:
        missing = [
            call
            for call in calls_of(assignment.block.number, self.size)
            if call.key not in self.done | self.failed.keys()
        ]
        if assignment.care is None:
            # Nothing of this block is on disk yet when the worker dies of it.
            return not self.dies(missing) and self.keep(missing)
        assert self.queue.take(name) is None
        care = assignment.care
        self.failed.update({c.key: care.lethal[c.key] for c in missing if c.key in care.lethal})
        for group in groups([c for c in missing if c.key not in care.lethal], care):
            self.queue.announce(name, tuple(call.key for call in group))
            if self.dies(group):
                return False
            self.keep(group)
        return True

    def dies(self, calls: list[Call]) -> bool:
        return any(call.key in self.lethal for call in calls)

    def keep(self, calls: list[Call]) -> bool:
        self.done |= {call.key for call in calls}
        return True


@settings(max_examples=30)
@given(
    size=st.integers(1, 700),
    n_blocks=st.integers(1, 4),
    data=st.data(),
)
def test_lethal_calls_end_as_failures_and_all_others_are_asked(
    size: int, n_blocks: int, data: st.DataObject
) -> None:
    every = range(size * n_blocks)
    lethal = {key(n) for n in data.draw(st.sets(st.sampled_from(every), max_size=3))}
    fleet = Fleet(n_blocks, size, lethal)
    fleet.run()
    assert fleet.failed == dict.fromkeys(lethal, STRIKES)
    assert fleet.done == {key(n) for n in every} - lethal
    # To the careful stage, then by sixteenths to a single call, and that one twice.
    assert fleet.deaths <= CAREFUL_AFTER * n_blocks + len(lethal) * (2 + STRIKES)


def test_a_judge_that_kills_with_every_call_is_given_up() -> None:
    fleet = Fleet(1, 2000, {key(n) for n in range(2000)})
    fleet.run()
    assert len(fleet.failed) < HOPELESS
    assert fleet.queue.hopeless == {
        "j": "the worker process did not survive asking one of its calls, 5 times"
    }
    fleet.queue.drop("j")
    assert fleet.queue.finished
    assert not fleet.queue.hopeless


def test_a_judge_that_kills_when_it_is_opened_is_given_up() -> None:
    queue = BlockQueue([TaskBlock(judge="j", number=0, n_calls=2)])
    for death in range(CAREFUL_AFTER + HOPELESS):
        assert not queue.hopeless
        assert queue.take(f"w{death}") is not None
        queue.bury(f"w{death}")
    assert queue.hopeless == {"j": "the worker process did not survive opening it, 5 times"}


def test_the_careful_worker_has_nothing_beside_the_block_and_others_go_on() -> None:
    queue = BlockQueue(TaskBlock(judge="j", number=n, n_calls=2) for n in range(3))
    for death in range(CAREFUL_AFTER):
        while queue.take(f"w{death}"):
            pass
        queue.bury(f"w{death}")
    careful = queue.take("nurse")
    assert careful is not None
    assert careful.care == Care()
    assert queue.take("nurse") is None
    # The other accused blocks wait for the nurse rather than accuse another worker.
    assert queue.take("other") is None
    queue.give_back("nurse", careful)
    assert queue.take("nurse") is not None


def test_suspects_come_first_and_in_sixteenths() -> None:
    calls = calls_of(0, 600)
    suspects = frozenset(call.key for call in calls[100:356])
    sizes = [len(group) for group in groups(calls, Care(suspects=suspects))]
    assert sizes == [GROUP // NARROW] * NARROW + [256, 88]
    first = next(iter(groups(calls, Care(suspects=suspects))))
    assert {call.key for call in first} <= suspects


@pytest.mark.parametrize(
    ("judge", "kind"),
    [
        (FunctionJudge(name="f", provider="function", call="m:f"), FailureKind.FUNCTION_ERROR),
        (WireJudge(name="o", provider="openai", model="m"), FailureKind.CONNECTION),
    ],
)
def test_a_lethal_call_is_a_failure_with_its_deaths_counted(
    judge: JudgeConfig, kind: FailureKind
) -> None:
    reply = lethal_reply(judge, 2)
    assert (reply.failure, reply.attempts) == (kind, 2)
    assert "died 2 times" in (reply.message or "")
