"""OpenAI Chat Completions, and every server that speaks it, through the official SDK.

The lean path: a body serialised once, posted through the client for its connections, its address
and its key, and a response read by ourselves. Typed responses cost as much again and lose what
they do not know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import httpx2
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAioHttpClient, Omit

from judgebias.config import WireJudge
from judgebias.judges.asker import Asker
from judgebias.judges.body import dig, elements, string
from judgebias.judges.classify import classify_exception
from judgebias.judges.gate import Gate
from judgebias.judges.outcome import Halt, Transient
from judgebias.judges.schema import reply_schema
from judgebias.judges.secrets import VENDOR_URL, Secret
from judgebias.judges.soft import TOP
from judgebias.judges.transport import address, limits, quiet, received_headers, timeouts
from judgebias.judges.usage import openai_usage
from judgebias.judges.wire import End, Received, Spoken
from judgebias.judges.wire_form import WireForm
from judgebias.prompts import Prompt, Template, VerdictForm
from judgebias.prompts.form import TOOL_NAME
from judgebias.replies import Usage

_ENDS = {
    "stop": End.NATURAL,
    "tool_calls": End.NATURAL,
    "function_call": End.NATURAL,
    "length": End.CUT,
    "content_filter": End.FILTERED,
    "error": End.FAILED,
}


class _Client(AsyncOpenAI):
    """The SDK's client, kept to the configured key and address."""

    def __init__(self, config: WireJudge, key: Secret, window: int) -> None:
        http_client = DefaultAioHttpClient(
            limits=limits(window), timeout=timeouts(), follow_redirects=False
        )
        super().__init__(
            api_key=key.reveal(),
            base_url=config.base_url or VENDOR_URL["openai"],
            max_retries=0,
            timeout=timeouts(),
            http_client=http_client,
        )
        # The SDK took OPENAI_CUSTOM_HEADERS from the environment, which can replace the key.
        self._custom_headers = {}

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        """What every request carries; each header costs CPU, and a dozen tell of the platform."""
        headers: dict[str, str | Omit] = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "User-Agent": self.user_agent,
        }
        if self.organization:
            headers["OpenAI-Organization"] = self.organization
        if self.project:
            headers["OpenAI-Project"] = self.project
        return headers


def open_client(config: WireJudge, key: Secret, window: int) -> AsyncOpenAI:
    """Make a client for so many calls in flight; the address is always the configured one."""
    quiet("openai")
    return _Client(config, key, window)


class OpenAIWire:
    """Requests and replies of Chat Completions."""

    request_id_header = "x-request-id"

    def __init__(self, config: WireJudge, client: AsyncOpenAI, n_criteria: int = 0) -> None:
        self._config = config
        self._client = client
        self._schema = reply_schema(n_criteria)
        # The SDK parses a whole address once a call, and a path twice.
        self._url = address(config.base_url or VENDOR_URL["openai"], "/chat/completions")

    def body(self, prompt: Prompt, form: WireForm, budget: int) -> dict[str, object]:
        """Put a request together; `extra` has the last word."""
        body: dict[str, object] = {
            "model": self._config.model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            form.budget_field: budget,
        }
        if self._config.temperature is not None and "temperature" not in form.dropped:
            body["temperature"] = self._config.temperature
        if self._config.soft:
            body |= {"logprobs": True, "top_logprobs": TOP}
        return body | self._verdict(form.verdict) | self._config.extra

    def _verdict(self, form: VerdictForm) -> dict[str, object]:
        if form is VerdictForm.JSON_SCHEMA:
            described = {"name": TOOL_NAME, "strict": True, "schema": self._schema}
            return {"response_format": {"type": "json_schema", "json_schema": described}}
        if form is VerdictForm.TOOL:
            function = {"name": TOOL_NAME, "strict": True, "parameters": self._schema}
            return {
                "tools": [{"type": "function", "function": function}],
                "tool_choice": {"type": "function", "function": {"name": TOOL_NAME}},
            }
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
        """Find the first choice's message."""
        choice = dig(body, "choices", 0)
        message = dig(choice, "message")
        if not isinstance(message, dict):
            return None
        reason = string(dig(choice, "finish_reason"))
        refusal = string(dig(message, "refusal"))
        end = End.REFUSED if refusal else _ENDS.get(reason, End.UNKNOWN)
        return Spoken(
            text=_text(dig(message, "content")),
            tools=tuple(
                string(dig(tool, "function", "arguments"))
                for tool in elements(dig(message, "tool_calls"))
            ),
            end=end,
            detail=refusal or f"finish_reason {reason or None!r}",
            tokens=dig(choice, "logprobs", "content"),
        )

    def usage(self, body: object) -> Usage:
        """Read the usage by this wire's definition."""
        return openai_usage(body)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


def _text(content: object) -> str:
    """Take the text of a message; some servers send it in parts, thinking among them."""
    if isinstance(content, str):
        return content
    parts = [part for part in elements(content) if dig(part, "type") == "text"]
    return "".join(string(dig(part, "text")) for part in parts)


class OpenAIJudge(Asker):
    """A judge on Chat Completions."""

    def __init__(
        self,
        config: WireJudge,
        template: Template,
        key: Secret,
        client: AsyncOpenAI,
        *,
        gate: Gate | None = None,
        form: WireForm | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        wire = OpenAIWire(config, client, len(template.criteria))
        super().__init__(config, template, key, wire, gate=gate, form=form, sleep=sleep)
