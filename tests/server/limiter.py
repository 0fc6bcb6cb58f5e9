"""A provider's rate limit: refuses what is over it, and counts who came too fast."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.server.asked import Wire


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """What a key may do; 0 = no bound."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    in_flight: int = 0
    burst_s: float = 1.0
    """How many seconds' worth may come at once."""
    refuse: bool = True
    """Off: let everything through and only count the violations."""
    headers: bool = True
    """Whether answers tell the state of the limit, as OpenAI and Anthropic do and vLLM does not."""


class Bucket:
    """A token bucket that fills by the second."""

    def __init__(self, per_minute: int, burst_s: float, now: float) -> None:
        self.per_minute = per_minute
        self._rate = per_minute / 60
        self._size = max(1.0, self._rate * burst_s)
        self._level = self._size
        self._last = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` is there; more than the bucket holds counts as full."""
        self._fill(now)
        missing = min(amount, self._size) - self._level
        # A rounding error must not refuse what was told to come now.
        return missing / self._rate if missing > 1e-6 else 0.0

    def take(self, amount: float) -> None:
        """Use up `amount`; the level may fall below zero."""
        self._level -= amount

    def level(self, now: float) -> float:
        """What is there now."""
        self._fill(now)
        return self._level

    def refill_s(self, now: float) -> float:
        """Seconds until the bucket is full again."""
        self._fill(now)
        return (self._size - self._level) / self._rate

    def _fill(self, now: float) -> None:
        self._level = min(self._size, self._level + (now - self._last) * self._rate)
        self._last = now


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why a request was refused and when it may come again."""

    what: str
    wait_s: float


class Limiter:
    """One limit, shared by everyone who asks under it."""

    def __init__(self, limit: Limit, now: float) -> None:
        self.limit = limit
        requests, tokens = limit.requests_per_minute, limit.tokens_per_minute
        self._requests = Bucket(requests, limit.burst_s, now) if requests else None
        self._tokens = Bucket(tokens, limit.burst_s, now) if tokens else None
        self._minute: deque[float] = deque()
        self._second: deque[float] = deque()
        self.violations_minute = 0
        """Arrivals that were more than the limit within the 60 s before them."""
        self.violations_second = 0
        """Arrivals beyond a second's worth (rounded up) within the second before them."""
        self.refused = 0

    def admit(self, tokens: int, in_flight: int, now: float) -> Refusal | None:
        """Take the request's share, or say why not; `in_flight` includes this request."""
        self._watch(now)
        refusal = self._refusal(tokens, in_flight, now)
        if refusal is not None:
            self.refused += 1
            return refusal
        if self._requests is not None:
            self._requests.take(1)
        if self._tokens is not None:
            self._tokens.take(tokens)
        return None

    def _refusal(self, tokens: int, in_flight: int, now: float) -> Refusal | None:
        if not self.limit.refuse:
            return None
        if self.limit.in_flight and in_flight > self.limit.in_flight:
            return Refusal(what="concurrency", wait_s=0.1)
        for what, bucket, amount in (
            ("requests", self._requests, 1),
            ("tokens", self._tokens, tokens),
        ):
            wait = bucket.wait(amount, now) if bucket is not None else 0.0
            if wait > 0:
                return Refusal(what=what, wait_s=wait)
        return None

    def _watch(self, now: float) -> None:
        allowed = self.limit.requests_per_minute
        if not allowed:
            return
        if _arrive(self._minute, now, 60.0) > allowed:
            self.violations_minute += 1
        if _arrive(self._second, now, 1.0) > math.ceil(allowed / 60):
            self.violations_second += 1

    def headers(self, wire: Wire, now: float, wall: float) -> Mapping[str, str]:
        """Tell the state of the limit in the wire's own headers; `wall` is the server's clock."""
        if not self.limit.headers:
            return {}
        told: dict[str, str] = {}
        for what, bucket in (("requests", self._requests), ("tokens", self._tokens)):
            if bucket is None:
                continue
            left, reset = max(0, int(bucket.level(now))), bucket.refill_s(now)
            if wire == "openai":
                told[f"x-ratelimit-limit-{what}"] = str(bucket.per_minute)
                told[f"x-ratelimit-remaining-{what}"] = str(left)
                told[f"x-ratelimit-reset-{what}"] = go_duration(reset)
            else:
                name = f"anthropic-ratelimit-{what}"
                told[f"{name}-limit"] = str(bucket.per_minute)
                told[f"{name}-remaining"] = str(left)
                told[f"{name}-reset"] = rfc3339(wall + reset)
        return told


def _arrive(window: deque[float], now: float, width: float) -> int:
    window.append(now)
    while window[0] <= now - width:
        window.popleft()
    return len(window)


def go_duration(seconds: float) -> str:
    """Write a duration as OpenAI's headers do: `12ms`, `1.5s`, `6m0s`."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"


def rfc3339(wall: float) -> str:
    """Write a time as Anthropic's headers do, to the second and rounded up."""
    return datetime.fromtimestamp(math.ceil(wall), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
