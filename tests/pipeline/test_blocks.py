from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.pipeline.blocks import OPEN, Assignment, BlockQueue, TaskBlock


def blocks(**judges: int) -> list[TaskBlock]:
    return [
        TaskBlock(judge=judge, number=number, n_calls=2)
        for judge, n in judges.items()
        for number in range(n)
    ]


def take(queue: BlockQueue, worker: str) -> Assignment:
    assignment = queue.take(worker)
    assert assignment is not None
    return assignment


def test_a_worker_holds_a_bounded_number_of_blocks_of_a_judge() -> None:
    queue = BlockQueue(blocks(slow=10, fast=1))
    held = [take(queue, "w") for _ in range(OPEN + 1)]
    assert Counter(a.block.judge for a in held) == {"slow": OPEN, "fast": 1}
    assert queue.take("w") is None
    assert take(queue, "other").block.judge == "slow"
    queue.give_back("w", held[0])
    assert take(queue, "w").block.judge == "slow"


def test_the_judge_with_the_fewest_open_blocks_is_next() -> None:
    queue = BlockQueue(blocks(one=6, two=6))
    assert [take(queue, "w").block.judge for _ in range(4)] == ["one", "two", "one", "two"]
    assert [take(queue, "v").block.judge for _ in range(2)] == ["one", "two"]


def test_a_slow_judge_never_starves_a_fast_one() -> None:
    queue = BlockQueue(blocks(slow=40, fast=40))
    fast_open = []
    # The slow judge never ends a block while this lasts; turns are as `run` gives them.
    held = [take(queue, "w") for _ in range(4)]
    for _ in range(37):
        fast = [a for a in held if a.block.judge == "fast"]
        fast_open.append(len(fast))
        queue.give_back("w", fast[0])
        held.remove(fast[0])
        held.append(take(queue, "w"))
    assert min(fast_open) == 2


def test_the_blocks_of_a_dead_worker_come_back_first_and_say_who_had_them() -> None:
    queue = BlockQueue(blocks(j=3))
    lost = take(queue, "dead")
    assert queue.bury("dead") == 1
    again = take(queue, "heir")
    assert (again.block, again.again) == (lost.block, ("dead",))
    assert queue.bury("heir") == 1
    assert take(queue, "third").again == ("dead", "heir")
    assert take(queue, "third").again == ()
    assert queue.bury("nobody") == 0


def test_a_dropped_judge_is_handed_out_no_more_not_even_by_a_burial() -> None:
    queue = BlockQueue(blocks(bad=3, good=2))
    held = take(queue, "w")
    assert held.block.judge == "bad"
    queue.drop("bad")
    queue.drop("unknown")
    assert queue.bury("w") == 1
    assert [take(queue, "v").block.judge for _ in range(2)] == ["good", "good"]
    assert queue.take("v") is None


def test_finished_means_none_waits_and_none_is_open() -> None:
    queue = BlockQueue(blocks(j=1))
    assert not queue.finished
    held = take(queue, "w")
    assert not queue.finished
    queue.give_back("w", held)
    assert queue.finished
    assert queue.take("w") is None
    assert BlockQueue([]).finished


def test_only_the_holder_can_give_a_block_back() -> None:
    queue = BlockQueue(blocks(j=1))
    held = take(queue, "w")
    with pytest.raises(ValueError):
        queue.give_back("v", held)


MOVES = st.lists(
    st.tuples(st.sampled_from(["take", "close", "bury"]), st.integers(0, 2)), max_size=80
)


@settings(max_examples=150)
@given(st.integers(0, 9), st.integers(0, 9), MOVES)
def test_every_block_is_in_one_place_whatever_happens(
    n_one: int, n_two: int, moves: list[tuple[str, int]]
) -> None:
    given_out = blocks(one=n_one, two=n_two)
    queue, done = BlockQueue(given_out), []
    held: dict[str, list[Assignment]] = {"w0": [], "w1": [], "w2": []}
    for move, number in moves:
        worker = f"w{number}"
        if move == "take" and (assignment := queue.take(worker)):
            held[worker].append(assignment)
        elif move == "close" and held[worker]:
            done.append(held[worker].pop())
            queue.give_back(worker, done[-1])
        elif move == "bury":
            assert queue.bury(worker) == len(held[worker])
            held[worker].clear()
        opened = [(w, a.block.judge) for w, mine in held.items() for a in mine]
        assert max(Counter(opened).values(), default=0) <= OPEN
    for worker, mine in held.items():
        queue.bury(worker)
        mine.clear()
    while assignment := queue.take("last"):
        queue.give_back("last", assignment)
        done.append(assignment)
    assert queue.finished
    ended = Counter((a.block.judge, a.block.number) for a in done)
    assert ended == Counter((b.judge, b.number) for b in given_out)
