"""What an accepted response says about the limit that it fell under.

OpenAI and Azure say `x-ratelimit-*`, Anthropic says `anthropic-ratelimit-*`. A figure is taken for
a minute's, unless its reset shows that the limit takes longer than that to fill again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from judgebias.judges.delays import duration, moment, server_now
from judgebias.pace.limits import Limits

_MINUTE_S = 60.0
_SLACK_S = 5.0
_REQUESTS = ("requests",)
_TOKENS = ("tokens", "input-tokens")


def limits_told(headers: Mapping[str, str], clock: datetime | None = None) -> Limits:
    """Read the limits of either vendor; 0 where the response does not say.

    Parameters
    ----------
    headers
        Names in lower case.
    clock
        Our own time, used where the response has no `Date`; None = now.
    """
    if not any("ratelimit" in name for name in headers):
        return Limits()
    now = server_now(headers, clock or datetime.now(UTC))
    return Limits(
        requests=_strictest(headers, _REQUESTS, now), tokens=_strictest(headers, _TOKENS, now)
    )


def _strictest(headers: Mapping[str, str], scopes: tuple[str, ...], now: datetime) -> float:
    found = [_per_minute(headers, scope, now) for scope in scopes]
    return min((figure for figure in found if figure), default=0.0)


def _per_minute(headers: Mapping[str, str], scope: str, now: datetime) -> float:
    limit = _figure(headers, scope, "limit")
    remaining, reset_s = _figure(headers, scope, "remaining"), _reset_s(headers, scope, now)
    if limit is None or limit <= 0:
        return 0.0
    if remaining is None or reset_s is None or reset_s <= _MINUTE_S + _SLACK_S:
        return limit
    # A bucket of a day fills by so much a minute, however much of it is left.
    return max(0.0, limit - remaining) / reset_s * _MINUTE_S


def _figure(headers: Mapping[str, str], scope: str, what: str) -> float | None:
    """Read a figure; Azure's -1 and what is no number say nothing."""
    try:
        figure = float(_text(headers, scope, what))
    except ValueError:
        return None
    return figure if math.isfinite(figure) and figure >= 0 else None


def _reset_s(headers: Mapping[str, str], scope: str, now: datetime) -> float | None:
    text = _text(headers, scope, "reset")
    delay = duration(text)
    if delay is not None or not text:
        return delay
    at = moment(text)
    return None if at is None else (at - now).total_seconds()


def _text(headers: Mapping[str, str], scope: str, what: str) -> str:
    openai = headers.get(f"x-ratelimit-{what}-{scope}", "")
    return openai or headers.get(f"anthropic-ratelimit-{scope}-{what}", "")
