"""The form in which a judge is asked, and how it settles on the first call.

What a model takes is not known before it is asked: schemas, forced tools, temperature and the name
of the output budget all differ. `adapt` is the table of what to change after a refusal. The settled
form is a fact of the run: it is written down, handed to every worker, and taken from there by a
resume.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from judgebias.config import WireJudge
from judgebias.judges.outcome import Outcome, Refused, Unusable
from judgebias.prompts import VerdictForm
from judgebias.replies import FailureKind

_NEXT = {
    VerdictForm.JSON_SCHEMA: VerdictForm.TOOL,
    VerdictForm.TOOL: VerdictForm.TEXT,
}
_FORM_PARAMETERS = {
    VerdictForm.JSON_SCHEMA: {"response_format", "output_config", "json_schema"},
    VerdictForm.TOOL: {"tools", "tool_choice", "jinja"},
    VerdictForm.TEXT: set[str](),
}
_BUDGET_FIELDS = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, kw_only=True, slots=True)
class WireForm:
    """What is sent besides the prompt."""

    verdict: VerdictForm
    budget_field: str = "max_tokens"
    """The name of the output budget in the request."""
    dropped: tuple[str, ...] = ()
    """Configured parameters that the model refuses and that are left out, to be said so."""

    def to_json(self) -> dict[str, object]:
        """Give plain data for the run's record."""
        return {
            "verdict": self.verdict.value,
            "budget_field": self.budget_field,
            "dropped": list(self.dropped),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> WireForm:
        """Read what `to_json` gave."""
        dropped = cast("list[str]", data.get("dropped", []))
        return cls(
            verdict=VerdictForm(str(data["verdict"])),
            budget_field=str(data.get("budget_field", "max_tokens")),
            dropped=tuple(dropped),
        )


def opening_form(config: WireJudge) -> WireForm:
    """Choose what the first call is tried with.

    The vendor's own models all take `max_completion_tokens`; compatible servers all know
    `max_tokens`, and some ignore the other name without a word.
    """
    own = config.provider == "openai" and not config.base_url
    auto = config.verdict == "auto"
    return WireForm(
        verdict=VerdictForm.JSON_SCHEMA if auto else VerdictForm(config.verdict),
        budget_field=_BUDGET_FIELDS[0] if own else _BUDGET_FIELDS[1],
    )


def adapt(form: WireForm, outcome: Outcome, config: WireJudge) -> WireForm | None:
    """Say what to try next after a refused or ignored parameter; None = nothing else."""
    if isinstance(outcome, Unusable):
        ignored = outcome.kind is FailureKind.INVALID and config.verdict == "auto"
        return _next_form(form, config) if ignored else None
    if not isinstance(outcome, Refused) or outcome.kind is not FailureKind.BAD_REQUEST:
        return None
    refused = outcome.parameter
    if refused == "temperature" and config.temperature is not None:
        again = refused in form.dropped
        return None if again else replace(form, dropped=(*form.dropped, refused))
    if refused in _BUDGET_FIELDS:
        other = _BUDGET_FIELDS[1 - _BUDGET_FIELDS.index(form.budget_field)]
        fits = config.provider == "openai" and refused == form.budget_field
        return replace(form, budget_field=other) if fits else None
    if config.verdict == "auto" and refused in _FORM_PARAMETERS[form.verdict]:
        return _next_form(form, config)
    return None


def _next_form(form: WireForm, config: WireJudge) -> WireForm | None:
    following = _NEXT.get(form.verdict)
    if following is VerdictForm.TOOL and config.soft:
        following = VerdictForm.TEXT  # the arguments of a tool have no log-probabilities
    return None if following is None else replace(form, verdict=following)
