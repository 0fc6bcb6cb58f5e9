"""How sure a judge is: the probabilities of the verdict's words, from the log-probabilities.

The word is looked up in its own place (the field, or the last line), the token that begins it is
found, and that token's alternatives are read. The three words begin with different letters, so
whatever part of a word a token holds names the slot. A word that is not among the alternatives has
only a bound, and is None.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from judgebias.judges.body import dig, elements, string
from judgebias.prompts import VerdictForm
from judgebias.verdicts import Slot

TOP = 20
"""Alternatives asked for: the most that OpenAI gives, and vLLM by default."""
NEVER = -9000.0
"""OpenAI writes -9999.0 for whatever is very unlikely; it is a bound and no figure."""

_FIELD = re.compile(r'(?<!\\)"verdict"\s*:\s*"\s*')
_LINE = re.compile(r"verdict[*_ \t]*:[\"'`*_ \t]*(?=\w)", re.IGNORECASE)
_SLOTS = tuple(Slot)


@dataclass(frozen=True, kw_only=True, slots=True)
class Probabilities:
    """Of the three words; None where the server gives only a bound."""

    first: float | None = None
    second: float | None = None
    tie: float | None = None


def read_probabilities(text: str, tokens: object, form: VerdictForm) -> Probabilities | None:
    """Read the verdict's probabilities; None where the reply has no log-probabilities for it.

    Parameters
    ----------
    text
        The message's text, from which a verdict has been read.
    tokens
        `logprobs.content` of the reply, one element a token.
    """
    start = _word_start(text, form)
    if start is None:
        return None
    begins = 0
    for token in elements(tokens):
        size = _size(token)
        if begins <= start < begins + size:
            return _of_alternatives(token, start - begins)
        begins += size
    return None


def _word_start(text: str, form: VerdictForm) -> int | None:
    """Find where the verdict's word begins, in bytes."""
    if form is VerdictForm.TOOL:
        return None
    pattern = _LINE if form is VerdictForm.TEXT else _FIELD
    found = None
    for found in pattern.finditer(text):  # noqa: B007 - the last one is the verdict
        pass
    return None if found is None else len(text[: found.end()].encode())


def _size(token: object) -> int:
    """Count a token's bytes; one that holds part of a character has them listed."""
    return len(elements(dig(token, "bytes"))) or len(string(dig(token, "token")).encode())


def _of_alternatives(token: object, before: int) -> Probabilities:
    """Add up the alternatives by the slot whose word they begin."""
    # The token may hold what comes before the word, such as the quote or the blank.
    head = string(dig(token, "token"))[:before]
    sums: dict[Slot, float] = {}
    for alternative in elements(dig(token, "top_logprobs")):
        slot = _slot_of(string(dig(alternative, "token")), head)
        logprob = dig(alternative, "logprob")
        if slot is not None and isinstance(logprob, int | float) and logprob > NEVER:
            sums[slot] = sums.get(slot, 0.0) + math.exp(logprob)
    return Probabilities(
        first=sums.get(Slot.FIRST), second=sums.get(Slot.SECOND), tie=sums.get(Slot.TIE)
    )


def _slot_of(token: str, head: str) -> Slot | None:
    word = token.removeprefix(head).strip().strip("\"'*_`").casefold()
    if not word:
        return None
    return next((s for s in _SLOTS if s.value.startswith(word) or word == f"{s.value}."), None)
