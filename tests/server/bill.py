"""What was asked and what is owed: every accepted request, counted where nobody can lose it."""

from __future__ import annotations

import os
from array import array
from collections import Counter, deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic_core import to_json

from tests.server.asked import Json

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_KEPT = 200_000
"""Entries kept in memory; the file has them all, and the counts cover all."""


@dataclass(kw_only=True, slots=True)
class Entry:
    """One accepted request; `delivered` is the only field that changes later."""

    number: int
    time: float
    """Monotonic clock of the server's machine, in seconds."""
    wire: str
    model: str
    digest: str
    """Hash of the request body."""
    auth: str
    """Hash of the key; the key itself is kept nowhere."""
    nth: int
    status: int
    """0 where nothing is sent."""
    input_tokens: int
    output_tokens: int
    billed: bool
    in_flight: int
    rule: str
    delivered: bool = False
    """Whether the whole answer was handed to the network while the client was there."""

    def to_json(self) -> Json:
        """Name every field."""
        return {name: getattr(self, name) for name in self.__slots__}


class Tally:
    """Counts of one model, or of all."""

    def __init__(self) -> None:
        self._times = array("d")
        self._passed = array("d")
        self.by_status: Counter[int] = Counter()
        self.in_flight = 0
        self.max_in_flight = 0
        self.billed = 0
        self.billed_not_delivered = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.distinct = 0
        self.duplicates = 0
        self.duplicates_after_answer = 0

    def arrive(self) -> None:
        """Count a request in flight."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def add(self, entry: Entry, *, billed_before: bool, answered_before: bool) -> None:
        """Count a request whose answer is decided."""
        self._times.append(entry.time)
        if entry.status != 429:
            self._passed.append(entry.time)
        self.by_status[entry.status] += 1
        if entry.billed:
            self.billed += 1
            self.billed_not_delivered += 1
            self.input_tokens += entry.input_tokens
            self.output_tokens += entry.output_tokens
            self.distinct += not billed_before
            self.duplicates += billed_before
            self.duplicates_after_answer += answered_before

    def to_json(self) -> dict[str, object]:
        """Sum up."""
        return {
            "requests": len(self._times),
            "by_status": {str(status): n for status, n in sorted(self.by_status.items())},
            "billed": self.billed,
            "billed_not_delivered": self.billed_not_delivered,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "distinct": self.distinct,
            "duplicates": self.duplicates,
            "duplicates_after_answer": self.duplicates_after_answer,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "peak_second": peak(self._times, 1.0),
            "peak_minute": peak(self._times, 60.0),
            "passed_peak_second": peak(self._passed, 1.0),
            "passed_peak_minute": peak(self._passed, 60.0),
            "first_time": self._times[0] if self._times else None,
            "last_time": self._times[-1] if self._times else None,
        }


class Bill:
    """The log and its sums; a body counts as answered once its 200 was delivered."""

    def __init__(self, log: Path | None = None) -> None:
        self.total = Tally()
        self.by_model: dict[str, Tally] = {}
        self.entries: deque[Entry] = deque(maxlen=_KEPT)
        self.unmarked = 0
        """Prompts in which the two answers were not found."""
        self._seen: dict[bytes, int] = {}
        self._billed: set[bytes] = set()
        self._answered: set[bytes] = set()
        self._file = None if log is None else os.open(log, _APPEND, 0o600)
        self._unwritten: list[bytes] = []

    def arrive(self, model: str, digest: bytes) -> int:
        """Count a request in flight; return how often this body has come."""
        self.total.arrive()
        self.tally(model).arrive()
        nth = self._seen.get(digest, 0) + 1
        self._seen[digest] = nth
        return nth

    def tally(self, model: str) -> Tally:
        """Find the counts of one model."""
        found = self.by_model.get(model)
        if found is None:
            found = self.by_model[model] = Tally()
        return found

    def add(self, entry: Entry, digest: bytes) -> bool:
        """Log a request whose answer is decided; True when the log waits to be written."""
        billed_before, answered_before = digest in self._billed, digest in self._answered
        for tally in (self.total, self.tally(entry.model)):
            tally.add(entry, billed_before=billed_before, answered_before=answered_before)
        if entry.billed:
            self._billed.add(digest)
        self.entries.append(entry)
        if self._file is None:
            return False
        self._unwritten.append(to_json(entry.to_json()))
        return len(self._unwritten) == 1

    def leave(self, entry: Entry, digest: bytes, *, delivered: bool) -> None:
        """Count a request out of flight."""
        entry.delivered = delivered
        for tally in (self.total, self.tally(entry.model)):
            tally.in_flight -= 1
            tally.billed_not_delivered -= entry.billed and delivered
        if delivered and entry.status == 200:
            self._answered.add(digest)

    def write(self) -> None:
        """Hand the waiting lines to the kernel, which keeps them when a process is killed."""
        if self._unwritten and self._file is not None:
            lines, self._unwritten = self._unwritten, []
            os.write(self._file, b"\n".join(lines) + b"\n")

    def close(self) -> None:
        """Write what waits and close the file."""
        self.write()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def to_json(self) -> dict[str, object]:
        """Sum up all models and each."""
        models = {model: tally.to_json() for model, tally in sorted(self.by_model.items())}
        return self.total.to_json() | {"unmarked": self.unmarked, "by_model": models}


def peak(times: array[float], width: float) -> int:
    """Count the most arrivals within any half-open window of `width` seconds."""
    if not times:
        return 0
    at = np.array(times)
    started = np.searchsorted(at, at - width, side="right")
    return int((np.arange(len(at)) - started).max()) + 1
