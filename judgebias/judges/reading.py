"""From a reply's text to a slot, by strict rules.

The verdict is read from its own place alone: the field of the object, or the last line that is not
blank. What the analysis says, or quotes, is never looked at. A word counts when nothing is left
after taking away case, white space, quotes, emphasis marks and one full stop; no word is ever found
inside another, and letters such as A and B are not in the vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from judgebias.judges.body import dig, keys, parse, string
from judgebias.prompts import VerdictForm
from judgebias.prompts.form import criterion_key
from judgebias.verdicts import Slot

_MARKS = "\"'`*_“”‘’«» \t"  # noqa: RUF001 - typographic quotes are meant
_SLOTS = {slot.value: slot for slot in Slot}
_YES_NO = {"yes": 1, "no": 0}
_VERDICT_LINE = re.compile(r"verdict[*_ \t]*:(.*)", re.IGNORECASE)
_ANSWERS_LINE = re.compile(r"answers[*_ \t]*:\s*first\s*=(.*?)\s+second\s*=(.*)", re.IGNORECASE)
_SHOWN = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Unread:
    """Why no slot could be read."""

    message: str


def read_slot(text: str, form: VerdictForm, n_criteria: int = 0) -> Slot | Unread:
    """Read the verdict of a reply.

    Parameters
    ----------
    text
        The text of the message, or the arguments of the tool call as JSON.
    form
        The form that was asked for.
    n_criteria
        How many yes/no criteria were asked for; 0 = a verdict word.
    """
    if form is VerdictForm.TEXT:
        return _read_line(text, n_criteria)
    try:
        value = parse(text.strip().encode())
    except ValueError as error:
        return Unread(message=f"the reply is no JSON object ({error})")
    if not keys(value):
        return Unread(message="the reply is no JSON object")
    if n_criteria:
        return _sum_criteria(
            lambda n, slot: _yes_no(dig(value, criterion_key(n), slot)), n_criteria
        )
    if "verdict" not in keys(value):
        return Unread(message='the reply has no "verdict"')
    return _slot(dig(value, "verdict"))


def normal(word: str) -> str:
    """Take away what may surround a verdict word, and nothing else."""
    return word.strip().strip(_MARKS).removesuffix(".").strip(_MARKS).casefold()


def _slot(word: object) -> Slot | Unread:
    slot = _SLOTS.get(normal(string(word)))
    if slot is None:
        return Unread(message=f"the verdict is {word!r:.{_SHOWN}}, not first, second or tie")
    return slot


def _read_line(text: str, n_criteria: int) -> Slot | Unread:
    last = next((line for line in reversed(text.split("\n")) if line.strip()), "")
    line = last.strip().strip(_MARKS)
    if not n_criteria:
        found = _VERDICT_LINE.fullmatch(line)
        if found:
            return _slot(found.group(1))
        return Unread(message=f"the last line is no verdict: {last!r:.{_SHOWN}}")
    found = _ANSWERS_LINE.fullmatch(line)
    if not found:
        return Unread(message=f"the last line gives no answers: {last!r:.{_SHOWN}}")
    answers = {
        Slot.FIRST.value: found.group(1).split(","),
        Slot.SECOND.value: found.group(2).split(","),
    }
    if any(len(words) != n_criteria for words in answers.values()):
        return Unread(message=f"not {n_criteria} answers for each: {last!r:.{_SHOWN}}")
    return _sum_criteria(lambda n, slot: _yes_no(answers[slot][n - 1]), n_criteria)


def _yes_no(word: object) -> int | None:
    return _YES_NO.get(normal(string(word)))


def _sum_criteria(answer: Callable[[int, str], int | None], n_criteria: int) -> Slot | Unread:
    """Add up the yes of each slot; one answer that cannot be read makes the whole unread."""
    sums = {Slot.FIRST: 0, Slot.SECOND: 0}
    for slot in sums:
        for n in range(1, n_criteria + 1):
            yes = answer(n, slot.value)
            if yes is None:
                return Unread(message=f"criterion {n} has no yes or no for the {slot.value} answer")
            sums[slot] += yes
    if sums[Slot.FIRST] == sums[Slot.SECOND]:
        return Slot.TIE
    return max(sums, key=lambda slot: sums[slot])
