"""The JSON schema of a reply: analysis before verdict, in the words of the wire."""

from __future__ import annotations

from judgebias.prompts.form import criterion_key
from judgebias.verdicts import Slot


def reply_schema(n_criteria: int = 0) -> dict[str, object]:
    """Describe the reply; both vendors want every key required and no others allowed."""
    fields: dict[str, object] = {"analysis": {"type": "string"}}
    if n_criteria:
        answer = {"type": "string", "enum": ["yes", "no"]}
        both = _closed({Slot.FIRST.value: answer, Slot.SECOND.value: answer})
        fields |= {criterion_key(n): both for n in range(1, n_criteria + 1)}
    else:
        fields["verdict"] = {"type": "string", "enum": [slot.value for slot in Slot]}
    return _closed(fields)


def _closed(fields: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
