"""Telling a judge that cannot go on from a call that went wrong.

A fault of the configuration meets every call with the same words; an outage meets many calls in a
row. Both stop the judge, which is resumable, instead of turning a million calls into failures.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from judgebias.replies import FailureKind

FIRST_CALLS = 5
"""So many first calls that all fail in the same words are the configuration's fault."""
IN_A_ROW = 20
"""So many calls in a row that used up their tries are an outage."""
OUTAGE_S = 600.0
"""A server that answered nothing for so long is not waited for any more."""
TROUBLE = 5
"""So many requests in a row that failed are a reason to pause everybody."""

_ALIKE = frozenset(
    {
        FailureKind.BAD_REQUEST,
        FailureKind.SERVER,
        FailureKind.CONNECTION,
        FailureKind.TIMEOUT,
    }
)
_OUTAGE = _ALIKE - {FailureKind.BAD_REQUEST}
_VARYING = re.compile(r"[0-9a-f]{8,}|\d+", re.IGNORECASE)


class Streak:
    """Counts failures in a row, of requests and of calls."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failing_since = 0.0
        self._succeeded = False
        self._first: dict[bytes, str] = {}
        self._calls = 0
        self._requests = 0

    def success(self) -> None:
        """Start again: the judge answers."""
        self._succeeded = True
        self._calls = self._requests = 0
        self._first.clear()

    def request_replied(self) -> None:
        """Take note of a reply, though it holds no verdict: the server is there."""
        self._requests = 0

    def request_failed(self) -> bool:
        """Count a request that failed for a moment; True when everybody had better pause."""
        if not self._requests:
            self._failing_since = self._clock()
        self._requests += 1
        return self._requests % TROUBLE == 0

    @property
    def outlasted(self) -> bool:
        """Whether requests have failed for longer than anybody should wait."""
        lasted = self._clock() - self._failing_since
        return self._requests >= IN_A_ROW and lasted > OUTAGE_S

    def call_failed(self, key: bytes, kind: FailureKind, message: str) -> bool:
        """Count a call that failed for good; True when the judge had better stop."""
        if kind not in _ALIKE:
            self._calls = 0
            return False
        self._calls += kind in _OUTAGE
        if self._calls >= IN_A_ROW:
            return True
        if self._succeeded:
            return False
        self._first[key] = _VARYING.sub("#", message)
        alike = set(self._first.values())
        return len(self._first) >= FIRST_CALLS and len(alike) == 1
