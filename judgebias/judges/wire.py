"""What differs between providers: the request's body, sending it, and where a reply keeps things.

Everything else (forms, tries, classification, verdicts, costs) is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from judgebias.judges.outcome import Answered, Halt, Outcome, Refused, Transient, Unusable
from judgebias.judges.reading import Unread, read_slot
from judgebias.judges.wire_form import WireForm
from judgebias.prompts import Prompt, VerdictForm
from judgebias.replies import FailureKind, Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """A whole response, before anything is read from it."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class End(StrEnum):
    """Why the model stopped."""

    NATURAL = "natural"
    CUT = "cut"
    REFUSED = "refused"
    FILTERED = "filtered"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Spoken:
    """What the model said, the same for every provider."""

    text: str
    tools: tuple[str, ...]
    """The arguments of each tool call, as JSON text."""
    end: End
    detail: str
    """The provider's own word for the end, or what it says about a refusal."""
    tokens: object = None
    """The log-probabilities of the text's tokens, as the provider gives them."""


class Wire(Protocol):
    """One provider's side of a judge."""

    request_id_header: str

    def body(self, prompt: Prompt, form: WireForm, budget: int) -> dict[str, object]:
        """Put a request together."""
        ...

    async def send(self, body: bytes) -> Received | Transient | Halt:
        """Send one request once; whatever the SDK raises has become data."""
        ...

    def spoken(self, body: object) -> Spoken | None:
        """Find what the model said; None where the body is no reply of this wire."""
        ...

    def usage(self, body: object) -> Usage:
        """Find what was used."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


_ENDS = {
    End.REFUSED: FailureKind.REFUSED,
    End.FILTERED: FailureKind.FILTERED,
}


def verdict_of(spoken: Spoken, form: VerdictForm, n_criteria: int = 0) -> Outcome:
    """Read the verdict of a reply; only one that ended naturally can have one."""
    kind = _ENDS.get(spoken.end)
    if kind is not None:
        return Refused(kind=kind, message=f"the model stopped with {spoken.detail}")
    if spoken.end is End.CUT:
        return Refused(kind=FailureKind.TRUNCATED, message=_cut_message(spoken))
    if spoken.end is End.FAILED:
        return Transient(kind=FailureKind.SERVER, message=f"the reply ended with {spoken.detail}")
    if spoken.end is End.UNKNOWN:
        message = f"the reply ended for an unknown reason: {spoken.detail}"
        return Unusable(kind=FailureKind.INVALID, message=message)
    if not spoken.text.strip() and not spoken.tools:
        return Unusable(kind=FailureKind.EMPTY, message="the reply is empty")
    return _read(spoken, form, n_criteria)


def _read(spoken: Spoken, form: VerdictForm, n_criteria: int) -> Outcome:
    if form is VerdictForm.TOOL and len(spoken.tools) != 1:
        message = f"{len(spoken.tools)} tool calls instead of one"
        return Unusable(kind=FailureKind.INVALID, message=message)
    text = spoken.tools[0] if form is VerdictForm.TOOL else spoken.text
    slot = read_slot(text, form, n_criteria)
    if isinstance(slot, Unread):
        return Unusable(kind=FailureKind.INVALID, message=slot.message)
    return Answered(slot=slot)


def _cut_message(spoken: Spoken) -> str:
    if spoken.text or spoken.tools:
        return f"the reply was cut off ({spoken.detail}); a larger max_tokens may help"
    return f"thinking used up the output budget ({spoken.detail}): raise max_tokens"


def raw_text(spoken: Spoken, form: VerdictForm, whole: str) -> str:
    """Choose what is kept: the text that the verdict is read from, or else the whole body."""
    if form is VerdictForm.TOOL:
        return spoken.tools[0] if len(spoken.tools) == 1 else whole
    return spoken.text or whole
