"""Anthropic Messages through the official SDK, by the same lean path as OpenAI's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import aiohttp
import httpx2
from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic, DefaultAioHttpClient, Omit

from judgebias.config import WireJudge
from judgebias.judges.asker import Asker
from judgebias.judges.body import dig, elements, string
from judgebias.judges.classify import classify_exception
from judgebias.judges.gate import Gate
from judgebias.judges.outcome import Halt, Transient
from judgebias.judges.schema import reply_schema
from judgebias.judges.secrets import VENDOR_URL, Secret
from judgebias.judges.transport import address, limits, quiet, received_headers, timeouts
from judgebias.judges.usage import anthropic_usage
from judgebias.judges.wire import End, Received, Spoken
from judgebias.judges.wire_form import WireForm
from judgebias.prompts import Prompt, Template, VerdictForm
from judgebias.prompts.form import TOOL_NAME
from judgebias.replies import Usage

API_VERSION = "2023-06-01"

_ENDS = {
    "end_turn": End.NATURAL,
    "stop_sequence": End.NATURAL,
    "tool_use": End.NATURAL,
    "max_tokens": End.CUT,
    "model_context_window_exceeded": End.CUT,
    "refusal": End.REFUSED,
}


class _Client(AsyncAnthropic):
    """The SDK's client, kept to the configured key and address."""

    def __init__(self, config: WireJudge, key: Secret, window: int) -> None:
        http_client = DefaultAioHttpClient(
            limits=limits(window), timeout=timeouts(), follow_redirects=False
        )
        super().__init__(
            api_key=key.reveal(),
            base_url=config.base_url or VENDOR_URL["anthropic"],
            max_retries=0,
            timeout=timeouts(),
            http_client=http_client,
            # Spans of calls may hold the texts, where Ray's own tracing exports them.
            open_telemetry=False,
        )
        # The SDK took ANTHROPIC_CUSTOM_HEADERS from the environment, which can replace the key.
        self._custom_headers = {}

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        """What every request carries; each header costs CPU, and a dozen tell of the platform."""
        headers: dict[str, str | Omit] = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": self.user_agent,
            "anthropic-version": API_VERSION,
            **self.auth_headers,
        }
        return headers


def open_client(config: WireJudge, key: Secret, window: int) -> AsyncAnthropic:
    """Make a client for so many calls in flight; the address is always the configured one."""
    quiet("anthropic")
    return _Client(config, key, window)


class AnthropicWire:
    """Requests and replies of Messages."""

    request_id_header = "request-id"

    def __init__(self, config: WireJudge, client: AsyncAnthropic, n_criteria: int = 0) -> None:
        self._config = config
        self._client = client
        self._schema = reply_schema(n_criteria)
        # The SDK parses a whole address once a call, and a path twice.
        self._url = address(config.base_url or VENDOR_URL["anthropic"], "/v1/messages")

    def body(self, prompt: Prompt, form: WireForm, budget: int) -> dict[str, object]:
        """Put a request together; `extra` has the last word."""
        body: dict[str, object] = {
            "model": self._config.model,
            "max_tokens": budget,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
        }
        if self._config.temperature is not None and "temperature" not in form.dropped:
            body["temperature"] = self._config.temperature
        return body | self._verdict(form.verdict) | self._config.extra

    def _verdict(self, form: VerdictForm) -> dict[str, object]:
        if form is VerdictForm.JSON_SCHEMA:
            return {"output_config": {"format": {"type": "json_schema", "schema": self._schema}}}
        if form is VerdictForm.TOOL:
            choice = {"type": "tool", "name": TOOL_NAME, "disable_parallel_tool_use": True}
            described = "Report the analysis and the verdict."
            tool = {"name": TOOL_NAME, "description": described, "input_schema": self._schema}
            return {"tools": [tool], "tool_choice": choice}
        return {}

    async def send(self, body: bytes) -> Received | Transient | Halt:
        """Post once; error statuses are responses like any other."""
        try:
            response = await self._client.post(self._url, cast_to=httpx2.Response, content=body)
        except APIStatusError as error:
            response = error.response
        except (APIConnectionError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
            return classify_exception(error)
        headers = received_headers(response)
        return Received(status=response.status_code, headers=headers, body=response.content)

    def spoken(self, body: object) -> Spoken | None:
        """Choose content blocks by type: a thinking block may come first."""
        content = dig(body, "content")
        if not isinstance(content, list):
            return None
        blocks = elements(content)
        reason = string(dig(body, "stop_reason"))
        category = string(dig(body, "stop_details", "category"))
        return Spoken(
            text="".join(string(dig(b, "text")) for b in blocks if dig(b, "type") == "text"),
            tools=tuple(
                json.dumps(dig(b, "input"), ensure_ascii=False)
                for b in blocks
                if dig(b, "type") == "tool_use"
            ),
            end=_ENDS.get(reason, End.UNKNOWN),
            detail=f"stop_reason {reason or None!r}" + (f" ({category})" if category else ""),
        )

    def usage(self, body: object) -> Usage:
        """Read the usage by this wire's definition."""
        return anthropic_usage(body)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


class AnthropicJudge(Asker):
    """A judge on Messages."""

    def __init__(
        self,
        config: WireJudge,
        template: Template,
        key: Secret,
        client: AsyncAnthropic,
        *,
        gate: Gate | None = None,
        form: WireForm | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        wire = AnthropicWire(config, client, len(template.criteria))
        super().__init__(config, template, key, wire, gate=gate, form=form, sleep=sleep)
