"""What a request asks for: the wire, the model, the prompt and the form of the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

Json: TypeAlias = Mapping[str, object]
Wire: TypeAlias = Literal["openai", "anthropic"]
Form: TypeAlias = Literal["text", "json_schema", "tool"]

_WORDS: Json = {"type": "string", "enum": ["first", "second", "tie"]}
_OBJECT: Json = {
    "type": "object",
    "properties": {"analysis": {"type": "string"}, "verdict": _WORDS},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A request body as the model sees it."""

    wire: Wire
    model: str
    text: str
    """System prompt and messages, joined by line ends; begins with a line end."""
    form: Form
    schema: Json
    tool: str
    named_tool: bool
    """A tool forced by name (OpenAI then ends with `stop`, not `tool_calls`)."""
    top_logprobs: int | None
    """None where log-probabilities were not asked for."""
    max_tokens: int
    """0 where no bound was given."""


def mapping(value: object) -> Json:
    """Take a JSON object; anything else reads as an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[object]:
    """Take a JSON array; anything else reads as an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list) else ()


def read_asked(wire: Wire, body: Json) -> Asked:
    """Read a request body of either wire."""
    texts = [""]
    if wire == "anthropic":
        _collect(body.get("system"), texts)
    for message in sequence(body.get("messages")):
        _collect(mapping(message).get("content"), texts)
    form, schema, tool, named = (_openai_form if wire == "openai" else _anthropic_form)(body)
    top = body.get("top_logprobs")
    bound = body.get("max_completion_tokens") or body.get("max_tokens")
    return Asked(
        wire=wire,
        model=str(body.get("model", "")),
        text="\n".join(texts),
        form=form,
        schema=schema,
        tool=tool,
        named_tool=named,
        top_logprobs=(top if isinstance(top, int) else 0) if body.get("logprobs") is True else None,
        max_tokens=bound if isinstance(bound, int) else 0,
    )


def _collect(content: object, texts: list[str]) -> None:
    if isinstance(content, str):
        texts.append(content)
        return
    for part in sequence(content):
        text = mapping(part).get("text")
        if isinstance(text, str):
            texts.append(text)


def _openai_form(body: Json) -> tuple[Form, Json, str, bool]:
    tools = [mapping(mapping(tool).get("function")) for tool in sequence(body.get("tools"))]
    choice = body.get("tool_choice")
    if tools and choice != "none":
        wanted = mapping(mapping(choice).get("function")).get("name")
        tool = next((tool for tool in tools if tool.get("name") == wanted), tools[0])
        return "tool", mapping(tool.get("parameters")), str(tool.get("name")), wanted is not None
    wanted_format = mapping(body.get("response_format"))
    if wanted_format.get("type") == "json_schema":
        return (
            "json_schema",
            mapping(mapping(wanted_format["json_schema"]).get("schema")),
            "",
            False,
        )
    if wanted_format.get("type") == "json_object":
        return "json_schema", _OBJECT, "", False
    return "text", {}, "", False


def _anthropic_form(body: Json) -> tuple[Form, Json, str, bool]:
    tools = [mapping(tool) for tool in sequence(body.get("tools"))]
    choice = mapping(body.get("tool_choice"))
    if tools and choice.get("type") != "none":
        tool = next((tool for tool in tools if tool.get("name") == choice.get("name")), tools[0])
        return "tool", mapping(tool.get("input_schema")), str(tool.get("name")), "name" in choice
    wanted_format = mapping(mapping(body.get("output_config")).get("format"))
    if wanted_format.get("type") == "json_schema":
        return "json_schema", mapping(wanted_format.get("schema")), "", False
    return "text", {}, "", False
