from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.calls import Call, Pair, both_orders
from judgebias.config import SimulatedJudge
from judgebias.judges.simulated import Simulated, hashed_quality, slot_of
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot, flip, settle, unswap


def judge(**fields: object) -> Simulated:
    plain = {"name": "j", "provider": "simulated", "quality": 0, "noise": 0}
    return Simulated(SimulatedJudge.model_validate({**plain, **fields}))


def pair(number: int = 0, **fields: object) -> Pair:
    texts = {"answer_a": f"answer {number}", "answer_b": f"another answer {number}"}
    return replace(Pair(pair_id=str(number), question="?", **texts), **fields)


def exchanged(one: Pair) -> Pair:
    return replace(
        one,
        answer_a=one.answer_b,
        answer_b=one.answer_a,
        model_a=one.model_b,
        model_b=one.model_a,
        quality_a=one.quality_b,
        quality_b=one.quality_a,
    )


def replies(asked: Simulated, calls: Iterable[Call]) -> list[Reply]:
    async def ask() -> list[Reply]:
        return [await asked.ask(call) for call in calls]

    return asyncio.run(ask())


def calls_of(*pairs: Pair, repeats: int = 1) -> list[Call]:
    return [
        Call(pair=p, order=order, repeat=n, key=p.digest() + order.encode() + bytes([n]))
        for p in pairs
        for order, n in both_orders(repeats)
    ]


def slots(asked: Simulated, *pairs: Pair, repeats: int = 1) -> list[Slot | None]:
    return [reply.slot for reply in replies(asked, calls_of(*pairs, repeats=repeats))]


NOISY = {"quality": 1, "noise": 1, "length_weight": 0.5, "offset": 0.3, "tie_width": 0.4}
TEXTS = st.text(alphabet="abc ", max_size=4)
PAIRS = st.builds(
    Pair,
    pair_id=st.just("1"),
    question=st.just("?"),
    answer_a=TEXTS,
    answer_b=TEXTS,
    model_a=st.sampled_from([None, "own-1", "else"]),
    model_b=st.sampled_from([None, "own-1", "else"]),
    quality_a=st.none() | st.floats(-2, 2),
    quality_b=st.none() | st.floats(-2, 2),
)


@given(PAIRS, st.integers(0, 5))
def test_exchanging_the_answers_in_the_input_changes_no_position_figure(
    one: Pair, seed: int
) -> None:
    asked = judge(**NOISY, seed=seed, family="own", family_bonus=1)
    (ab, ba), (other_ab, other_ba) = slots(asked, one), slots(asked, exchanged(one))
    # What was asked first in one input is asked second in the other.
    assert (other_ab, other_ba) == (ba, ab)
    for order, slot in ((Order.AB, ab), (Order.BA, ba)):
        assert slot is not None
        won, after = unswap(slot, order), unswap(slot, flip(order))
        assert {"A": "B", "B": "A", "tie": "tie"}[won] == after


def test_a_verdict_depends_on_nothing_but_the_call() -> None:
    calls = calls_of(*(pair(i) for i in range(50)), repeats=2)
    forwards = replies(judge(**NOISY), calls)
    backwards = replies(judge(**NOISY), reversed(calls))
    assert [r.slot for r in forwards] == [r.slot for r in reversed(backwards)]


@pytest.mark.parametrize("change", [{"seed": 1}, {"name": "k"}])
def test_another_seed_or_name_draws_anew(change: dict[str, object]) -> None:
    pairs = [pair(i) for i in range(100)]
    assert slots(judge(noise=1), *pairs) != slots(judge(noise=1, **change), *pairs)


def test_repeats_draw_anew_and_without_noise_they_agree() -> None:
    asked = slots(judge(noise=1), *(pair(i) for i in range(100)), repeats=2)
    assert asked[0::4] != asked[2::4]
    calm = slots(judge(quality=1), *(pair(i) for i in range(100)), repeats=2)
    assert calm[0::4] == calm[2::4]


def test_a_judge_that_leans_wholly_to_the_first_slot() -> None:
    assert set(slots(judge(offset=1), pair(), pair(1))) == {Slot.FIRST}
    assert set(slots(judge(offset=-1), pair(), pair(1))) == {Slot.SECOND}


def test_a_judge_by_length_takes_the_longer_answer_in_both_orders() -> None:
    assert slots(judge(length_weight=1), pair(answer_a="aaa", answer_b="b")) == ["first", "second"]
    assert slots(judge(length_weight=-1), pair(answer_a="aaa", answer_b="b")) == ["second", "first"]


def test_length_counts_by_the_logarithm_of_characters_and_one() -> None:
    one = pair(answer_a="é" * 7, answer_b="")
    edge = math.log(8)
    assert slots(judge(length_weight=1, tie_width=edge * 1.001), one) == ["tie", "tie"]
    assert slots(judge(length_weight=1, tie_width=edge * 0.999), one) == ["first", "second"]


def test_the_columns_of_quality_decide_where_they_are_given() -> None:
    one = pair(quality_a=0.5, quality_b=0.7)
    assert slots(judge(quality=2, tie_width=0.39), one) == ["second", "first"]
    assert slots(judge(quality=2, tie_width=0.41), one) == ["tie", "tie"]
    assert slots(judge(quality=-2, tie_width=0.39), one) == ["first", "second"]


def test_the_text_decides_the_quality_that_is_not_given() -> None:
    edge = abs(hashed_quality("x"))
    one = pair(answer_a="x", quality_b=0.0)
    assert slots(judge(quality=1, tie_width=edge + 1e-9), one) == ["tie", "tie"]
    assert "tie" not in slots(judge(quality=1, tie_width=edge - 1e-9), one)


def test_hashed_qualities_are_standard_normal() -> None:
    drawn = [hashed_quality(str(i)) for i in range(4000)]
    # Five standard errors.
    assert abs(mean(drawn)) < 5 / math.sqrt(4000)
    assert abs(stdev(drawn) - 1) < 5 / math.sqrt(2 * 4000)


def test_the_noise_is_a_standard_logistic_draw() -> None:
    n = 4000
    pairs = [pair(i) for i in range(n // 2)]
    for offset in (-1.0, 0.0, 2.0):
        first = Counter(slots(judge(noise=1, offset=offset), *pairs))[Slot.FIRST]
        expected = 1 / (1 + math.exp(-offset))
        assert abs(first / n - expected) < 5 * math.sqrt(expected * (1 - expected) / n)


@pytest.mark.parametrize(
    ("family", "expected"), [("own", ["first", "second"]), ("", ["tie", "tie"]), ("z", ["tie"] * 2)]
)
def test_the_bonus_goes_to_the_answer_of_the_own_family(family: str, expected: list[str]) -> None:
    one = pair(model_a="own-2", model_b="else-1")
    assert slots(judge(family=family, family_bonus=1, tie_width=0.5), one) == expected
    unnamed = pair(model_a="own-2", model_b="own-1")
    assert slots(judge(family=family, family_bonus=1, tie_width=0.5), unnamed) == ["tie", "tie"]


def test_long_answers_have_an_offset_of_their_own() -> None:
    asked = judge(offset=1, offset_long=-1, long_chars=10)
    assert slots(asked, pair(answer_a="a" * 5, answer_b="b" * 5)) == ["first", "first"]
    assert slots(asked, pair(answer_a="a" * 5, answer_b="b" * 6)) == ["second", "second"]


@pytest.mark.parametrize(
    ("x", "width", "slot"),
    [
        (0.0, 0.0, "second"),
        (0.1, 0.0, "first"),
        (0.1, 0.1, "first"),
        (-0.1, 0.1, "second"),
        (0.09, 0.1, "tie"),
        (-0.09, 0.1, "tie"),
    ],
)
def test_a_score_below_the_width_is_a_tie(x: float, width: float, slot: str) -> None:
    assert slot_of(x, width) == slot


def test_planted_failures_are_failures_and_draw_by_the_try() -> None:
    asked = judge(offset=1, failure_rate=0.3)
    calls = calls_of(*(pair(i) for i in range(1000)))
    later = [replace(call, tried=1) for call in calls]
    tries = [[r.failure for r in replies(asked, tries)] for tries in (calls, later)]
    for kinds in tries:
        assert set(kinds) == {None, FailureKind.SERVER}
        # Five standard errors of 2,000 draws.
        assert abs(kinds.count(FailureKind.SERVER) / 2000 - 0.3) < 5 * math.sqrt(0.21 / 2000)
    assert tries[0] != tries[1]
    both = sum(a is b is FailureKind.SERVER for a, b in zip(*tries, strict=True))
    assert abs(both / 2000 - 0.09) < 5 * math.sqrt(0.09 * 0.91 / 2000)


@pytest.mark.parametrize(("rate", "kinds"), [(0.0, {None}), (1.0, {FailureKind.SERVER})])
def test_never_and_always(rate: float, kinds: set[FailureKind | None]) -> None:
    asked = judge(offset=1, failure_rate=rate)
    assert {r.failure for r in replies(asked, calls_of(*(pair(i) for i in range(50))))} == kinds


def test_failures_leave_the_other_verdicts_as_they_are() -> None:
    pairs = [pair(i) for i in range(200)]
    sure, flaky = slots(judge(**NOISY), *pairs), slots(judge(**NOISY, failure_rate=0.3), *pairs)
    assert {(a, b) for a, b in zip(sure, flaky, strict=True) if a != b and b is not None} == set()


def test_the_latency_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    (reply,) = replies(judge(latency_s=0.25), calls_of(pair())[:1])
    assert (waited, reply.latency_ms) == ([0.25], 250.0)


def test_an_honest_judge_is_consistent() -> None:
    asked = slots(judge(quality=1), *(pair(i) for i in range(100)))
    cells = {settle(ab, ba) for ab, ba in zip(asked[::2], asked[1::2], strict=True) if ab and ba}
    assert cells == {"agreed_a", "agreed_b"}
