"""Every form in which a server says how long to wait."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from judgebias.judges.delays import duration, moment, reset, retry_after, retry_info, server_now

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("12ms", 0.012),
        ("1h2m3s", 3723.0),
        ("1.5s", 1.5),
        ("2m", 120.0),
        ("1m30.5s", 90.5),
        ("20", 20.0),
        (" 38s ", 38.0),
        ("0s", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("soon", None),
        ("s", None),
        ("1d", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"retry-after": "2"}, 2.0, id="P-01-seconds"),
        pytest.param({"retry-after": "0.5"}, 0.5, id="P-01-fraction"),
        pytest.param({"retry-after-ms": "1500", "retry-after": "9"}, 1.5, id="P-01-ms-first"),
        pytest.param({"retry-after": "Mon, 30 Nov 2026 12:00:07 GMT"}, 7.0, id="P-01-date"),
        pytest.param({"retry-after": "3600"}, 3600.0, id="P-03-hour"),
        pytest.param({"retry-after": "-5"}, None, id="P-04-negative"),
        pytest.param({"retry-after": "0"}, None, id="P-04-zero"),
        pytest.param({"retry-after": "nan"}, None, id="P-04-nan"),
        pytest.param({"retry-after": "inf"}, None, id="P-04-infinite"),
        pytest.param({"retry-after": "4294967296"}, None, id="P-04-huge"),
        pytest.param({"retry-after": "Mon, 30 Nov 2026 11:59:00 GMT"}, None, id="P-04-past"),
        pytest.param({"retry-after": "soon"}, None, id="P-04-word"),
        pytest.param({}, None, id="P-02-absent"),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param(
            {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"},
            360.0,
            id="P-02-openai",
        ),
        pytest.param(
            {
                "x-ratelimit-remaining-requests": "12",
                "x-ratelimit-reset-requests": "8h0m0s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "12ms",
            },
            0.012,
            id="P-02-only-what-is-used-up",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-requests-remaining": "3",
                "anthropic-ratelimit-requests-reset": "2026-11-30T12:09:00Z",
                "anthropic-ratelimit-input-tokens-remaining": "0",
                "anthropic-ratelimit-input-tokens-reset": "2026-11-30T12:00:05Z",
            },
            5.0,
            id="P-02-anthropic",
        ),
        pytest.param({"x-ratelimit-reset-requests": "20"}, 20.0, id="P-02-azure-integer"),
        pytest.param(
            {"x-ratelimit-remaining-requests": "-1", "x-ratelimit-reset-requests": "20"},
            None,
            id="P-02-azure-minus-one",
        ),
        pytest.param({}, None, id="P-02-none"),
    ],
)
def test_reset_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert reset(headers, NOW) == (None if seconds is None else pytest.approx(seconds))


def test_gemini_says_it_in_the_body() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}
    assert retry_info({"details": [{"@type": "other"}, info]}) == 38.0
    assert retry_info({"details": "none"}) is None


def test_p_32_absolute_times_are_measured_by_the_servers_clock() -> None:
    headers = {
        "date": "Mon, 30 Nov 2026 13:00:00 GMT",
        "retry-after": "Mon, 30 Nov 2026 13:00:02 GMT",
    }
    assert retry_after(headers, server_now(headers, NOW)) == 2.0
    assert server_now({}, NOW) == NOW


@pytest.mark.parametrize("text", ["", "yesterday", "12"])
def test_what_is_no_time(text: str) -> None:
    assert moment(text) is None
