"""Self pairs: their names meet no other, and the drawn texts are seeded, nested and distinct."""

from __future__ import annotations

from hashlib import blake2b

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.calls import Pair
from judgebias.config import FunctionJudge, ReplayJudge, SimulatedJudge, WireJudge
from judgebias.pairs.index import INDEX
from judgebias.self_pairs import (
    ITEM_COLUMNS,
    binary,
    draw_items,
    has_tie,
    is_probed,
    item_digests,
    item_words,
    self_digests,
    self_pair,
)
from judgebias.verdicts import Order

PAIR = Pair(
    pair_id="1", question="q", answer_a="a", answer_b="b", model_a="x", model_b="y", gold="A",
    quality_a=1.0, quality_b=2.0,
)  # fmt: skip


def index(n: int, *, tasks: int = 2, shared: bool = False) -> pl.DataFrame:
    """An input of n pairs; with `shared`, A's text is the same in each two pairs of a question."""
    names = [blake2b(str(k).encode(), digest_size=16).digest() for k in range(n)]
    return pl.DataFrame(
        {
            "task": [f"t{k % tasks}" for k in range(n)],
            "digest": names,
            "question_id": [f"q{k // (2 * tasks)}" for k in range(n)],
            "text_id_a": [0 if shared else 2 * k + 2 for k in range(n)],
            "text_id_b": [2 * k + 1 for k in range(n)],
            "identical": [False] * n,
        },
        schema={name: INDEX[name] for name in ITEM_COLUMNS},
    )


def drawn(frame: pl.DataFrame, count: int, seed: int = 0) -> set[bytes]:
    return set(item_digests(draw_items(frame, count=count, seed=seed)))


@pytest.mark.parametrize(("order", "text", "model"), [(Order.AB, "a", "x"), (Order.BA, "b", "y")])
def test_the_order_says_whose_text_stands_in_both_slots(
    order: Order, text: str, model: str
) -> None:
    same = self_pair(PAIR, order)
    assert (same.answer_a, same.answer_b, same.model_a, same.model_b) == (text, text, model, model)
    assert same.quality_a == same.quality_b
    assert (same.pair_id, same.question, same.gold) == ("1", "q", None)


def test_names_are_their_own_and_lead_back_to_the_pair() -> None:
    digest = PAIR.digest()
    named = {order: self_digests(digest, order) for order in Order}
    assert len({digest, *named.values()}) == 3
    assert all(self_digests(name, order) == digest for order, name in named.items())


@settings(max_examples=30, deadline=None)
@given(n=st.integers(0, 40), count=st.integers(0, 90), more=st.integers(0, 20))
def test_a_larger_count_contains_the_smaller_and_row_order_says_nothing(
    n: int, count: int, more: int
) -> None:
    frame = index(n)
    few = drawn(frame, count)
    assert len(few) == min(count, 2 * n)
    assert few <= drawn(frame, count + more)
    assert few == drawn(frame[::-1], count)


def test_tasks_get_equally_many_as_far_as_they_have_them() -> None:
    frame = pl.concat([index(40, tasks=1), index(2, tasks=1).with_columns(task=pl.lit("small"))])
    frame = frame.with_columns(digest=pl.Series(list(index(42)["digest"])))
    counts = dict(draw_items(frame, count=30, seed=1)["task"].value_counts().iter_rows())
    assert counts == {"t0": 26, "small": 4}


def test_a_text_that_stands_in_several_pairs_of_a_question_is_one_item() -> None:
    assert len(drawn(index(8, shared=True), 100)) == 8 + 4


def test_few_items_of_an_input_full_of_repeats_are_still_as_many_as_asked_for() -> None:
    # Two thousand places of three texts in one question: the first look finds too few.
    frame = index(1000, tasks=1).with_columns(
        question_id=pl.lit("q"),
        text_id_a=pl.lit(0, pl.UInt64),
        text_id_b=pl.int_range(pl.len(), dtype=pl.UInt64).clip(0, 2),
    )
    assert len(drawn(frame, 3)) == 3
    assert drawn(frame, 1) < drawn(frame, 2) < drawn(frame, 3)


def test_pairs_with_identical_answers_give_no_item() -> None:
    frame = index(10).with_columns(identical=pl.Series([True] * 9 + [False]))
    assert len(drawn(frame, 100)) == 2


def test_seeds_draw_differently_and_one_seed_stays_what_it_was() -> None:
    frame = index(50)
    assert drawn(frame, 10, seed=0) != drawn(frame, 10, seed=1)
    # A resume after an update must find the same items.
    (first,) = drawn(frame, 1, seed=7)
    assert first.hex() == "a20d9130b6d6833f4825076f6893d20f"


def test_the_array_is_sorted_as_keys_are_searched() -> None:
    items = draw_items(index(50), count=30, seed=0)
    words = item_words(items)
    assert words.shape == (2, 30)
    assert (words[0][1:] >= words[0][:-1]).all()
    assert set(binary(words.T.tobytes())) == set(item_digests(items))


def test_records_are_shown_nothing_and_not_every_judge_can_call_a_tie() -> None:
    wire = WireJudge(name="w", provider="openai", model="m")
    judges = [
        (wire, True),
        (SimulatedJudge(name="s", provider="simulated"), False),
        (SimulatedJudge(name="s", provider="simulated", tie_width=0.1), True),
        (FunctionJudge(name="f", provider="function", call="m:f"), None),
    ]
    for judge, tie in judges:
        assert is_probed(judge)
        assert has_tie(judge) is tie
    assert not is_probed(ReplayJudge(name="r", provider="replay", path="p"))
