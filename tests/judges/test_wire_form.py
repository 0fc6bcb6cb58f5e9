"""How the form of a judge settles, as a table."""

from __future__ import annotations

import json

import pytest

from judgebias.config import WireJudge
from judgebias.judges.outcome import Answered, Outcome, Refused, Transient, Unusable
from judgebias.judges.schema import reply_schema
from judgebias.judges.wire_form import WireForm, adapt, opening_form
from judgebias.prompts import VerdictForm
from judgebias.replies import FailureKind
from judgebias.verdicts import Slot

JSON, TOOL, TEXT = VerdictForm.JSON_SCHEMA, VerdictForm.TOOL, VerdictForm.TEXT


def config(**more: object) -> WireJudge:
    fields = {"name": "j", "provider": "openai", "model": "m", "temperature": 0.0, **more}
    return WireJudge.model_validate(fields)


def refused(parameter: str) -> Refused:
    return Refused(kind=FailureKind.BAD_REQUEST, message="no", parameter=parameter)


INVALID = Unusable(kind=FailureKind.INVALID, message="prose")


@pytest.mark.parametrize(
    ("form", "outcome", "expected"),
    [
        (WireForm(verdict=JSON), refused("response_format"), WireForm(verdict=TOOL)),
        (WireForm(verdict=JSON), refused("output_config"), WireForm(verdict=TOOL)),
        (WireForm(verdict=TOOL), refused("tool_choice"), WireForm(verdict=TEXT)),
        (WireForm(verdict=TEXT), refused("tools"), None),
        (WireForm(verdict=JSON), refused("tool_choice"), None),
        (WireForm(verdict=JSON), INVALID, WireForm(verdict=TOOL)),
        (WireForm(verdict=TOOL), INVALID, WireForm(verdict=TEXT)),
        (WireForm(verdict=TEXT), INVALID, None),
        (
            WireForm(verdict=JSON),
            refused("temperature"),
            WireForm(verdict=JSON, dropped=("temperature",)),
        ),
        (WireForm(verdict=JSON, dropped=("temperature",)), refused("temperature"), None),
        (
            WireForm(verdict=JSON),
            refused("max_tokens"),
            WireForm(verdict=JSON, budget_field="max_completion_tokens"),
        ),
        (
            WireForm(verdict=JSON, budget_field="max_completion_tokens"),
            refused("max_completion_tokens"),
            WireForm(verdict=JSON, budget_field="max_tokens"),
        ),
        (WireForm(verdict=JSON), refused("max_completion_tokens"), None),
        (WireForm(verdict=JSON), refused(""), None),
        (WireForm(verdict=JSON), Answered(slot=Slot.TIE), None),
        (WireForm(verdict=JSON), Transient(kind=FailureKind.SERVER, message=""), None),
        (WireForm(verdict=JSON), Unusable(kind=FailureKind.EMPTY, message=""), None),
        (WireForm(verdict=JSON), Refused(kind=FailureKind.TRUNCATED, message=""), None),
    ],
)
def test_what_is_tried_next(form: WireForm, outcome: Outcome, expected: WireForm | None) -> None:
    assert adapt(form, outcome, config()) == expected


@pytest.mark.parametrize("outcome", [INVALID, refused("response_format")])
def test_a_chosen_form_is_kept(outcome: Outcome) -> None:
    assert adapt(WireForm(verdict=JSON), outcome, config(verdict="json_schema")) is None


@pytest.mark.parametrize(
    ("more", "verdict", "budget_field"),
    [
        ({}, JSON, "max_completion_tokens"),
        ({"base_url": "http://localhost:1/v1"}, JSON, "max_tokens"),
        ({"verdict": "text"}, TEXT, "max_completion_tokens"),
        ({"provider": "anthropic"}, JSON, "max_tokens"),
    ],
)
def test_what_is_tried_first(
    more: dict[str, object], verdict: VerdictForm, budget_field: str
) -> None:
    assert opening_form(config(**more)) == WireForm(verdict=verdict, budget_field=budget_field)


def test_a_form_survives_the_runs_record() -> None:
    form = WireForm(verdict=TOOL, budget_field="max_completion_tokens", dropped=("temperature",))
    assert WireForm.from_json(json.loads(json.dumps(form.to_json()))) == form


def test_the_schema_asks_for_the_analysis_first() -> None:
    for schema in (reply_schema(), reply_schema(3)):
        assert schema["additionalProperties"] is False
        properties = schema["properties"]
        assert isinstance(properties, dict)
        assert list(properties) == schema["required"]
        assert next(iter(properties)) == "analysis"
    assert reply_schema(3)["required"] == ["analysis", "c1", "c2", "c3"]
