"""The counting server does over the socket what its script says, as both SDKs see it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, cast

import anthropic
import httpx2
import openai
import pytest

from tests.server import Action, CountingServer, Limit, Planted, Rule, ServerProcess, Setup, faults
from tests.server.faults import RETRY_AFTER_FORMS

KEY = "sk-test-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {
        "analysis": {"type": "string"},
        "clear": {"type": "boolean"},
        "points": {"type": "array", "items": {"type": "string"}},
        "verdict": {"$ref": "#/$defs/Verdict"},
    },
    "required": ["analysis", "clear", "points", "verdict"],
    "additionalProperties": False,
    "$defs": {"Verdict": {"type": "string", "enum": ["first", "second", "tie"]}},
}
OPENAI_FORMS: dict[str, dict[str, Any]] = {
    "text": {},
    "json_schema": {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
        }
    },
    "tool": {
        "tools": [{"type": "function", "function": {"name": "give", "parameters": SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "give"}},
    },
}
ANTHROPIC_FORMS: dict[str, dict[str, Any]] = {
    "text": {},
    "json_schema": {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    "tool": {
        "tools": [{"name": "give", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "give"},
    },
}


def prompt(first: str, second: str, *, left: str = "[[[", right: str = "]]]") -> str:
    """Both answers between the markers the server looks for."""
    lines = ["Which answer is better?"]
    for name, answer in (("first", first), ("second", second)):
        lines += [f"{left}{name} answer 1f00{right}", answer]
        lines += [f"{left}end of {name} answer 1f00{right}"]
    return "\n".join(lines)


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What the SDK gave back for one call."""

    headers: Any
    content: bytes
    reply: Any


async def ask_openai(
    server: CountingServer | ServerProcess, text: str, *, parse: bool = True, **more: Any
) -> Seen:
    """One call through the real SDK; the raw response, so that nothing is hidden."""
    timeout = more.pop("timeout", 5.0)
    async with openai.AsyncOpenAI(
        api_key=more.pop("key", KEY),
        base_url=server.openai_url,
        max_retries=0,
        timeout=timeout,
        http_client=httpx2.AsyncClient(trust_env=False, verify=False, timeout=timeout),
    ) as client:
        body: dict[str, Any] = {
            "model": "gpt-test",
            "messages": [{"role": "user", "content": text}],
        } | more
        raw = await client.chat.completions.with_raw_response.create(**body)
        content = raw.http_response.content
        return Seen(headers=raw.headers, content=content, reply=raw.parse() if parse else None)


async def ask_anthropic(
    server: CountingServer | ServerProcess, text: str, *, parse: bool = True, **more: Any
) -> Seen:
    """The same through Anthropic's SDK."""
    timeout = more.pop("timeout", 5.0)
    async with anthropic.AsyncAnthropic(
        api_key=more.pop("key", KEY),
        base_url=server.url,
        max_retries=0,
        timeout=timeout,
        http_client=httpx2.AsyncClient(trust_env=False, verify=False, timeout=timeout),
    ) as client:
        body: dict[str, Any] = {
            "model": "claude-test",
            "max_tokens": 1024,
            "messages": [{"role": "user", "content": text}],
        } | more
        raw = await client.messages.with_raw_response.create(**body)
        content = await raw.read()
        reply = await raw.parse() if parse else None
        return Seen(headers=raw.headers, content=content, reply=reply)


ASK: dict[str, Callable[..., Awaitable[Seen]]] = {"openai": ask_openai, "anthropic": ask_anthropic}
BOTH = pytest.mark.parametrize("wire", ["openai", "anthropic"])


def run(call: Awaitable[Seen]) -> Seen:
    async def main() -> Seen:
        return await call

    return asyncio.run(main())


def answers(wire: str, server: CountingServer, text: str = "x", **more: Any) -> Any:
    """The parsed object of one call."""
    return run(ASK[wire](server, text, **more)).reply


@pytest.fixture(scope="module")
def shared_server() -> Iterator[CountingServer]:
    with CountingServer(
        Setup(judges={"*": Planted(offset=0.2, quality=0, length_weight=1)})
    ) as one:
        yield one


@pytest.fixture
def server(shared_server: CountingServer) -> CountingServer:
    """The module's server with an empty script; its counts go on."""
    shared_server.script()
    return shared_server


def counts(server: CountingServer | ServerProcess) -> dict[str, Any]:
    return cast("dict[str, Any]", server.bill())


def said(wire: str, form: str, reply: Any) -> Any:
    """The verdict of a reply, read as a judge's user would."""
    if wire == "openai":
        message = reply.choices[0].message
        text = message.tool_calls[0].function.arguments if form == "tool" else message.content
    elif form == "tool":
        return reply.content[0].input["verdict"]
    else:
        text = reply.content[0].text
    return text.splitlines()[-1] if form == "text" else json.loads(text)["verdict"]


@BOTH
@pytest.mark.parametrize("form", ["text", "json_schema", "tool"])
@pytest.mark.parametrize(
    ("first", "second", "slot"),
    [("long " * 9, "short", "first"), ("short", "long " * 9, "second"), ("same", "same", "first")],
)
def test_verdict_follows_the_planted_judge_in_every_form(
    server: CountingServer, wire: str, form: str, first: str, second: str, slot: str
) -> None:
    forms = OPENAI_FORMS if wire == "openai" else ANTHROPIC_FORMS
    unmarked = counts(server)["unmarked"]
    reply = answers(wire, server, prompt(first, second), **forms[form])
    assert said(wire, form, reply) == (f"VERDICT: {slot}" if form == "text" else slot)
    assert counts(server)["unmarked"] == unmarked


def test_ordinary_answers_carry_what_the_vendors_send(server: CountingServer) -> None:
    raw = run(ask_openai(server, prompt("a", "b"), **OPENAI_FORMS["tool"]))
    reply = raw.reply
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert raw.headers["x-request-id"].startswith("req_")
    raw = run(ask_anthropic(server, prompt("a", "b"), **ANTHROPIC_FORMS["tool"]))
    message = raw.reply
    assert (message.stop_reason, message.content[0].type) == ("tool_use", "tool_use")
    assert message.usage.input_tokens > 0
    assert raw.headers["request-id"].startswith("req_")
    assert parsedate_to_datetime(raw.headers["date"]).tzinfo is not None


def test_logprobs_lean_to_the_verdict(server: CountingServer) -> None:
    asked = {"logprobs": True, "top_logprobs": 3} | OPENAI_FORMS["json_schema"]
    choice = answers("openai", server, prompt("a", "b" * 60), **asked).choices[0]
    assert "".join(token.token for token in choice.logprobs.content) == choice.message.content
    spoken = next(t for t in reversed(choice.logprobs.content) if t.token == "second")
    assert [top.token for top in spoken.top_logprobs] == ["second", "first", "tie"]
    assert spoken.top_logprobs[-1].logprob == -9999.0


@pytest.mark.parametrize(("left", "right"), [("[[[", "]]]"), ("<", ">")])
def test_answers_are_found_whatever_they_quote(left: str, right: str) -> None:
    quoted = f"{left}end of first answer 2e00{right}\n{left}second answer 2e00{right}\nme"
    seen: list[tuple[str, str]] = []

    def judge(first: str, second: str, _: str) -> Any:
        seen.append((first, second))
        return Planted()(first, second, "")

    with CountingServer(Setup(judges={"*": judge})) as own:
        for pair in ((quoted, "b"), ("", ""), ("a\n", "\nb\n")):
            answers("openai", own, prompt(*pair, left=left, right=right))
    assert seen == [(quoted, "b"), ("", ""), ("a\n", "\nb\n")]


def test_a_reasked_call_gets_the_same_verdict_and_noise_splits() -> None:
    judge = Planted(noise=1, quality=0)
    slots = {n: judge(f"a{n}", f"b{n}", "").slot for n in range(400)}
    assert slots == {n: judge(f"a{n}", f"b{n}", "").slot for n in range(400)}
    assert 150 < sum(slot == "first" for slot in slots.values()) < 250
    assert judge("", "", "one prompt") == judge("", "", "one prompt")


@pytest.mark.parametrize(
    ("action", "kind", "code"),
    [
        (faults.INSUFFICIENT_QUOTA, openai.RateLimitError, "insufficient_quota"),
        (faults.too_many("2"), openai.RateLimitError, "rate_limit_exceeded"),
        (faults.WRONG_KEY, openai.AuthenticationError, "invalid_api_key"),
        (faults.FORBIDDEN, openai.PermissionDeniedError, "unsupported"),
        (faults.NO_MODEL, openai.NotFoundError, "model_not_found"),
        (faults.CONTEXT_LENGTH, openai.BadRequestError, "context_length_exceeded"),
        (faults.NO_TEMPERATURE, openai.BadRequestError, "unsupported_value"),
        (faults.NO_MAX_TOKENS, openai.BadRequestError, "unsupported_parameter"),
        (faults.AZURE_FILTER, openai.BadRequestError, "content_filter"),
        (faults.OPENROUTER_NO_CREDIT, openai.APIStatusError, "402"),
        (faults.GEMINI_TOO_MANY, openai.RateLimitError, "429"),
        (faults.GONE, openai.APIStatusError, "model_retired"),
        (faults.SERVER_ERROR, openai.InternalServerError, None),
    ],
)
def test_openai_errors_reach_the_sdk(
    server: CountingServer, action: Action, kind: type[openai.APIStatusError], code: object
) -> None:
    billed = counts(server)["billed"]
    server.script(Rule(action=action))
    with pytest.raises(kind) as caught:
        answers("openai", server)
    assert (caught.value.status_code, caught.value.code) == (action.status, code)
    assert counts(server)["billed"] == billed


@pytest.mark.parametrize(
    ("action", "kind", "error_code"),
    [
        (faults.ANTHROPIC_WRONG_KEY, anthropic.AuthenticationError, None),
        (faults.ANTHROPIC_BILLING, anthropic.APIStatusError, None),
        (faults.ANTHROPIC_ON_HOLD, anthropic.PermissionDeniedError, "organization_on_hold"),
        (faults.ANTHROPIC_NO_MODEL, anthropic.NotFoundError, None),
        (faults.ANTHROPIC_SPEND_400, anthropic.BadRequestError, None),
        (faults.ANTHROPIC_SPEND_429, anthropic.RateLimitError, "enforced_spend_limit_reached"),
        (faults.ANTHROPIC_RAMP, anthropic.RateLimitError, "ramp_limit_exceeded"),
        (faults.ANTHROPIC_CONFLICT, anthropic.ConflictError, None),
        (faults.ANTHROPIC_TOO_LARGE, anthropic.APIStatusError, None),
        (faults.OVERLOADED, anthropic.APIStatusError, None),
    ],
)
def test_anthropic_errors_reach_the_sdk(
    server: CountingServer,
    action: Action,
    kind: type[anthropic.APIStatusError],
    error_code: str | None,
) -> None:
    server.script(Rule(action=action))
    with pytest.raises(kind) as caught:
        answers("anthropic", server)
    error = caught.value
    wanted = json.loads(str(action.body))["error"]["type"]
    assert (error.status_code, error.error_code, error.type) == (action.status, error_code, wanted)


@BOTH
@pytest.mark.parametrize("form", sorted(RETRY_AFTER_FORMS))
def test_retry_after_is_sent_in_every_form(server: CountingServer, wire: str, form: str) -> None:
    base = faults.too_many() if wire == "openai" else faults.too_many_anthropic()
    wanted = RETRY_AFTER_FORMS[form]
    server.script(Rule(action=Action(status=429, headers=wanted, body=base.body)))
    with pytest.raises((openai.RateLimitError, anthropic.RateLimitError)) as caught:
        answers(wire, server)
    headers = caught.value.response.headers
    sent = {name: headers[name] for name in ("retry-after", "retry-after-ms") if name in headers}
    if "date" not in form:
        assert sent == wanted
        return
    ahead = parsedate_to_datetime(sent["retry-after"]) - parsedate_to_datetime(headers["date"])
    assert ahead.total_seconds() == pytest.approx(2 if form == "http_date" else -60, abs=1)


@BOTH
@pytest.mark.parametrize(
    ("action", "kinds"),
    [
        (faults.HANG, (openai.APITimeoutError, anthropic.APITimeoutError)),
        (Action(delay_s=9), (openai.APITimeoutError, anthropic.APITimeoutError)),
        (faults.RESET, (openai.APIConnectionError, anthropic.APIConnectionError)),
        (faults.CUT_SHORT, (openai.APIConnectionError, anthropic.APIConnectionError)),
        (faults.CUT_RESET, (openai.APIConnectionError, anthropic.APIConnectionError)),
        (faults.HALF_JSON, (json.JSONDecodeError,)),
        (faults.EMPTY_BODY, (json.JSONDecodeError,)),
    ],
    ids=["hang", "delay", "reset", "cut_short", "cut_reset", "half_json", "empty_body"],
)
def test_broken_deliveries_are_billed_and_leave_nothing_in_flight(
    server: CountingServer, wire: str, action: Action, kinds: tuple[type[Exception], ...]
) -> None:
    before = counts(server)
    server.script(Rule(action=action))
    with pytest.raises(kinds):
        answers(wire, server, timeout=0.3)
    after = _settled(server)
    assert after["billed"] == before["billed"] + 1
    lost = json.JSONDecodeError not in kinds
    assert after["billed_not_delivered"] == before["billed_not_delivered"] + lost


def _settled(server: CountingServer) -> dict[str, Any]:
    """The bill once the server has noticed that its clients are gone."""
    until = time.monotonic() + 5
    while (bill := counts(server))["in_flight"] and time.monotonic() < until:
        asyncio.run(asyncio.sleep(0.01))
    assert bill["in_flight"] == 0
    return bill


@BOTH
def test_a_drip_defeats_the_sdk_timeout(server: CountingServer, wire: str) -> None:
    server.script(Rule(action=Action(drip_bytes=120, drip_s=0.15)))
    started = time.monotonic()
    reply = answers(wire, server, prompt("a", "b"), timeout=0.4)
    assert time.monotonic() - started > 0.4
    assert reply.model in ("gpt-test", "claude-test")


@BOTH
def test_html_in_a_200_is_a_str(server: CountingServer, wire: str) -> None:
    server.script(Rule(action=faults.HTML))
    assert isinstance(answers(wire, server), str)


@pytest.mark.parametrize("action", [faults.ERROR_IN_200, faults.NO_CHOICES, faults.NULL_CHOICES])
def test_an_error_in_a_200_is_an_object_without_choices(
    server: CountingServer, action: Action
) -> None:
    server.script(Rule(action=action))
    assert not answers("openai", server).choices


def test_raw_bytes_are_sent_as_they_are(server: CountingServer) -> None:
    server.script(Rule(action=Action(body=b'{"\xff"')))
    assert run(ask_openai(server, "x", parse=False)).content == b'{"\xff"'


@pytest.mark.parametrize(
    ("variant", "finish", "content"),
    [
        ("refusal", "stop", None),
        ("filtered", "content_filter", ""),
        ("thought_only", "length", None),
        ("empty", "stop", ""),
    ],
)
def test_openai_answers_without_a_verdict(
    server: CountingServer, variant: Any, finish: str, content: str | None
) -> None:
    server.script(Rule(action=Action(variant=variant)))
    choice = answers("openai", server, max_completion_tokens=300).choices[0]
    assert (choice.finish_reason, choice.message.content) == (finish, content)
    assert bool(choice.message.refusal) == (variant == "refusal")


@pytest.mark.parametrize(
    ("variant", "stop", "kinds"),
    [
        ("refusal", "refusal", []),
        ("thought_only", "max_tokens", ["thinking"]),
        ("empty", "end_turn", []),
        ("thinking", "end_turn", ["thinking", "text"]),
        ("truncated", "max_tokens", ["text"]),
    ],
)
def test_anthropic_answers_by_block(
    server: CountingServer, variant: Any, stop: str, kinds: list[str]
) -> None:
    server.script(Rule(action=Action(variant=variant)))
    reply = answers("anthropic", server)
    assert (reply.stop_reason, [block.type for block in reply.content]) == (stop, kinds)
    assert (reply.stop_details is not None) == (variant == "refusal")


def test_a_truncated_answer_spent_its_budget(server: CountingServer) -> None:
    server.script(Rule(action=Action(variant="truncated")))
    reply = answers("openai", server, max_completion_tokens=300)
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 300
    assert reply.usage.completion_tokens_details.reasoning_tokens > 200


@BOTH
@pytest.mark.parametrize(
    ("variant", "verdicts"),
    [
        ("two_equal_tools", ["first", "first"]),
        ("two_conflicting_tools", ["first", "second"]),
        ("outside", ["Both"]),
        ("duplicate_keys", ["second"]),
        ("no_tool", []),
    ],
)
def test_spoilt_tool_calls(
    server: CountingServer, wire: str, variant: Any, verdicts: list[str]
) -> None:
    server.script(Rule(action=Action(variant=variant)))
    forms = OPENAI_FORMS if wire == "openai" else ANTHROPIC_FORMS
    raw = run(ASK[wire](server, prompt("same", "same"), **forms["tool"]))
    reply = raw.reply
    if wire == "openai":
        calls = reply.choices[0].message.tool_calls or []
        found = [json.loads(call.function.arguments)["verdict"] for call in calls]
    else:
        found = [block.input["verdict"] for block in reply.content if block.type == "tool_use"]
    assert found == verdicts
    assert raw.content.count(b"verdict") == max(1, len(verdicts)) + (
        variant == "duplicate_keys"
    ) - (variant == "no_tool")


@BOTH
def test_spoilt_json(server: CountingServer, wire: str) -> None:
    forms = OPENAI_FORMS if wire == "openai" else ANTHROPIC_FORMS
    server.script(Rule(action=Action(variant="invalid_json")))
    with pytest.raises(json.JSONDecodeError):
        said(wire, "json_schema", answers(wire, server, "x", **forms["json_schema"]))
    server.script(Rule(action=Action(variant="ignores_form")))
    assert said(wire, "text", answers(wire, server, "x", **forms["json_schema"])).startswith("VERD")


@BOTH
def test_usage_can_be_missing_or_too_small(server: CountingServer, wire: str) -> None:
    server.script(Rule(action=Action(variant="no_usage"), times=1))
    assert answers(wire, server).usage is None
    server.script(Rule(action=Action(variant="short_usage")))
    usage = answers(wire, server, "word " * 4000).usage
    assert (usage.prompt_tokens if wire == "openai" else usage.input_tokens) == 512


@pytest.mark.parametrize(
    ("rule", "statuses"),
    [
        ({"skip": 1, "times": 2}, [200, 500, 500, 200]),
        ({"nth": (2, 2)}, [200, 500, 200, 200]),
        ({"number": (3, 0)}, [200, 200, 500, 500]),
        ({"model": "gpt-*"}, [500, 500, 500, 500]),
        ({"wire": "anthropic"}, [200, 200, 200, 200]),
        ({"contains": "ask"}, [500, 500, 500, 500]),
        ({"header": ("authorization", "other")}, [200, 200, 200, 200]),
        ({"fields": ("temperature", "messages")}, [500, 500, 500, 500]),
        ({"fields": ("temperature",)}, [200, 200, 200, 200]),
    ],
)
def test_rules_choose_requests(rule: dict[str, Any], statuses: list[int]) -> None:
    with CountingServer(Setup(rules=(Rule(action=faults.SERVER_ERROR, **rule),))) as own:
        assert post(own, ["ask"] * len(statuses)) == statuses


def post(own: CountingServer, texts: list[str]) -> list[int]:
    """The statuses of calls made one after the other, without an SDK."""
    headers = {"authorization": f"Bearer {KEY}"}
    with httpx2.Client(trust_env=False, headers=headers) as client:
        bodies = [{"model": "gpt-m", "messages": [{"role": "user", "content": t}]} for t in texts]
        url = f"{own.openai_url}/chat/completions"
        return [client.post(url, json=body).status_code for body in bodies]


def test_planted_failures_repeat_with_the_seed() -> None:
    failing = Rule(action=faults.UNAVAILABLE, probability=0.3, seed=7)

    def statuses() -> list[int]:
        with CountingServer(Setup(rules=(failing,))) as own:
            return post(own, [f"{n}" for n in range(200)])

    seen = statuses()
    assert seen == statuses()
    assert 40 <= seen.count(503) <= 80


def test_the_bill_counts_what_was_bought_twice() -> None:
    with CountingServer(Setup(rules=(Rule(action=faults.RESET, number=(1, 1)),))) as own:
        with pytest.raises(openai.APIConnectionError):
            answers("openai", own, "one")
        for text in ("one", "one", "two"):
            answers("openai", own, text)
        answers("anthropic", own, "one")
        bill = counts(own)
        log = own.log()
    assert (bill["requests"], bill["billed"], bill["distinct"]) == (5, 5, 3)
    assert (bill["duplicates"], bill["duplicates_after_answer"]) == (2, 1)
    assert bill["by_status"] == {"0": 1, "200": 4}
    assert bill["by_model"]["claude-test"]["requests"] == 1
    assert (bill["max_in_flight"], bill["peak_second"] <= bill["peak_minute"]) == (1, True)
    assert [entry["nth"] for entry in log] == [1, 2, 3, 1, 1]
    assert KEY not in json.dumps(log)
    assert len({entry["auth"] for entry in log}) == 1


def test_the_most_calls_in_flight_are_seen() -> None:
    async def crowd(own: CountingServer) -> None:
        await asyncio.gather(*[ask_openai(own, f"{n}") for n in range(5)])

    with CountingServer(Setup(latency_s=1.0)) as own:
        asyncio.run(crowd(own))
        assert counts(own)["max_in_flight"] == 5


@BOTH
def test_keys_are_checked_and_can_change(wire: str) -> None:
    with CountingServer(Setup(keys=frozenset({"other"}))) as own:
        with pytest.raises((openai.AuthenticationError, anthropic.AuthenticationError)):
            answers(wire, own)
        own.admit_keys(KEY)
        assert answers(wire, own).model.endswith("-test")


@BOTH
def test_the_limiter_refuses_what_is_too_fast(wire: str) -> None:
    limit = Limit(requests_per_minute=60, burst_s=2)
    with CountingServer(Setup(limits={"*": limit})) as own:
        headers = [run(ASK[wire](own, f"{n}")).headers for n in range(2)]
        with pytest.raises((openai.RateLimitError, anthropic.RateLimitError)) as caught:
            run(ASK[wire](own, "one too many"))
        bill = counts(own)
    assert caught.value.response.headers["retry-after"] == "1"
    name = "x-ratelimit-remaining-requests"
    name = name if wire == "openai" else "anthropic-ratelimit-requests-remaining"
    assert headers[0][name] == "1"
    assert bill["by_status"] == {"200": 2, "429": 1}
    sums = bill["limits"]["*"]
    assert (sums["refused"], sums["violations_minute"]) == (1, 0)


def test_a_limit_on_calls_in_flight() -> None:
    async def crowd(own: CountingServer) -> list[Any]:
        calls = [ask_openai(own, f"{n}") for n in range(3)]
        return await asyncio.gather(*calls, return_exceptions=True)

    with CountingServer(Setup(limits={"*": Limit(in_flight=2)}, latency_s=1.0)) as own:
        replies = asyncio.run(crowd(own))
    assert sum(isinstance(reply, openai.RateLimitError) for reply in replies) == 1


def test_absolute_times_follow_the_servers_clock() -> None:
    setup = Setup(limits={"*": Limit(requests_per_minute=60)}, clock_skew_s=3600)
    with CountingServer(setup) as own:
        headers = run(ask_anthropic(own, "x")).headers
    served = parsedate_to_datetime(headers["date"]).timestamp()
    reset = time.strptime(headers["anthropic-ratelimit-requests-reset"], "%Y-%m-%dT%H:%M:%SZ")
    assert served - time.time() == pytest.approx(3600, abs=5)
    assert parsedate_to_datetime(time.strftime("%a, %d %b %Y %H:%M:%S GMT", reset)).timestamp() == (
        pytest.approx(served + 1, abs=2)
    )


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("unavailable", openai.InternalServerError),
        ("reset", openai.APIConnectionError),
        ("refused", openai.APIConnectionError),
    ],
)
def test_an_outage_ends(kind: Any, error: type[Exception]) -> None:
    with CountingServer() as own:
        own.outage(kind, 0.5)
        with pytest.raises(error):
            answers("openai", own)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                assert answers("openai", own).choices
                break
            except error:
                continue
        else:
            pytest.fail("the outage did not end within 10 s")


@pytest.mark.parametrize(
    ("action", "start", "end"),
    [
        (faults.RESET, b"", ConnectionResetError),
        (faults.CUT_RESET, b"HTTP/1.1 200", ConnectionResetError),
        (faults.CUT_SHORT, b"HTTP/1.1 200", None),
    ],
)
def test_a_reset_is_a_reset_and_a_cut_is_an_end(
    server: CountingServer, action: Action, start: bytes, end: type[OSError] | None
) -> None:
    server.script(Rule(action=action))
    body = b'{"model": "m", "messages": [{"role": "user", "content": "x"}]}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nauthorization: k\r\ncontent-length: {len(body)}"
    received, ended = b"", None
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        client.sendall(head.encode() + b"\r\n\r\n" + body)
        try:
            while chunk := client.recv(65536):
                received += chunk
        except ConnectionResetError as error:
            ended = type(error)
    assert ended is end
    assert received.startswith(start)
    told = int(received.partition(b"content-length: ")[2].partition(b"\r")[0] or 1)
    assert len(received.partition(b"\r\n\r\n")[2]) == told // 2


def test_malformed_requests_are_refused_as_the_vendors_do(server: CountingServer) -> None:
    with pytest.raises(openai.BadRequestError):
        answers("openai", server, model="")
    with httpx2.Client(trust_env=False) as client:
        headers = {"authorization": f"Bearer {KEY}"}
        reply = client.post(f"{server.url}/v1/messages", json={"model": "m"}, headers=headers)
        assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")
        assert client.get(f"{server.url}/v1/models").status_code == 404
        chunked = iter([b'{"model": "m", "messages": ', b'[{"role": "user", "content": "x"}]}'])
        reply = client.post(
            f"{server.openai_url}/chat/completions", content=chunked, headers=headers
        )
        assert reply.status_code == 200
        assert client.post(f"{server.url}/_script", content='[{"when": 1}]').status_code == 400


def test_a_process_keeps_the_log_when_it_is_killed(tmp_path: Path) -> None:
    setup = Setup(judges={"*": Planted(offset=9)}, limits={"x": Limit(requests_per_minute=1)})
    with ServerProcess(tmp_path, setup) as process:
        assert b"first" in run(ask_openai(process, prompt("a", "b"))).content
        process.script(Rule(action=Action(status=500, body=b"\xff"), wire="openai", times=1))
        with pytest.raises(openai.InternalServerError):
            run(ask_openai(process, "x"))
        run(ask_anthropic(process, "x"))
        assert [entry["status"] for entry in process.log()] == [200, 500, 200]
        assert counts(process)["billed"] == 2
        process.outage("unavailable", 0.0)
        process.send_signal(signal.SIGKILL)
        lines = process.log_file.read_text().splitlines()
    assert [json.loads(line)["status"] for line in lines] == [200, 500, 200]
    assert KEY not in "".join(lines)


def test_only_data_crosses_processes(tmp_path: Path) -> None:
    setup = Setup(extract=lambda _: None)
    with pytest.raises(TypeError, match="only Markers"), ServerProcess(tmp_path, setup):
        pass
