"""How long a server says to wait, in every form it is said in.

Seconds in every result. Absolute times are measured against the response's own `Date`, so a local
clock that is wrong changes nothing. A delay that means nothing (negative, zero, not a number, in
the past, longer than `NONSENSE_S`) reads as None: the caller's own backoff then decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from judgebias.judges.body import dig, elements, string

NONSENSE_S = 60 * 86_400.0
"""A delay of more than 60 days is taken for an error of the server's."""

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_UNITS = (3600.0, 60.0, 1.0, 0.001)
_SCOPES = ("requests", "tokens", "input-tokens", "output-tokens")


def duration(text: str) -> float | None:
    """Read `6m0s`, `1h2m`, `12ms`, `1.5s` or a bare number of seconds."""
    text = text.strip()
    match = _DURATION.fullmatch(text)
    if text and match:
        values = zip(match.groups(), _UNITS, strict=True)
        return sensible(sum(float(value) * unit for value, unit in values if value))
    return seconds(text)


def seconds(text: str) -> float | None:
    """Read a bare number of seconds."""
    try:
        return sensible(float(text))
    except ValueError:
        return None


def sensible(delay: float) -> float | None:
    """Drop delays that mean nothing."""
    return delay if math.isfinite(delay) and 0 < delay <= NONSENSE_S else None


def moment(text: str) -> datetime | None:
    """Read an HTTP date or an RFC 3339 time; one without a zone is taken for UTC."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        try:
            found = parsedate_to_datetime(text)
        except (ValueError, TypeError):
            return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def server_now(headers: Mapping[str, str], local: datetime) -> datetime:
    """Tell the time by the response's `Date`, or by our own clock where there is none."""
    return moment(headers.get("date", "")) or local


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Read `retry-after-ms`, then `retry-after` as seconds or as a date."""
    thousandths = seconds(headers.get("retry-after-ms", ""))
    if thousandths is not None:
        return sensible(thousandths / 1000)
    text = headers.get("retry-after", "")
    return seconds(text) or _until(text, now)


def retry_info(error: object) -> float | None:
    """Read Gemini's `RetryInfo`, which stands in the body: `"retryDelay": "38s"`."""
    for detail in elements(dig(error, "details")):
        if string(dig(detail, "@type")).endswith("RetryInfo"):
            return duration(string(dig(detail, "retryDelay")))
    return None


def reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """Tell when what is used up is there again, by the rate-limit headers of either vendor.

    Only limits with nothing remaining count; the longest of them decides. Where the server gives
    no remaining figures at all, the shortest reset does.
    """
    used_up: list[float] = []
    unknown: list[float] = []
    for scope in _SCOPES:
        remaining, text = _limit(headers, scope)
        delay = duration(text) or _until(text, now)
        if delay is not None and remaining == "0":
            used_up.append(delay)
        elif delay is not None and not remaining:
            unknown.append(delay)
    if used_up:
        return max(used_up)
    return min(unknown) if unknown else None


def _limit(headers: Mapping[str, str], scope: str) -> tuple[str, str]:
    """Find (remaining, reset) of one limit, as OpenAI and Azure or as Anthropic name it."""
    for name in (f"x-ratelimit-{{}}-{scope}", f"anthropic-ratelimit-{scope}-{{}}"):
        text = headers.get(name.format("reset"), "")
        if text:
            return headers.get(name.format("remaining"), "").strip(), text
    return "", ""


def _until(text: str, now: datetime) -> float | None:
    found = moment(text) if text else None
    return None if found is None else sensible((found - now).total_seconds())
