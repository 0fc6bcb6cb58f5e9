"""Every disguise of an error, and what it means."""

from __future__ import annotations

import itertools
import json
import ssl
from datetime import UTC, datetime
from types import SimpleNamespace

import aiohttp
import httpx2
import openai
import pytest

from judgebias.judges.classify import classify, classify_exception, read_fault
from judgebias.judges.outcome import Halt, Outcome, RateLimited, Refused, Transient
from judgebias.replies import FailureKind
from tests.server import Action, faults

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def outcome_of(action: Action, **headers: str) -> Outcome:
    """Classify an error the way it would arrive."""
    text = str(action.body)
    told = {**action.headers, **{name.replace("_", "-"): v for name, v in headers.items()}}
    return classify(read_fault(action.status, json.loads(text), text), told, NOW)


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(faults.INSUFFICIENT_QUOTA, id="P-05-quota-429"),
        pytest.param(faults.ANTHROPIC_BILLING, id="P-05-billing-402"),
        pytest.param(faults.ANTHROPIC_SPEND_429, id="P-05-spend-429"),
        pytest.param(faults.ANTHROPIC_SPEND_400, id="P-05-spend-400"),
        pytest.param(faults.OPENROUTER_NO_CREDIT, id="P-05-openrouter-402"),
        pytest.param(
            faults.anthropic_error(
                400, "invalid_request_error", "Your credit balance is too low to use the API."
            ),
            id="P-05-credit-400",
        ),
        pytest.param(
            faults.anthropic_error(429, "rate_limit_error", "You hit the monthly spend cap."),
            id="P-05-tier-cap-429",
        ),
        pytest.param(
            Action(body='{"error": {"code": 402, "message": "Insufficient credits"}}'),
            id="P-05-in-a-200",
        ),
        pytest.param(
            Action(
                status=429,
                body='[{"error": {"status": "RESOURCE_EXHAUSTED", "details":'
                ' [{"violations": [{"quotaId": "RequestsPerDayPerProject"}]}]}}]',
            ),
            id="P-05-gemini-per-day",
        ),
        pytest.param(faults.WRONG_KEY, id="P-06-key"),
        pytest.param(faults.ANTHROPIC_WRONG_KEY, id="P-06-key-anthropic"),
        pytest.param(faults.FORBIDDEN, id="P-06-forbidden"),
        pytest.param(faults.ANTHROPIC_FORBIDDEN, id="P-06-forbidden-anthropic"),
        pytest.param(faults.ANTHROPIC_ON_HOLD, id="P-06-on-hold"),
        pytest.param(faults.NO_MODEL, id="P-06-model"),
        pytest.param(faults.ANTHROPIC_NO_MODEL, id="P-06-model-anthropic"),
        pytest.param(
            faults.openai_error(400, "API key not valid. Please pass a valid one.", code=400),
            id="P-06-key-400",
        ),
        pytest.param(
            faults.openai_error(400, "The model `x` does not exist.", code=None),
            id="P-06-model-400",
        ),
        pytest.param(faults.GONE, id="P-37-model-retired"),
        pytest.param(
            Action(status=307, body='{"error": "moved"}', headers={"location": "http://x"}),
            id="K-12-redirect",
        ),
    ],
)
def test_fatal_for_the_judge(action: Action) -> None:
    found = outcome_of(action)
    assert isinstance(found, Halt), found
    assert found.until is None
    assert found.do


@pytest.mark.parametrize(
    ("action", "kind", "parameter"),
    [
        pytest.param(faults.CONTEXT_LENGTH, "context_length", "", id="P-08-openai"),
        pytest.param(faults.ANTHROPIC_TOO_LARGE, "context_length", "", id="P-08-413"),
        pytest.param(
            faults.anthropic_error(400, "invalid_request_error", "prompt is too long: 9 > 8"),
            "context_length",
            "",
            id="P-08-anthropic",
        ),
        pytest.param(faults.AZURE_FILTER, "filtered", "", id="P-09-azure"),
        pytest.param(faults.MODERATED, "filtered", "", id="P-09-moderation"),
        pytest.param(faults.NO_TEMPERATURE, "bad_request", "temperature", id="P-07-temperature"),
        pytest.param(
            faults.ANTHROPIC_NO_TEMPERATURE, "bad_request", "temperature", id="P-07-anthropic"
        ),
        pytest.param(faults.NO_MAX_TOKENS, "bad_request", "max_tokens", id="P-07-max-tokens"),
        pytest.param(faults.NO_RESPONSE_FORMAT, "bad_request", "response_format", id="P-07-format"),
        pytest.param(faults.ANTHROPIC_NO_FORCED_TOOL, "bad_request", "tool_choice", id="P-07-tool"),
        pytest.param(
            faults.openai_error(500, "tools param requires --jinja flag", code=500),
            "bad_request",
            "tools",
            id="P-07-llama-cpp",
        ),
    ],
)
def test_fatal_for_the_call(action: Action, kind: str, parameter: str) -> None:
    found = outcome_of(action)
    assert isinstance(found, Refused), found
    assert (found.kind, found.parameter) == (FailureKind(kind), parameter)


@pytest.mark.parametrize(
    ("action", "headers", "after"),
    [
        pytest.param(faults.too_many("2"), {}, 2.0, id="P-01-openai"),
        pytest.param(faults.too_many_anthropic("2"), {}, 2.0, id="P-01-anthropic"),
        pytest.param(faults.ANTHROPIC_RAMP, {}, 1.0, id="P-01-ramp"),
        pytest.param(faults.GEMINI_TOO_MANY, {}, 38.0, id="P-01-gemini"),
        pytest.param(faults.AZURE_TOO_MANY, {}, None, id="P-02-azure"),
        pytest.param(faults.too_many(), {}, None, id="P-02-nothing-said"),
        pytest.param(
            faults.too_many(x_ratelimit_remaining_tokens="0", x_ratelimit_reset_tokens="6s"),
            {},
            6.0,
            id="P-02-reset",
        ),
        pytest.param(
            faults.openai_error(
                429,
                "You exceeded your current quota.",
                code=429,
                headers={"retry-after": "30"},
            ),
            {},
            30.0,
            id="P-01-gemini-wording",
        ),
        pytest.param(
            faults.openai_error(
                429,
                "Rate limit reached. Add a payment method at the billing page.",
                code="rate_limit_exceeded",
            ),
            {},
            None,
            id="P-02-speaks-of-billing",
        ),
        pytest.param(faults.OVERLOADED, {"retry_after": "3"}, 3.0, id="P-10-overloaded"),
        pytest.param(
            Action(body='{"error": {"code": "rate_limit_exceeded", "message": "slow"}}'),
            {},
            None,
            id="P-16-limit-in-a-200",
        ),
    ],
)
def test_rate_limits(action: Action, headers: dict[str, str], after: float | None) -> None:
    found = outcome_of(action, **headers)
    assert isinstance(found, RateLimited), found
    assert found.after_s == after


@pytest.mark.parametrize(
    ("told", "until"),
    [
        pytest.param("3600", "2026-11-30 13:00:00 UTC", id="P-03-hour"),
        pytest.param("1209600", "2026-12-14 12:00:00 UTC", id="P-03-fortnight"),
    ],
)
def test_a_long_wait_stops_with_its_time(told: str, until: str) -> None:
    found = outcome_of(faults.too_many(told))
    assert isinstance(found, Halt)
    assert found.until == until
    assert until in found.do


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(faults.SERVER_ERROR, id="P-10-500"),
        pytest.param(faults.UNAVAILABLE, id="P-10-503"),
        pytest.param(faults.OVERLOADED, id="P-10-529"),
        pytest.param(faults.ANTHROPIC_SERVER_ERROR, id="P-10-api-error"),
        pytest.param(faults.ANTHROPIC_TIMEOUT, id="P-10-504"),
        pytest.param(faults.ANTHROPIC_CONFLICT, id="P-10-409"),
        pytest.param(faults.ERROR_IN_200, id="P-16-upstream"),
        pytest.param(
            Action(body='{"error": {"code": "server_error", "message": "x"}}'),
            id="P-16-by-its-code",
        ),
        pytest.param(
            Action(body='{"type": "error", "error": {"type": "overloaded_error"}}'),
            id="P-16-anthropic",
        ),
    ],
)
def test_what_may_pass(action: Action) -> None:
    found = outcome_of(action)
    assert isinstance(found, Transient), found
    assert found.kind is FailureKind.SERVER
    assert not found.maybe_paid


def chained(*errors: BaseException) -> BaseException:
    """Chain errors as the SDK and its transport do; the first is what we catch."""
    for outer, inner in itertools.pairwise(errors):
        outer.__cause__ = inner
    return errors[0]


REQUEST = httpx2.Request("POST", "http://localhost", headers={"Authorization": "Bearer sk-abcdef"})
KEY = SimpleNamespace(host="localhost", port=1, ssl=True)


@pytest.mark.parametrize(
    ("cause", "maybe_paid"),
    [
        pytest.param(aiohttp.ClientConnectorDNSError(KEY, OSError()), False, id="P-31-dns"),
        pytest.param(aiohttp.ClientConnectorError(KEY, OSError()), False, id="P-31-refused"),
        pytest.param(aiohttp.ConnectionTimeoutError(), False, id="P-31-connect-timeout"),
        pytest.param(aiohttp.ServerDisconnectedError(), True, id="P-13-disconnected"),
        pytest.param(aiohttp.ClientPayloadError(), True, id="P-13-payload"),
    ],
)
def test_no_response(cause: BaseException, maybe_paid: bool) -> None:
    # The transport turns a disconnect into a connect timeout, and the SDK that into a timeout.
    error = chained(openai.APITimeoutError(REQUEST), httpx2.ConnectTimeout("x"), cause)
    found = classify_exception(error)
    assert found == Transient(
        kind=FailureKind.CONNECTION, message=found.message, maybe_paid=maybe_paid
    )
    assert "sk-" not in found.message


def test_p_31_an_untrusted_certificate_stops_the_judge() -> None:
    cause = aiohttp.ClientConnectorCertificateError(
        KEY, ssl.SSLCertVerificationError("self-signed")
    )
    error = chained(openai.APIConnectionError(request=REQUEST), httpx2.ConnectError("x"), cause)
    assert isinstance(classify_exception(error), Halt)
