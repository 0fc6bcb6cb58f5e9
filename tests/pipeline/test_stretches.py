"""Stretches: every item once, in order within a stretch, and no worker idle while one is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.pipeline.stretches import Stretches


def test_a_worker_keeps_to_its_stretch_and_the_next_worker_begins_another() -> None:
    waiting = Stretches([[1, 2], [3, 4]])
    assert [waiting.take(worker) for worker in "vwvw"] == [1, 3, 2, 4]
    assert not waiting


def test_who_finds_no_stretch_takes_the_second_half_of_the_longest() -> None:
    waiting = Stretches([[1, 2, 3, 4, 5], [6]])
    assert [waiting.take("v"), waiting.take("w")] == [1, 6]
    assert [waiting.take(worker) for worker in "wwvv"] == [4, 5, 2, 3]
    with pytest.raises(IndexError):
        waiting.take("w")


def test_what_came_back_goes_first_and_a_dead_worker_holds_no_stretch() -> None:
    waiting = Stretches([[1, 2, 3], [4]])
    assert [waiting.take("dead"), waiting.take("w")] == [1, 4]
    waiting.release("dead")
    waiting.put_first(1)
    assert [waiting.take("w") for _ in range(3)] == [1, 2, 3]


@given(
    sizes=st.lists(st.integers(1, 6), max_size=6),
    workers=st.lists(st.sampled_from("uvw"), min_size=40, max_size=40),
)
def test_every_item_is_given_once(sizes: list[int], workers: list[str]) -> None:
    items = iter(range(sum(sizes)))
    waiting = Stretches([[next(items) for _ in range(size)] for size in sizes])
    taken = [waiting.take(worker) for worker in workers if waiting]
    assert sorted(taken) == list(range(sum(sizes)))
