"""What a run may spend: reserved before anything is sent, settled at what it was.

A worker reserves the worst case of a whole pair, and of every retry. Of what it has reserved it
sends only what it has cleared: it tells so in advance, in lots of a quarter second's worth. So what
a worker that died can have sent is known from above without asking it. What nobody can know (that,
and a reply without usage) counts at its worst case, and the bound holds whatever happens, as long
as no request costs more than its worst case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from judgebias.calls import Call
from judgebias.config import JudgeConfig, WireJudge

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

    def least(self, other: Amount) -> Amount:
        """Give the stricter of two upper bounds."""
        return Amount(calls=min(self.calls, other.calls), usd=min(self.usd, other.usd))


NOTHING = Amount()


class Answer(StrEnum):
    """What a worker is told that wants to reserve."""

    GRANTED = "granted"
    WAIT = "wait"
    """Not now, but what others hold may be more than they need."""
    SPENT = "spent"
    """Nothing that could still come back would be enough."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """What one worker spent since it last said so, and what it wants to reserve."""

    spent: Amount = NOTHING
    released: Amount = NOTHING
    """Reservations that it does not hold any more, those of what was spent among them."""
    doubtful: Amount = NOTHING
    """The part of it that counts at its worst only until its call has ended."""
    landed: Amount = NOTHING
    """What had been cleared and is not on its way any more, or will not be."""
    judge: str = ""
    """Whose call the need is."""
    need: Amount = NOTHING
    retry: bool = False
    """Whether the need is one of a call that was sent before."""
    wish: Amount = NOTHING
    """At most; what comes with a need saves the next questions."""
    request: Amount = NOTHING
    """One request at its worst, by which sending is cleared."""
    lot: int = 0
    """Requests to clear, at most."""
    starved: bool = False
    """Whether a request waits to be cleared: it is never refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """The purse's answer."""

    answer: Answer
    amount: Amount = NOTHING
    """What is reserved for the worker."""
    cleared: Amount = NOTHING
    """What it may send of all its reservations before it asks again."""


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
