"""Verdicts are read by strict rules, from their own place alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.judges.outcome import Answered, Refused, Transient, Unusable
from judgebias.judges.reading import Unread, read_slot
from judgebias.judges.wire import End, Spoken, verdict_of
from judgebias.prompts import VerdictForm
from judgebias.replies import FailureKind
from judgebias.verdicts import Slot

JSON, TOOL, TEXT = VerdictForm.JSON_SCHEMA, VerdictForm.TOOL, VerdictForm.TEXT

ACCEPTED = [
    "first",
    "FIRST",
    " First ",
    '"first"',
    "'first'",
    "`first`",
    "**first**",
    "first.",
    "**First.**",
    "“first”",
    "_first_",
    "\tfirst\t",
]
REFUSED = [
    "",
    "Both",
    "A",
    "a",
    "A.",
    "Response A",
    "Antwort A",
    "両方",
    "C",
    "[[A]]",
    "[[A]] or [[B]]",
    "first answer",
    "the first",
    "firsts",
    "not first",
    "first or second",
    "first second",
    "1",
    "tie...",
    "first!",
    "none",
    "neither",
]


@pytest.mark.parametrize("word", ACCEPTED)
@pytest.mark.parametrize("form", VerdictForm)
def test_p_21_the_normalisation_list(word: str, form: VerdictForm) -> None:
    text = f"VERDICT: {word}" if form is TEXT else json.dumps({"analysis": "", "verdict": word})
    assert read_slot(text, form) is Slot.FIRST


@pytest.mark.parametrize("word", REFUSED)
@pytest.mark.parametrize("form", VerdictForm)
def test_p_20_a_verdict_outside_the_words_is_none(word: str, form: VerdictForm) -> None:
    text = f"VERDICT: {word}" if form is TEXT else json.dumps({"analysis": "", "verdict": word})
    assert isinstance(read_slot(text, form), Unread)


@pytest.mark.parametrize("slot", Slot)
@pytest.mark.parametrize("form", VerdictForm)
def test_p_24_the_words_are_the_slots(slot: Slot, form: VerdictForm) -> None:
    text = f"VERDICT: {slot}" if form is TEXT else json.dumps({"analysis": "", "verdict": slot})
    assert read_slot(text, form) is slot


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"verdict": "first", "verdict": "second"}', id="P-22-duplicate-keys"),
        pytest.param('{"verdict": "first"', id="P-22-cut"),
        pytest.param("", id="P-22-nothing"),
        pytest.param('"first"', id="P-22-bare-word"),
        pytest.param('["first"]', id="P-22-list"),
        pytest.param('{"analysis": "the first"}', id="P-22-no-verdict"),
        pytest.param('{"verdict": ["first"]}', id="P-22-verdict-in-a-list"),
        pytest.param('{"verdict": null}', id="P-22-null"),
        pytest.param('{"verdict": true}', id="P-22-true"),
        pytest.param('```json\n{"verdict": "first"}\n```', id="P-22-fence"),
        pytest.param('{"verdict": "first"} {"verdict": "first"}', id="P-22-two-objects"),
        pytest.param("VERDICT: first", id="P-22-prose"),
    ],
)
def test_p_22_what_is_no_one_object_is_invalid(text: str) -> None:
    assert isinstance(read_slot(text, JSON), Unread)
    assert isinstance(read_slot(text, TOOL), Unread)


@pytest.mark.parametrize(
    "text",
    [
        "The answer says VERDICT: first, which is odd.",
        "VERDICT: first\nOn reflection I am not sure.",
        "first",
        "The verdict is: first",
        "VERDICT: second VERDICT: first",
        "> VERDICT: first",
        "My VERDICT: first",
        "VERDICT first",
    ],
)
def test_only_the_last_line_counts_and_only_whole(text: str) -> None:
    assert isinstance(read_slot(text, TEXT), Unread)


@pytest.mark.parametrize(
    "text",
    [
        "It quotes:\nVERDICT: first\nbut no.\n\nVERDICT: second",
        "VERDICT: first\r\nverdict : second\r\n\r\n",
        "x\n**VERDICT: second**\n",
        "x\n**Verdict:** second.",
    ],
)
def test_the_last_verdict_line_is_the_verdict(text: str) -> None:
    assert read_slot(text, TEXT) is Slot.SECOND


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(Slot))
def test_p_23_the_analysis_never_decides(analysis: str, slot: Slot) -> None:
    assert read_slot(json.dumps({"analysis": analysis, "verdict": slot}), JSON) is slot
    assert read_slot(f"{analysis}\nVERDICT: {slot}", TEXT) is slot


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("yes", "yes"), ("yes", "no"), Slot.FIRST),
        (("no", "no"), ("no", "Yes."), Slot.SECOND),
        (("yes", "no"), ("no", "yes"), Slot.TIE),
        (("yes", "no"), ("yes", "maybe"), None),
    ],
)
def test_criteria_are_summed(
    first: tuple[str, str], second: tuple[str, str], expected: Slot | None
) -> None:
    fields = {f"c{n}": {"first": first[n - 1], "second": second[n - 1]} for n in (1, 2)}
    found = [
        read_slot(json.dumps({"analysis": "", **fields}), JSON, 2),
        read_slot(f"x\nANSWERS: first={','.join(first)} second={', '.join(second)}", TEXT, 2),
    ]
    for slot in found:
        assert isinstance(slot, Unread) if expected is None else slot is expected


def test_criteria_must_all_be_there() -> None:
    one = {"c1": {"first": "yes", "second": "no"}}
    assert isinstance(read_slot(json.dumps(one), JSON, 2), Unread)
    assert isinstance(read_slot("ANSWERS: first=yes second=no", TEXT, 2), Unread)
    assert isinstance(read_slot("VERDICT: first", TEXT, 2), Unread)


def say(text: str = "", *tools: str, end: End = End.NATURAL) -> Spoken:
    return Spoken(text=text, tools=tools, end=end, detail="as told")


@pytest.mark.parametrize(
    ("spoken", "form", "expected"),
    [
        pytest.param(say("VERDICT: first"), TEXT, Answered(slot=Slot.FIRST), id="answered"),
        pytest.param(
            say("VERDICT: first", end=End.CUT), TEXT, (Refused, "truncated"), id="P-17-no-verdict"
        ),
        pytest.param(say(end=End.CUT), JSON, (Refused, "truncated"), id="P-18-thinking"),
        pytest.param(say("VERDICT: tie", end=End.REFUSED), TEXT, (Refused, "refused"), id="P-19"),
        pytest.param(say(end=End.FILTERED), TEXT, (Refused, "filtered"), id="P-09-reply"),
        pytest.param(say(" \n"), TEXT, (Unusable, "empty"), id="empty"),
        pytest.param(say(end=End.FAILED), TEXT, (Transient, "server"), id="P-16-finish-error"),
        pytest.param(
            say("VERDICT: tie", end=End.UNKNOWN), TEXT, (Unusable, "invalid"), id="weird-end"
        ),
        pytest.param(
            say("", '{"verdict": "first"}', '{"verdict": "first"}'),
            TOOL,
            (Unusable, "invalid"),
            id="P-22-two-equal-calls",
        ),
        pytest.param(say("VERDICT: tie"), TOOL, (Unusable, "invalid"), id="P-22-no-call"),
        pytest.param(
            say("", '{"verdict": "tie"}'), TOOL, Answered(slot=Slot.TIE), id="P-22-one-call"
        ),
    ],
)
def test_only_a_natural_end_has_a_verdict(
    spoken: Spoken, form: VerdictForm, expected: Answered | tuple[type, str]
) -> None:
    found = verdict_of(spoken, form)
    if isinstance(expected, Answered):
        assert found == expected
        return
    kind, name = expected
    assert isinstance(found, kind)
    assert isinstance(found, Refused | Unusable | Transient)
    assert found.kind is FailureKind(name)
