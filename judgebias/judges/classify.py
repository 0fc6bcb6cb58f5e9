"""What an error means: for the judge, for the call, or for nothing but the moment.

One place for every provider, because compatible servers mix the vendors' vocabularies. The order
of the questions matters: money and keys come in several disguises (400, 402, 403, 429, a 200 with
an error inside), so they are recognised by what the server says before the status decides.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp

from judgebias.judges.body import dig, elements, string
from judgebias.judges.delays import reset, retry_after, retry_info, server_now
from judgebias.judges.outcome import Halt, Outcome, RateLimited, Refused, Transient
from judgebias.replies import FailureKind

LONGEST_WAIT_S = 120.0
"""A server that says to wait longer stops the judge instead of hanging the run."""
LONGEST_MESSAGE = 400

_MONEY_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_error",
        "billing_hard_limit_reached",
        "billing_not_active",
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "insufficient_credits",
        "insufficient_balance",
    }
)
_MONEY = re.compile(
    r"spend(ing)? (limit|cap)|credit balance|insufficient (credits?|funds|balance|quota)"
    r"|(specified|monthly) (api )?usage limit|out of credits|exceeded your current quota",
    re.IGNORECASE,
)
_KEY = re.compile(r"(api key|credentials?) (is )?(not valid|invalid)|invalid api key", re.I)
_MODEL = re.compile(r"model\b.{0,120}\b(does not exist|not found|not supported|is unknown)", re.I)
_CONTEXT = re.compile(
    r"context[_ ](length|window|size)|prompt is too long|input is too long|too many tokens"
    r"|maximum context|exceed_context_size|string_above_max_length",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content[_ ]?filter|content management policy|responsibleai", re.I)
_MODERATION = re.compile(r"moderation|flagged", re.IGNORECASE)
_PARAMETER = re.compile(
    r"\b(temperature|max_completion_tokens|max_tokens|response_format|output_config|json_schema"
    r"|tool_choice|tools|jinja|top_logprobs|logprobs)\b"
)
_NAMED_STATUS = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "invalid_request_error": 400,
    "overloaded_error": 529,
    "timeout_error": 504,
}
"""Statuses of errors that come inside a 200, by their type or code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """An error as the server words it, whatever its wire."""

    status: int
    code: str
    kind: str
    detail: str
    """Anthropic's `error_code`, Gemini's `status`."""
    message: str
    parameter: str
    error: object
    """The whole error object, for what only some servers say."""


def read_fault(status: int, body: object, text: str) -> Fault:
    """Find the error object of any wire; `text` is shown where there is none."""
    body = dig(body, 0) if elements(body) else body
    error = dig(body, "error") or body
    code = dig(error, "code")
    # OpenRouter and vLLM put the status into `code`, as a number or as digits.
    inside = int(code) if isinstance(code, int | str) and str(code).isdecimal() else 0
    message = string(dig(error, "message")) or string(error) or text
    names = (string(code), string(dig(error, "type")))
    if status == 200:
        named = next((_NAMED_STATUS[name] for name in names if name in _NAMED_STATUS), 500)
        status = inside if 400 <= inside < 600 else named
    return Fault(
        status=status,
        code=names[0],
        kind=names[1],
        detail=string(dig(error, "details", "error_code")) or string(dig(error, "status")),
        message=" ".join(message.split())[:LONGEST_MESSAGE],
        parameter=string(dig(error, "param")),
        error=error,
    )


def classify(fault: Fault, headers: Mapping[str, str], clock: datetime | None = None) -> Outcome:
    """Say what an error response means.

    Parameters
    ----------
    fault
        The error as read from the body.
    headers
        Of the response, names in lower case.
    clock
        Our own time, used where the response has no `Date`; None = now.
    """
    now = server_now(headers, clock or datetime.now(UTC))
    said = f"HTTP {fault.status}: {fault.message}"
    if fault.status == 429:
        return _limited(fault, headers, now, said)
    if _speaks_of_money(fault):
        return Halt(reason=said, do="mend the account or its limits, then run again")
    if fault.status in (400, 413, 422):
        return _bad_request(fault, said)
    if fault.status == 403 and _MODERATION.search(f"{fault.code} {fault.kind} {fault.message}"):
        return Refused(kind=FailureKind.FILTERED, message=said)
    if fault.status == 401 or fault.status == 403:
        return Halt(reason=said, do="check the key and what it may use, then run again")
    if fault.status == 404 or fault.status == 410:
        return Halt(reason=said, do="check model and base_url, then run again")
    if fault.status == 408:
        return Transient(kind=FailureKind.TIMEOUT, message=said, maybe_paid=True)
    if fault.status == 501 or (fault.status == 500 and "jinja" in fault.message):
        return _bad_request(fault, said)
    if fault.status == 409 or fault.status >= 500:
        return _failing(fault, headers, now, said)
    if fault.status < 400:
        return Halt(
            reason=f"{said or 'a redirect'} (the key is not taken to another address)",
            do="give the final address as base_url",
        )
    return Halt(reason=said, do="check model, base_url and extra, then run again")


def _speaks_of_money(fault: Fault) -> bool:
    names = {fault.code, fault.kind, fault.detail}
    return (
        fault.status == 402
        or bool(names & _MONEY_CODES)
        or (fault.status < 500 and bool(_MONEY.search(fault.message)))
    )


def _limited(fault: Fault, headers: Mapping[str, str], now: datetime, said: str) -> Outcome:
    delay = retry_after(headers, now) or retry_info(fault.error)
    daily = "PerDay" in str(fault.error)
    # Gemini words an ordinary rate limit as a quota; a delay says that it will pass.
    worded = delay is None and fault.code != "rate_limit_exceeded" and _speaks_of_money(fault)
    if worded or {fault.code, fault.kind, fault.detail} & _MONEY_CODES or daily:
        return Halt(reason=said, do="mend the account or its limits, then run again")
    return _waiting(delay or reset(headers, now), now, said)


def _waiting(delay: float | None, now: datetime, said: str) -> Outcome:
    if delay is None or delay <= LONGEST_WAIT_S:
        return RateLimited(after_s=delay, message=said)
    until = (now + timedelta(seconds=delay)).strftime("%Y-%m-%d %H:%M:%S UTC")
    return Halt(reason=said, do=f"run again after {until}", until=until)


def _failing(fault: Fault, headers: Mapping[str, str], now: datetime, said: str) -> Outcome:
    delay = retry_after(headers, now)
    if delay is not None and fault.status in (503, 529):
        return _waiting(delay, now, said)
    return Transient(kind=FailureKind.SERVER, message=said)


def _bad_request(fault: Fault, said: str) -> Outcome:
    words = f"{fault.code} {fault.kind} {fault.message}"
    if fault.status == 413 or _CONTEXT.search(words):
        return Refused(kind=FailureKind.CONTEXT_LENGTH, message=said)
    if _FILTER.search(words):
        return Refused(kind=FailureKind.FILTERED, message=said)
    if _KEY.search(fault.message):
        return Halt(reason=said, do="check the key, then run again")
    named = _PARAMETER.search(fault.parameter) or _PARAMETER.search(fault.message)
    parameter = named.group(1) if named else ""
    no_model = not parameter and _MODEL.search(fault.message)
    if fault.code == "model_not_found" or fault.parameter == "model" or no_model:
        return Halt(reason=said, do="check the model's name, then run again")
    return Refused(kind=FailureKind.BAD_REQUEST, message=said, parameter=parameter)


def classify_exception(error: BaseException) -> Transient | Halt:
    """Say what it means that no response came.

    The SDKs wrap what the transport raised, and their transport calls a connection that broke a
    timeout, so the whole chain of causes is looked at. Only the class is told on: the texts of
    some of these errors hold the request's headers.
    """
    chain = list(_causes(error))
    name = type(chain[-1]).__name__
    if any(isinstance(cause, ssl.SSLCertVerificationError | aiohttp.ClientConnectorCertificateError)
           for cause in chain):  # fmt: skip
        return Halt(
            reason=f"the server's certificate cannot be trusted ({name})",
            do="check base_url; a private authority goes into the file named by SSL_CERT_FILE",
        )
    if any(isinstance(cause, aiohttp.InvalidURL) for cause in chain):
        return Halt(reason="base_url is no address", do="check base_url")
    # Before a connection stands nothing can have been bought.
    unsent = any(
        isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        for cause in chain
    )
    kind = FailureKind.CONNECTION
    message = f"no connection ({name})" if unsent else f"the connection broke off ({name})"
    return Transient(kind=kind, message=message, maybe_paid=not unsent)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__
