"""What comes back from a call: a slot, or a failure with a kind; never both, never neither."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from judgebias.verdicts import Slot


class FailureKind(StrEnum):
    """Why a call ended without a verdict; the list is closed."""

    RECORDED = "recorded"
    """Replay: the record says that the judge gave no verdict."""
    NOT_RECORDED = "not_recorded"
    """Replay: there is no record of this call."""
    TRUNCATED = "truncated"
    """The reply was cut off, or thinking used up the budget."""
    REFUSED = "refused"
    """The model declined to judge."""
    FILTERED = "filtered"
    """A content filter stopped the prompt or the reply."""
    EMPTY = "empty"
    """The reply ended naturally and said nothing."""
    INVALID = "invalid"
    """A reply from which no verdict can be read by the rules."""
    CONTEXT_LENGTH = "context_length"
    """The prompt does not fit the model."""
    BAD_REQUEST = "bad_request"
    """The server refuses this one request."""
    SERVER = "server"
    """The server failed (5xx, an error object in a 200)."""
    TIMEOUT = "timeout"
    """No whole reply within the deadline; it may have been billed."""
    CONNECTION = "connection"
    """The connection failed or broke off."""
    RATE_LIMITED = "rate_limited"
    """Still rate limited when the attempts were used up."""
    FUNCTION_ERROR = "function_error"
    """The user's own judge function raised or answered something else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Tokens of a call, all attempts added; None where the server did not say."""

    input_tokens: int | None = None
    """All input tokens, cached ones included, whatever the provider calls them."""
    output_tokens: int | None = None
    """All billed output tokens, thinking included."""
    cached_tokens: int | None = None
    """Input tokens read from a cache."""
    reasoning_tokens: int | None = None
    """Output tokens spent on thinking."""


UNKNOWN_USAGE = Usage()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """One call's end, as the journal keeps it."""

    slot: Slot | None = None
    """The preferred slot, or None when the call failed."""
    failure: FailureKind | None = None
    """The kind of failure, or None when there is a verdict."""
    message: str | None = None
    """What the server or the rules said about a failure, redacted."""
    raw: str | None = None
    """The judge's text as it came, before any parsing."""
    p_first: float | None = None
    p_second: float | None = None
    p_tie: float | None = None
    """Verdict probabilities, where the server gives token log-probabilities."""
    usage: Usage = UNKNOWN_USAGE
    cost_usd: float | None = None
    """USD for all attempts; None where price or usage is unknown."""
    attempts: int = 1
    """Requests sent in this run of the command for this call."""
    latency_ms: float | None = None
    """Milliseconds of the attempt that ended the call."""
    model: str | None = None
    """The model that answered, as the server names it."""
    request_id: str | None = None

    def __post_init__(self) -> None:
        if (self.slot is None) == (self.failure is None):
            msg = f"a reply has a slot or a failure, got slot={self.slot} failure={self.failure}"
            raise ValueError(msg)
