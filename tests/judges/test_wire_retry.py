"""What is tried again, what makes everybody wait, and what stops a judge."""

from __future__ import annotations

import asyncio

import pytest

from judgebias.judges.gate import SharedPause
from judgebias.judges.outcome import (
    Answered,
    Halt,
    Outcome,
    RateLimited,
    Refused,
    Transient,
    Unusable,
)
from judgebias.judges.retry import Policy, Tries, pause_s, persist, worth_another
from judgebias.judges.streak import FIRST_CALLS, IN_A_ROW, OUTAGE_S, Streak
from judgebias.replies import FailureKind
from judgebias.verdicts import Slot

POLICY = Policy(max_attempts=4, unusable_tries=2, limited_tries=10)
LARGER = Policy(max_attempts=4, larger_budget=9000)
DONE = Answered(slot=Slot.TIE)
FAILED = Transient(kind=FailureKind.SERVER, message="")
LIMITED = RateLimited(after_s=2.0, message="")
INVALID = Unusable(kind=FailureKind.INVALID, message="")
CUT = Refused(kind=FailureKind.TRUNCATED, message="")
REFUSED = Refused(kind=FailureKind.REFUSED, message="")


@pytest.mark.parametrize(
    ("outcome", "tries", "policy", "expected"),
    [
        (DONE, Tries(counted=1), POLICY, False),
        (REFUSED, Tries(counted=1), LARGER, False),
        (Halt(reason="", do=""), Tries(counted=1), POLICY, False),
        (FAILED, Tries(counted=3), POLICY, True),
        (FAILED, Tries(counted=4), POLICY, False),
        (INVALID, Tries(counted=1, unusable=1), POLICY, True),
        (INVALID, Tries(counted=2, unusable=2), POLICY, False),
        (INVALID, Tries(counted=4, unusable=1), POLICY, False),
        (LIMITED, Tries(counted=4, limited=9), POLICY, True),
        (LIMITED, Tries(limited=10), POLICY, False),
        (CUT, Tries(counted=1), POLICY, False),
        (CUT, Tries(counted=1), LARGER, True),
        (CUT, Tries(counted=2, enlarged=True), LARGER, False),
    ],
)
def test_what_is_worth_another_try(
    outcome: Outcome, tries: Tries, policy: Policy, expected: bool
) -> None:
    assert worth_another(outcome, tries, policy) is expected


@pytest.mark.parametrize(("counted", "longest"), [(1, 0.5), (2, 1.0), (4, 4.0), (20, 30.0)])
def test_pauses_grow_to_a_cap_with_full_jitter(counted: int, longest: float) -> None:
    tries = Tries(counted=counted)
    assert pause_s(FAILED, tries, POLICY, lambda: 1.0) == longest
    assert pause_s(FAILED, tries, POLICY, lambda: 0.0) == 0.0
    assert pause_s(LIMITED, tries, POLICY, lambda: 1.0) == 0.0
    assert pause_s(CUT, tries, POLICY, lambda: 1.0) == 0.0


def run_through(outcomes: list[Outcome], policy: Policy) -> tuple[Outcome, Tries, list[float]]:
    """Let a call meet these outcomes, the first one bare."""
    tries, slept = Tries(), list[float]()
    coming = iter(outcomes)

    async def attempt() -> Outcome:
        outcome = next(coming)
        tries.add(outcome)
        return outcome

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def run() -> Outcome:
        return await persist(await attempt(), attempt, tries, policy, sleep)

    return asyncio.run(run()), tries, slept


def test_rate_limits_do_not_use_up_attempts() -> None:
    outcome, tries, _ = run_through([LIMITED] * 8 + [FAILED] * 3 + [DONE], POLICY)
    assert outcome == DONE
    assert (tries.limited, tries.counted) == (8, 4)


def test_the_last_failure_is_what_is_told() -> None:
    other = Transient(kind=FailureKind.TIMEOUT, message="")
    outcome, _, slept = run_through([FAILED, FAILED, INVALID, other], POLICY)
    assert outcome == other
    assert len(slept) == 3


def test_the_larger_budget_is_used_once() -> None:
    outcome, tries, _ = run_through([CUT, CUT], LARGER)
    assert outcome == CUT
    assert tries.enlarged


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def gate(clock: Clock, draw: float = 0.0) -> SharedPause:
    return SharedPause(clock=clock, sleep=clock.sleep, draw=lambda: draw)


def test_p_01_everybody_waits_as_long_as_told() -> None:
    clock = Clock()
    shared = gate(clock)
    asyncio.run(shared.admit(1))
    assert clock.slept == []
    shared.rate_limited(2.0)
    shared.rate_limited(0.5)
    asyncio.run(shared.admit(1))
    assert clock.slept == [2.0]
    asyncio.run(shared.admit(1))
    assert clock.slept == [2.0]


def test_after_a_pause_the_start_is_spread() -> None:
    clock = Clock()
    shared = gate(clock, draw=1.0)
    shared.rate_limited(2.0)
    asyncio.run(shared.admit(1))
    assert clock.slept == [3.0]


def test_p_02_without_a_delay_pauses_grow_and_a_burst_is_one_strike() -> None:
    clock = Clock()
    shared = gate(clock, draw=1.0)
    waited: list[float] = []
    for _ in range(3):
        for _ in range(50):
            shared.rate_limited(None)
        before = clock.now
        asyncio.run(shared.admit(1))
        waited.append(clock.now - before)
    assert waited == [0.75, 1.5, 3.0]
    shared.observed({}, 10)
    shared.rate_limited(None)
    before = clock.now
    asyncio.run(shared.admit(1))
    assert clock.now - before == 0.75


def test_p_07_the_same_refusal_of_every_first_call_is_the_configuration() -> None:
    streak = Streak()
    found = [
        streak.call_failed(bytes([n]), FailureKind.BAD_REQUEST, f"no parameter x (request {n})")
        for n in range(FIRST_CALLS)
    ]
    assert found == [False] * (FIRST_CALLS - 1) + [True]


def test_p_07_the_same_call_again_or_other_words_are_not() -> None:
    streak = Streak()
    for _ in range(2 * FIRST_CALLS):
        assert not streak.call_failed(b"one", FailureKind.BAD_REQUEST, "no")
    for n in range(FIRST_CALLS):
        assert not streak.call_failed(bytes([n]), FailureKind.BAD_REQUEST, "abcdefgh"[n])


def test_p_07_after_a_success_refusals_are_the_calls_own() -> None:
    streak = Streak()
    streak.success()
    for n in range(10 * FIRST_CALLS):
        assert not streak.call_failed(bytes([n]), FailureKind.BAD_REQUEST, "no")


def test_p_10_an_outage_stops_the_judge_also_after_successes() -> None:
    streak = Streak()
    streak.success()
    failed = [streak.call_failed(bytes([n]), FailureKind.TIMEOUT, "late") for n in range(IN_A_ROW)]
    assert failed == [False] * (IN_A_ROW - 1) + [True]
    streak.success()
    assert not streak.call_failed(b"x", FailureKind.TIMEOUT, "late")


def test_p_10_an_outage_that_lasts_is_not_waited_for_for_ever() -> None:
    now = [0.0]
    streak = Streak(lambda: now[0])
    for _ in range(400):
        streak.request_failed()
        now[0] += 2
    assert streak.outlasted
    streak.request_replied()
    assert not streak.outlasted
    now[0] += 10 * OUTAGE_S
    for _ in range(IN_A_ROW):
        streak.request_failed()
    assert not streak.outlasted


def test_replies_without_a_verdict_never_stop_a_judge() -> None:
    streak = Streak()
    for n in range(3 * IN_A_ROW):
        assert not streak.call_failed(n.to_bytes(2, "little"), FailureKind.INVALID, "no verdict")
