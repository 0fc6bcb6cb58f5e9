"""What a run may spend: one purse for the cluster, reserved from before anything is sent.

A worker reserves the worst case of a whole pair, and of every retry, and settles at what it was.
What nobody can know (a reply without usage, a worker that died) counts at its worst case. So the
bound holds whatever happens, as long as no request costs more than its worst case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from judgebias.calls import Call
from judgebias.config import Budget, JudgeConfig, WireJudge

FRAME_TOKENS = 1024
"""For what a server adds to a prompt: roles, schemas, tool descriptions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """Requests, and USD."""

    calls: int = 0
    usd: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        return Amount(calls=self.calls + other.calls, usd=self.usd + other.usd)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(calls=self.calls - other.calls, usd=self.usd - other.usd)

    def times(self, factor: int) -> Amount:
        """Give so many times the amount."""
        return Amount(calls=self.calls * factor, usd=self.usd * factor)


NOTHING = Amount()


class Answer(StrEnum):
    """What a worker is told that wants to reserve."""

    GRANTED = "granted"
    WAIT = "wait"
    """Not now, but what others hold may be more than they need."""
    SPENT = "spent"
    """Nobody holds anything that could still come back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """What one worker spent since it last said so, and what it wants to reserve."""

    spent: Amount = NOTHING
    released: Amount = NOTHING
    """Reservations that it does not hold any more, those of what was spent among them."""
    doubtful: Amount = NOTHING
    """The part of it that counts at its worst only until its call has ended."""
    need: Amount = NOTHING
    retry: bool = False
    """Whether the need is one of a call that was sent before."""
    wish: Amount = NOTHING
    """At most; what comes with a need saves the next questions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """The purse's answer."""

    answer: Answer
    amount: Amount = NOTHING


class Purse:
    """The budget of a run, in its owner."""

    def __init__(self, budget: Budget, spent: Amount = NOTHING) -> None:
        self._budget = budget
        self.spent = spent
        """Of all starts of the command; what cannot be known at its worst case."""
        self._held: dict[str, Amount] = {}
        self._doubtful: dict[str, Amount] = {}
        self.exhausted = False
        """Whether somebody needed more than there is."""

    def exchange(self, worker: str, spending: Spending) -> Grant:
        """Settle what a worker spent, and reserve what it needs where that is left."""
        self.spent += spending.spent
        held = self._held.get(worker, NOTHING) - spending.released
        self._held[worker] = held
        self._doubtful[worker] = self._doubtful.get(worker, NOTHING) + spending.doubtful
        if spending.need == NOTHING:
            return Grant(answer=Answer.GRANTED)
        if self.exhausted:
            return Grant(answer=Answer.SPENT)
        for wanted in self._offers(spending):
            if self._fits(wanted):
                self._held[worker] = held + wanted
                return Grant(answer=Answer.GRANTED, amount=wanted)
        if any(other.calls > 0 for other in self._held.values()):
            return Grant(answer=Answer.WAIT)
        if any(other.calls > 0 for other in self._doubtful.values()):
            # Nothing is on its way: only calls that want another try are open, and end without it.
            return Grant(answer=Answer.SPENT if spending.retry else Answer.WAIT)
        self.exhausted = True
        return Grant(answer=Answer.SPENT)

    def forget(self, worker: str) -> None:
        """Count what a dead worker held as spent: it may have sent all of it."""
        self.spent += self._held.pop(worker, NOTHING)
        self._doubtful.pop(worker, None)

    def _offers(self, spending: Spending) -> tuple[Amount, ...]:
        """The wish where it leaves as much again for everybody else, or else the bare need."""
        generous = spending.wish.times(max(2, len(self._held)))
        return (spending.wish, spending.need) if self._fits(generous) else (spending.need,)

    def _fits(self, wanted: Amount) -> bool:
        total = self.spent + wanted
        for held in self._held.values():
            total += held
        calls, usd = self._budget.max_calls, self._budget.max_usd
        # A sum of many prices is not exact to the last bit.
        return (not calls or total.calls <= calls) and (usd is None or total.usd <= usd + 1e-9)


def worst_usd(judge: JudgeConfig, text_bytes: int) -> float:
    """Price one request at its worst: a token per byte, and the whole output budget.

    No tokenizer makes more than one token of a byte. A judge without a price costs nothing here:
    whoever sets `max_usd` cannot have one that costs something.
    """
    if judge.price is None or not isinstance(judge, WireJudge):
        return 0.0
    output = max(judge.max_tokens, judge.max_tokens_retry)
    tokens = text_bytes + FRAME_TOKENS
    return (tokens * judge.price.input + output * judge.price.output) / 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class Tariff:
    """What a call of each judge costs at its worst."""

    judges: Mapping[str, JudgeConfig]
    template_bytes: Mapping[str, int]
    """Judge -> bytes of its template and rubric."""

    def worst(self, judge: str, call: Call) -> Amount:
        """Price one request of a call."""
        config = self.judges[judge]
        if config.price is None:
            return Amount(calls=1)
        pair = call.pair
        texts = (pair.question, pair.answer_a, pair.answer_b, pair.reference or "")
        size = sum(len(text.encode()) for text in texts) + self.template_bytes.get(judge, 0)
        return Amount(calls=1, usd=worst_usd(config, size))

    def actual(self, judge: str, call: Call, requests: int, cost_usd: float | None) -> Amount:
        """Price a call that ended; unknown is the worst case."""
        if not isinstance(self.judges[judge], WireJudge):
            return Amount(calls=requests)
        if cost_usd is None:
            return self.worst(judge, call).times(requests)
        return Amount(calls=requests, usd=cost_usd)
