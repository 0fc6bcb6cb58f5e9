"""Limits as servers tell them, in every form they are told in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from judgebias.pace.headers import limits_told
from judgebias.pace.limits import Limits

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
SKEWED = "Mon, 30 Nov 2026 10:00:00 GMT"


def openai(scope: str, limit: str, remaining: str = "", reset: str = "") -> dict[str, str]:
    told = {"limit": limit, "remaining": remaining, "reset": reset}
    return {f"x-ratelimit-{what}-{scope}": text for what, text in told.items() if text}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, Limits()),
        ({"x-request-id": "r"}, Limits()),
        (openai("requests", "600", "599", "100ms"), Limits(requests=600)),
        (openai("tokens", "30000", "0", "1m0s"), Limits(tokens=30000)),
        (
            openai("requests", "500", "1", "12ms") | openai("tokens", "9000", "8000", "6s"),
            Limits(requests=500, tokens=9000),
        ),
        # A bucket of a day that fills in six hours, by whatever was taken from it.
        (openai("requests", "10000", "2800", "6h0m0s"), Limits(requests=20)),
        # Azure: whole seconds, and -1 where it does not know.
        (openai("requests", "300", "299", "1"), Limits(requests=300)),
        (openai("requests", "-1", "-1", "0"), Limits()),
        (openai("requests", "nan", "1", "1s") | openai("tokens", "many"), Limits()),
        (openai("requests", "inf"), Limits()),
        (
            {
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "49",
                "anthropic-ratelimit-requests-reset": "2026-11-30T12:00:02Z",
                "anthropic-ratelimit-tokens-limit": "90000",
                "anthropic-ratelimit-input-tokens-limit": "40000",
                "anthropic-ratelimit-output-tokens-limit": "8000",
            },
            Limits(requests=50, tokens=40000),
        ),
        # The server's clock is two hours behind ours: only its own Date counts.
        (
            {
                "date": SKEWED,
                "anthropic-ratelimit-requests-limit": "600",
                "anthropic-ratelimit-requests-remaining": "300",
                "anthropic-ratelimit-requests-reset": "2026-11-30T10:10:00Z",
            },
            Limits(requests=30),
        ),
    ],
)
def test_limits_are_read_by_the_minute(headers: dict[str, str], expected: Limits) -> None:
    assert limits_told(headers, NOW) == expected
