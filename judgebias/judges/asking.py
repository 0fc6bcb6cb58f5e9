"""One call on its way: what has come of it so far, and the reply it ends as."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgebias.calls import Call
from judgebias.config import Price
from judgebias.judges.outcome import Answered, Halt, Outcome, RateLimited
from judgebias.judges.retry import Tries
from judgebias.judges.secrets import Secret
from judgebias.judges.soft import Probabilities
from judgebias.judges.usage import cost_usd, total
from judgebias.replies import UNKNOWN_USAGE, FailureKind, Reply, Usage


@dataclass(kw_only=True, slots=True)
class Asking:
    """A call, its tries, and what the last of them brought."""

    call: Call
    tries: Tries = field(default_factory=Tries)
    """Counted anew for each form that is tried."""
    requests: int = 0
    """All that were sent."""
    usages: list[Usage] = field(default_factory=list[Usage])
    unknown_usage: bool = False
    """A request may have been billed without saying so."""
    raw: str | None = None
    model: str | None = None
    request_id: str | None = None
    latency_ms: float | None = None
    soft: Probabilities | None = None
    last: Outcome | None = None
    """What the last request came to."""
    unaffordable: bool = False
    """No more requests of it can be bought."""

    def reply(self, outcome: Outcome, key: Secret, price: Price | None) -> Reply:
        """End the call; the key is taken out of whatever a server has echoed."""
        usage = total([*self.usages, *([UNKNOWN_USAGE] if self.unknown_usage else [])])
        soft = self.soft or Probabilities()
        return Reply(
            slot=outcome.slot if isinstance(outcome, Answered) else None,
            failure=_kind(outcome),
            message=_message(outcome, key),
            raw=None if self.raw is None else key.conceal(self.raw),
            p_first=soft.first,
            p_second=soft.second,
            p_tie=soft.tie,
            usage=usage,
            cost_usd=cost_usd(usage, price),
            attempts=self.requests,
            latency_ms=self.latency_ms,
            model=self.model,
            request_id=self.request_id,
        )


def _kind(outcome: Outcome) -> FailureKind | None:
    match outcome:
        case Answered():
            return None
        case RateLimited():
            return FailureKind.RATE_LIMITED
        case Halt():
            return FailureKind.SERVER
        case _:
            return outcome.kind


def _message(outcome: Outcome, key: Secret) -> str | None:
    match outcome:
        case Answered():
            return None
        case Halt():
            return key.redact(outcome.reason)
        case _:
            return key.redact(outcome.message)
