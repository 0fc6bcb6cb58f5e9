"""How a judge is told to give its verdict: analysis first, then one word for a slot.

The words on the wire are those of `Slot` (first, second, tie) whatever the form, so there is one
vocabulary and one place that maps it to answers. With criteria the judge answers yes or no for
each slot, and the sums decide.
"""

from __future__ import annotations

from enum import StrEnum


class VerdictForm(StrEnum):
    """The shape of a reply."""

    JSON_SCHEMA = "json_schema"
    """The server holds the reply to a schema."""
    TOOL = "tool"
    """The reply is the arguments of a forced tool call."""
    TEXT = "text"
    """Free text whose last line is the verdict."""


TOOL_NAME = "report_verdict"
"""The name of the one tool a judge is given, and of the schema."""

_PAIRWISE = {
    VerdictForm.JSON_SCHEMA: (
        'Reply with one JSON object and nothing else. Its first key is "analysis": your comparison,'
        ' criterion by criterion, in a few sentences. Its second key is "verdict": "first" when the'
        ' first answer is better, "second" when the second answer is better, "tie" when neither is.'
    ),
    VerdictForm.TOOL: (
        f"Report by calling the tool {TOOL_NAME} once: first `analysis`, your comparison, criterion"
        " by criterion, in a few sentences; then `verdict`: first when the first answer is better,"
        " second when the second answer is better, tie when neither is."
    ),
    VerdictForm.TEXT: (
        "Write your analysis first: criterion by criterion, in a few sentences. Then end with the"
        " verdict on a line of its own, with nothing after it: first when the first answer is"
        " better, second when the second answer is better, tie when neither is. That line is one of"
        " these three:\n"
        "VERDICT: first\nVERDICT: second\nVERDICT: tie"
    ),
}

_CRITERIA = {
    VerdictForm.JSON_SCHEMA: (
        'Reply with one JSON object and nothing else. Its first key is "analysis": what you found,'
        " criterion by criterion, in a few sentences. Then one key for each criterion, {keys}, each"
        ' an object such as {{"first": "yes", "second": "no"}}.'
    ),
    VerdictForm.TOOL: (
        f"Report by calling the tool {TOOL_NAME} once: first `analysis`, what you found, criterion"
        " by criterion, in a few sentences; then one object for each criterion, {keys}, each such"
        ' as {{"first": "yes", "second": "no"}}.'
    ),
    VerdictForm.TEXT: (
        "Write your analysis first: criterion by criterion, in a few sentences. Then end with your"
        " answers on a line of its own, with nothing after it: one yes or no for each of the"
        " {count} criteria in their order, for the first answer and for the second, such as\n"
        "ANSWERS: first={sample} second={sample}"
    ),
}


def criterion_key(number: int) -> str:
    """Name a criterion in a reply; the first one is 1."""
    return f"c{number}"


def instruction(form: VerdictForm, n_criteria: int = 0) -> str:
    """Say how the reply has to look; without criteria a verdict is asked for."""
    if not n_criteria:
        return _PAIRWISE[form]
    keys = ", ".join(f'"{criterion_key(n)}"' for n in range(1, n_criteria + 1))
    sample = ",".join(("yes", "no")[n % 2] for n in range(n_criteria))
    return _CRITERIA[form].format(keys=keys, count=n_criteria, sample=sample)
