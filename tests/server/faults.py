"""The vendors' own ways to fail, as actions: real statuses, headers and bodies."""

from __future__ import annotations

import json

from tests.server.script import Action

_TOO_MANY = "Rate limit reached for requests"


def openai_error(
    status: int,
    message: str,
    *,
    code: str | int | None,
    type: str = "invalid_request_error",
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> Action:
    """Answer with an error body of OpenAI's form."""
    error = {"message": message, "type": type, "param": param, "code": code}
    return Action(status=status, headers=headers or {}, body=json.dumps({"error": error}))


def anthropic_error(
    status: int,
    type: str,
    message: str,
    *,
    error_code: str = "",
    headers: dict[str, str] | None = None,
) -> Action:
    """Answer with an error body of Anthropic's form."""
    error: dict[str, object] = {"type": type, "message": message}
    if error_code:
        error["details"] = {"error_code": error_code, "error_visibility": "user_facing"}
    body = {"type": "error", "error": error, "request_id": "req_scripted"}
    return Action(status=status, headers=headers or {}, body=json.dumps(body))


def too_many(retry_after: str | None = None, **headers: str) -> Action:
    """Refuse with a 429 of OpenAI's form; `retry_after` is sent as given, nonsense included.

    Further headers are named with underscores: `x_ratelimit_reset_requests="1s"`.
    """
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if retry_after is not None:
        sent["retry-after"] = retry_after
    return openai_error(429, _TOO_MANY, code="rate_limit_exceeded", type="requests", headers=sent)


def too_many_anthropic(retry_after: str | None = None, **headers: str) -> Action:
    """Refuse with a 429 of Anthropic's form."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if retry_after is not None:
        sent["retry-after"] = retry_after
    return anthropic_error(429, "rate_limit_error", _TOO_MANY, headers=sent)


RETRY_AFTER_FORMS: dict[str, dict[str, str]] = {
    "seconds": {"retry-after": "2"},
    "fraction": {"retry-after": "0.5"},
    "milliseconds": {"retry-after-ms": "1500"},
    "http_date": {"retry-after": "{http_date+2}"},
    "absent": {},
    "nonsense": {"retry-after": "soon"},
    "negative": {"retry-after": "-5"},
    "zero": {"retry-after": "0"},
    "nan": {"retry-after": "nan"},
    "past_date": {"retry-after": "{http_date-60}"},
    "hour": {"retry-after": "3600"},
    "fortnight": {"retry-after": "1209600"},
}
"""Every way a server tells how long to wait; merge one into an action's headers."""

INSUFFICIENT_QUOTA = openai_error(
    429,
    "You exceeded your current quota, please check your plan and billing details.",
    code="insufficient_quota",
    type="insufficient_quota",
)
WRONG_KEY = openai_error(401, "Incorrect API key provided: sk-te****key.", code="invalid_api_key")
FORBIDDEN = openai_error(403, "Country, region, or territory not supported", code="unsupported")
NO_MODEL = openai_error(
    404, "The model `no-such-model` does not exist", code="model_not_found", param="model"
)
CONTEXT_LENGTH = openai_error(
    400,
    "This model's maximum context length is 8192 tokens. Your messages had 9000 tokens.",
    code="context_length_exceeded",
    param="messages",
)
NO_TEMPERATURE = openai_error(
    400,
    "Unsupported value: 'temperature' does not support 0.0 with this model. "
    "Only the default (1) value is supported.",
    code="unsupported_value",
    param="temperature",
)
NO_MAX_TOKENS = openai_error(
    400,
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead.",
    code="unsupported_parameter",
    param="max_tokens",
)
NO_RESPONSE_FORMAT = openai_error(
    400,
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported.",
    code=None,
    param="response_format",
)
NO_LOGPROBS = openai_error(
    400, "'logprobs' is not supported with this model.", code="unsupported", param="logprobs"
)
SERVER_ERROR = openai_error(500, "The server had an error.", code=None, type="server_error")
UNAVAILABLE = openai_error(503, "The engine is overloaded.", code=None, type="server_error")
MODERATED = openai_error(403, "Your input was flagged.", code=403, type="moderation")
GONE = openai_error(410, "The model has been retired.", code="model_retired", param="model")

AZURE_FILTER = Action(
    status=400,
    body=json.dumps(
        {
            "error": {
                "message": "The response was filtered due to the prompt triggering the policy.",
                "type": None,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        }
    ),
)
AZURE_TOO_MANY = too_many(
    None,
    x_ratelimit_reset_requests="20",
    x_ratelimit_remaining_requests="-1",
    x_ratelimit_remaining_tokens="-1",
)
OPENROUTER_NO_CREDIT = Action(
    status=402,
    body=json.dumps(
        {
            "error": {
                "code": 402,
                "message": "Insufficient credits.",
                "metadata": {"limit_source": "account"},
            }
        }
    ),
)
ERROR_IN_200 = Action(
    body=json.dumps({"error": {"code": 502, "message": "The upstream provider failed."}})
)
NO_CHOICES = Action(body=json.dumps({"id": "x", "object": "chat.completion", "choices": []}))
NULL_CHOICES = Action(body=json.dumps({"id": "x", "object": "chat.completion", "choices": None}))
GEMINI_TOO_MANY = Action(
    status=429,
    body=json.dumps(
        {
            "error": {
                "code": 429,
                "message": "Resource has been exhausted.",
                "status": "RESOURCE_EXHAUSTED",
                "details": [
                    {
                        "@type": "type.googleapis.com/google.rpc.RetryInfo",
                        "retryDelay": "38s",
                    }
                ],
            }
        }
    ),
)

ANTHROPIC_WRONG_KEY = anthropic_error(401, "authentication_error", "invalid bearer token")
ANTHROPIC_BILLING = anthropic_error(402, "billing_error", "Your credit balance is too low.")
ANTHROPIC_FORBIDDEN = anthropic_error(403, "permission_error", "Your key may not use this model.")
ANTHROPIC_ON_HOLD = anthropic_error(
    403, "permission_error", "This organization is on hold.", error_code="organization_on_hold"
)
ANTHROPIC_NO_MODEL = anthropic_error(404, "not_found_error", "model: no-such-model")
ANTHROPIC_TOO_LARGE = anthropic_error(413, "request_too_large", "Request exceeds the maximum size")
ANTHROPIC_SPEND_400 = anthropic_error(
    400, "invalid_request_error", "You have reached your specified API usage limits (spend limit)."
)
ANTHROPIC_SPEND_429 = anthropic_error(
    429,
    "rate_limit_error",
    "The spend limit of this workspace has been reached.",
    error_code="enforced_spend_limit_reached",
)
ANTHROPIC_RAMP = anthropic_error(
    429,
    "rate_limit_error",
    "Usage grew too fast.",
    error_code="ramp_limit_exceeded",
    headers={"retry-after": "1"},
)
ANTHROPIC_NO_TEMPERATURE = anthropic_error(
    400, "invalid_request_error", "`temperature` is not supported for this model."
)
ANTHROPIC_NO_FORCED_TOOL = anthropic_error(
    400, "invalid_request_error", "tool_choice forces tool use, which this model does not support."
)
ANTHROPIC_CONFLICT = anthropic_error(409, "conflict_error", "Another request is being handled.")
ANTHROPIC_SERVER_ERROR = anthropic_error(500, "api_error", "Internal server error")
ANTHROPIC_TIMEOUT = anthropic_error(504, "timeout_error", "Request timed out")
OVERLOADED = anthropic_error(529, "overloaded_error", "Overloaded")

HTML = Action(body="<html><body>Please sign in.</body></html>", content_type="text/html")
EMPTY_BODY = Action(body="")
HALF_JSON = Action(truncate=40)
CUT_SHORT = Action(cut="short")
CUT_RESET = Action(cut="reset")
RESET = Action(reset=True)
HANG = Action(hang=True)
DRIP = Action(drip_bytes=1, drip_s=0.3)
