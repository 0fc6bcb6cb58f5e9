from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.calls import KEY_BYTES, Call, Pair, both_orders, call_key, call_keys, call_mask
from judgebias.verdicts import Order

PAIR = Pair(pair_id="1", question="Why?", answer_a="one", answer_b="two")
NAMING = ("task", "pair_id", "question", "answer_a", "answer_b", "reference")
# Few characters, so that texts collide by chance; a NUL, so that no separator helps.
TEXT = st.text(alphabet="ab\0é", max_size=3)
CONTENT = st.fixed_dictionaries(dict.fromkeys(NAMING[:-1], TEXT) | {"reference": st.none() | TEXT})


@pytest.mark.parametrize("field", NAMING)
def test_every_field_that_is_judged_changes_the_digest(field: str) -> None:
    assert replace(PAIR, **{field: "else"}).digest() != PAIR.digest()


@pytest.mark.parametrize(
    "field", ["model_a", "model_b", "gold", "cluster", "quality_a", "quality_b"]
)
def test_what_no_judge_reads_does_not_change_the_digest(field: str) -> None:
    value = 1.0 if field.startswith("quality") else "else"
    assert replace(PAIR, **{field: value}).digest() == PAIR.digest()


@given(one=CONTENT, other=CONTENT)
def test_the_digest_is_equal_exactly_when_the_content_is(one: dict, other: dict) -> None:
    same = Pair(**one).digest() == Pair(**other).digest()
    assert same == (one == other)


@pytest.mark.parametrize(("left", "right"), list(pairwise(NAMING[:5])))
def test_a_character_moved_to_the_next_field_changes_the_digest(left: str, right: str) -> None:
    before = replace(PAIR, **{left: "xy", right: "z"})
    after = replace(PAIR, **{left: "x", right: "yz"})
    assert before.digest() != after.digest()


def test_no_reference_is_not_an_empty_one() -> None:
    digests = {replace(PAIR, reference=text).digest() for text in (None, "", "\0", "\1")}
    assert len(digests) == 4


def test_a_call_shows_the_answers_in_its_order() -> None:
    assert [(Call(pair=PAIR, order=o).first, Call(pair=PAIR, order=o).second) for o in Order] == [
        ("one", "two"),
        ("two", "one"),
    ]


def test_a_key_per_pair_order_repeat_and_judge() -> None:
    pairs = [replace(PAIR, pair_id=str(number)) for number in range(20)]
    exchanged = [replace(p, answer_a=p.answer_b, answer_b=p.answer_a) for p in pairs]
    same = [replace(p, answer_b=p.answer_a) for p in pairs]
    digests = [pair.digest() for pair in (*pairs, *exchanged, *same)]
    judges = (b"one judge", b"other judge", b"")
    masks = [call_mask(*names) for names in product(judges, Order, range(1, 13))]
    keys = {call_key(digest, mask) for digest, mask in product(digests, masks)}
    assert len(keys) == 60 * 3 * 2 * 12
    assert {len(key) for key in keys} == {KEY_BYTES}


def test_the_numbers_of_repeats_do_not_run_into_the_fingerprint() -> None:
    assert call_mask(b"1", Order.AB, 1) != call_mask(b"", Order.AB, 11)
    assert call_mask(b"\x001", Order.AB, 1) != call_mask(b"1", Order.AB, 1)


@given(st.lists(st.binary(min_size=16, max_size=16), max_size=20), st.binary(max_size=16))
def test_the_keys_of_a_block_are_the_keys_of_its_pairs(digests: list[bytes], judge: bytes) -> None:
    mask = call_mask(judge, Order.BA, 3)
    assert call_keys(b"".join(digests), mask) == b"".join(call_key(d, mask) for d in digests)


def test_keys_are_the_same_on_every_machine_and_in_every_version() -> None:
    # A journal that was paid for is found again by these bytes.
    assert PAIR.digest().hex() == "af2359e204fb98c6ec72d886d6835e78"
    assert call_mask(b"judge", Order.AB, 1).hex() == "af896b4ceb3ab1c2bbb9022e61e019cb"


@pytest.mark.parametrize("repeats", [1, 3])
def test_both_orders_of_a_repeat_come_together(repeats: int) -> None:
    asked = list(both_orders(repeats))
    assert asked == [(order, n) for n in range(1, repeats + 1) for order in (Order.AB, Order.BA)]
