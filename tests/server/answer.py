"""What the judge says, before either wire gives it a shape: plain, or spoilt in a named way."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias, get_args

from pydantic_core import from_json, to_json

from tests.server.asked import Asked, mapping
from tests.server.planted import Decision
from tests.server.schema import fill

Stop: TypeAlias = Literal["natural", "length", "refusal", "filter"]
Variant: TypeAlias = Literal[
    "plain",
    "thinking",  # a thinking block comes first (Anthropic), reasoning tokens in the usage
    "refusal",
    "filtered",
    "truncated",  # a cut text in which the verdict may still be found
    "thought_only",  # the whole budget went into reasoning
    "empty",
    "two_equal_tools",
    "two_conflicting_tools",
    "no_tool",  # prose where a tool call was forced
    "ignores_form",  # plain text with a verdict line, whatever form was asked for
    "invalid_json",
    "duplicate_keys",
    "outside",  # a verdict that is none of the words
    "contradicts",  # the analysis names the other slot
    "no_usage",
    "short_usage",  # the prompt was cut silently to 512 tokens
    "no_logprobs",
]
VARIANTS: tuple[str, ...] = get_args(Variant)

_OTHER = {"first": "second", "second": "first", "tie": "first"}
_CUT_CONTEXT = 512


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A reply of the model, wire-neutral."""

    text: str = ""
    tools: tuple[str, ...] = ()
    """The arguments of each tool call, as JSON text (which may be spoilt)."""
    stop: Stop = "natural"
    refusal: str = ""
    thinking: str = ""
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int = 0
    usage: bool = True
    logprobs: bool = True


def compose(asked: Asked, decision: Decision, variant: Variant) -> Answer:
    """Say the verdict in the form asked for, spoilt as the variant names."""
    slot = "Both" if variant == "outside" else decision.slot
    spoken = _OTHER[decision.slot] if variant == "contradicts" else slot
    analysis = f"Weighing the answers point by point, the better place is: {spoken}."
    wording = _plain(analysis, slot)
    if asked.form != "text" and variant not in ("ignores_form", "no_tool"):
        wording = _fitting(to_json(asked.schema), slot, analysis)
        if variant == "invalid_json":
            wording = wording[:-1] + ",,}"
        if variant == "duplicate_keys":
            wording = _duplicate_keys(wording, asked, decision)
    tool = asked.form == "tool" and variant not in ("ignores_form", "no_tool")
    plain = Answer(
        text="" if tool else wording,
        tools=(wording,) if tool else (),
        input_tokens=tokens(asked.text),
        output_tokens=tokens(wording),
    )
    return plain if variant == "plain" else _spoil(plain, asked, decision, variant)


def tokens(text: str) -> int:
    """Count tokens the way this server bills: four characters each, and never none."""
    return len(text) // 4 + 1


@lru_cache(maxsize=1024)
def _fitting(schema: bytes, slot: str, analysis: str) -> str:
    """Fill a schema once for each thing to say: all calls of a judge share the schema."""
    return _encode(fill(mapping(from_json(schema)), slot, analysis))


def _encode(value: object) -> str:
    return to_json(value).decode()


def _plain(analysis: str, slot: str) -> str:
    return f"{analysis}\nVERDICT: {slot}"


def _duplicate_keys(wording: str, asked: Asked, decision: Decision) -> str:
    other = _encode(fill(asked.schema, _OTHER[decision.slot], "On second thought."))
    return wording[:-1] + "," + other[1:]


def _spoil(plain: Answer, asked: Asked, decision: Decision, variant: Variant) -> Answer:
    if variant == "two_equal_tools":
        return replace(plain, tools=plain.tools * 2)
    if variant == "two_conflicting_tools":
        other = _encode(fill(asked.schema, _OTHER[decision.slot], "On second thought."))
        return replace(plain, tools=(*plain.tools, other))
    if variant == "truncated":
        cut = replace(plain, text=plain.text[:-2], tools=tuple(t[:-2] for t in plain.tools))
        return _out_of_budget(replace(cut, stop="length"), asked, plain.output_tokens)
    if variant == "thought_only":
        silent = replace(plain, text="", tools=(), stop="length", thinking="Let me think.")
        return _out_of_budget(silent, asked, 0)
    if variant == "refusal":
        said = "I cannot help with comparing these."
        return replace(plain, text="", tools=(), stop="refusal", refusal=said)
    if variant == "filtered":
        return replace(plain, text="", tools=(), stop="filter")
    if variant == "empty":
        return replace(plain, text="", tools=(), output_tokens=2)
    if variant == "thinking":
        total = plain.output_tokens + 40
        return replace(plain, thinking="Let me think.", output_tokens=total, reasoning_tokens=40)
    if variant == "short_usage":
        return replace(plain, input_tokens=min(plain.input_tokens, _CUT_CONTEXT))
    changed = {"usage": variant != "no_usage", "logprobs": variant != "no_logprobs"}
    return replace(plain, **changed)


def _out_of_budget(answer: Answer, asked: Asked, spoken: int) -> Answer:
    spent = asked.max_tokens or 1024
    return replace(answer, output_tokens=spent, reasoning_tokens=max(spent - spoken, 0))


def arguments_object(arguments: str) -> object:
    """Read tool arguments for a wire that carries an object; text that is no JSON stays text."""
    try:
        return mapping(json.loads(arguments))
    except json.JSONDecodeError:
        return arguments
