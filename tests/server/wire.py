"""The bodies of both wires: OpenAI Chat Completions and Anthropic Messages."""

from __future__ import annotations

import re
import time

from pydantic_core import to_json

from tests.server.answer import Answer, arguments_object
from tests.server.asked import Asked, Json
from tests.server.planted import NEVER, Decision

_WORDS = re.compile(r"\s*\w+|\W")
_OPENAI_STOP = {"length": "length", "refusal": "stop", "filter": "content_filter"}
_ANTHROPIC_STOP = {"length": "max_tokens", "refusal": "refusal", "filter": "refusal"}


def render(asked: Asked, answer: Answer, decision: Decision, number: int) -> bytes:
    """Write the body of a 200 on the wire that was asked."""
    if asked.wire == "openai":
        return to_json(_completion(asked, answer, decision, number))
    return _message(asked, answer, number)


def _completion(asked: Asked, answer: Answer, decision: Decision, number: int) -> Json:
    message: dict[str, object] = {
        "role": "assistant",
        "content": None if answer.tools or answer.refusal or answer.thinking else answer.text,
        "refusal": answer.refusal or None,
        "annotations": [],
    }
    if answer.text:
        message["content"] = answer.text
    if answer.tools:
        message["tool_calls"] = [
            {
                "id": f"call_{number:x}_{place}",
                "type": "function",
                "function": {"name": asked.tool, "arguments": arguments},
            }
            for place, arguments in enumerate(answer.tools)
        ]
    natural = "tool_calls" if answer.tools and not asked.named_tool else "stop"
    body: dict[str, object] = {
        "id": f"chatcmpl-{number:024x}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": _logprobs(asked, answer, decision),
                "finish_reason": _OPENAI_STOP.get(answer.stop, natural),
            }
        ],
        "service_tier": "default",
        "system_fingerprint": "fp_counting",
    }
    if answer.usage:
        body["usage"] = _openai_usage(answer)
    return body


def _openai_usage(answer: Answer) -> Json:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": answer.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _logprobs(asked: Asked, answer: Answer, decision: Decision) -> Json | None:
    """Give one token a word; the verdict's token carries the lean of the judge."""
    if asked.top_logprobs is None or not answer.text or not answer.logprobs:
        return None
    pieces = _WORDS.findall(answer.text)
    spoken = [place for place, piece in enumerate(pieces) if piece.strip() == decision.slot]
    content: list[Json] = []
    for place, piece in enumerate(pieces):
        is_verdict = bool(spoken) and place == spoken[-1]
        space = piece[: len(piece) - len(piece.lstrip())]
        leans = (
            sorted(((space + slot, p) for slot, p in decision.logprobs.items()), key=_likeliest)
            if is_verdict
            else [(piece, -0.001), (" other", NEVER)]
        )
        top = [_token(token, p) for token, p in leans[: asked.top_logprobs]]
        content.append({**_token(*leans[0]), "top_logprobs": top})
    return {"content": content, "refusal": None}


def _likeliest(lean: tuple[str, float]) -> float:
    return -lean[1]


def _token(token: str, logprob: float) -> dict[str, object]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}


def _message(asked: Asked, answer: Answer, number: int) -> bytes:
    blocks: list[Json] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": "c2ln"})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for place in range(len(answer.tools)):
        name, key = asked.tool, f"toolu_{number:x}_{place}"
        blocks.append({"type": "tool_use", "id": key, "name": name, "input": f"@{place}@"})
    natural = "tool_use" if answer.tools else "end_turn"
    refused = answer.stop in ("refusal", "filter")
    body: dict[str, object] = {
        "id": f"msg_{number:024x}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": blocks,
        "stop_reason": _ANTHROPIC_STOP.get(answer.stop, natural),
        "stop_sequence": None,
        "stop_details": _stop_details(answer) if refused else None,
    }
    if answer.usage:
        body["usage"] = _anthropic_usage(answer)
    raw = to_json(body)
    for place, arguments in enumerate(answer.tools):
        # Duplicate keys survive only as text: a Python dict has already lost one of them.
        readable = isinstance(arguments_object(arguments), dict)
        given = arguments.encode() if readable else to_json(arguments)
        raw = raw.replace(f'"@{place}@"'.encode(), given)
    return raw


def _stop_details(answer: Answer) -> Json:
    return {
        "type": "refusal",
        "category": "general_harms",
        "explanation": answer.refusal or "A classifier stopped this reply.",
    }


def _anthropic_usage(answer: Answer) -> Json:
    return {
        "input_tokens": answer.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"thinking_tokens": answer.reasoning_tokens},
        "service_tier": "standard",
    }
