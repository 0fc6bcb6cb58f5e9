"""A window that is divided by what each worker can use."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from judgebias.pace.shares import Shares


def ask(shares: Shares, worker: str, busy: int, waiting: int, now: float = 0.0) -> int:
    return shares.ask(worker, busy=busy, waiting=waiting, now=now, until=now + 2)


def test_one_worker_with_all_the_calls_has_the_whole_window() -> None:
    shares = Shares(100)
    assert ask(shares, "idle", 0, 0) == 0
    assert ask(shares, "busy", 0, 5000) == 100
    assert ask(shares, "idle", 0, 0) == 0


def test_a_second_worker_gets_its_half_as_the_first_ones_calls_land() -> None:
    shares = Shares(100)
    ask(shares, "a", 0, 5000)
    assert ask(shares, "b", 0, 5000) == 0
    assert ask(shares, "a", 100, 4900) == 50
    assert ask(shares, "b", 0, 5000) == 0
    assert ask(shares, "a", 70, 4900) == 50
    assert ask(shares, "b", 0, 5000) == 30
    assert ask(shares, "a", 50, 4900) == 50
    assert ask(shares, "b", 30, 4000) == 50


def test_a_small_want_is_filled_first_and_the_rest_goes_to_the_others() -> None:
    shares = Shares(100)
    ask(shares, "small", 0, 10)
    ask(shares, "large", 0, 500)
    assert (ask(shares, "small", 10, 0), ask(shares, "large", 90, 400)) == (10, 90)


def test_a_dead_workers_part_comes_back_when_its_lease_lapses() -> None:
    shares = Shares(100)
    ask(shares, "dead", 0, 500)
    assert ask(shares, "alive", 0, 500, now=1.9) == 0
    assert ask(shares, "alive", 0, 500, now=2.1) == 100
    shares.drop("alive")
    assert ask(shares, "next", 0, 500, now=2.2) == 100


@given(
    total=st.integers(1, 50),
    turns=st.lists(
        st.tuples(st.sampled_from("abcd"), st.floats(0, 1), st.integers(0, 60)), max_size=200
    ),
)
def test_calls_under_way_never_exceed_the_window(
    total: int, turns: list[tuple[str, float, int]]
) -> None:
    shares, busy = Shares(total), dict.fromkeys("abcd", 0)
    sizes = dict.fromkeys("abcd", 0)
    for worker, landed, waiting in turns:
        busy[worker] -= int(busy[worker] * landed)
        sizes[worker] = ask(shares, worker, busy[worker], waiting)
        started = max(0, min(waiting, sizes[worker] - busy[worker]))
        busy[worker] += started
        assert sum(busy.values()) <= total


@given(total=st.integers(1, 50), wants=st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_no_part_is_left_empty_where_somebody_has_calls(total: int, wants: list[int]) -> None:
    shares = Shares(total)
    for _ in range(3):
        sizes = [ask(shares, f"w{n}", 0, want) for n, want in enumerate(wants)]
    assert sum(sizes) == min(total, sum(wants))
