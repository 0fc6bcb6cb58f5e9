"""What the user sees while a run goes on: a live line on a terminal, plain lines elsewhere.

A screen never decides anything and never ends a run: a closed terminal is not a reason to lose
replies that were paid for.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from judgebias.progress import Progress

PLAIN_EVERY_S = 5.0
_NOT_CALLS = frozenset({"in_flight", "cost_usd"})


class Screen:
    """Writes to one stream, stderr by default, so that stdout holds results only."""

    def __init__(
        self, stream: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic
    ):
        self._stream = stream or sys.stderr
        # A process may be started without the stream: then there is nobody to tell.
        self._live = self._stream is not None and self._stream.isatty()
        self._clock = clock
        self._missing = 0
        self._by_judge: dict[str, int] = {}
        self._started = 0.0
        self._first = (0.0, 0)
        self._said = 0.0
        self._width = 0
        self._deaths = 0

    def say(self, line: str) -> None:
        """Write one line that stays."""
        self._write(f"\r{' ' * self._width}\r{line}\n" if self._width else f"{line}\n")
        self._width = 0

    def start(self, missing: Mapping[str, int]) -> None:
        """Begin to show progress towards this many calls per judge."""
        self._missing = sum(missing.values())
        self._by_judge = dict(missing)
        self._started = self._clock()
        self._first = (0.0, 0)
        self._said = self._started

    def progress(self, progress: Progress) -> None:
        """Show where the run stands; called a few times a second."""
        now = self._clock()
        if progress.deaths > self._deaths:
            self._deaths = progress.deaths
            self.say(f"a worker process died ({self._deaths} so far); another takes its blocks")
        ended = _ended(progress.counters)
        if ended and not self._first[1]:
            # Ray's own start is no part of the rate.
            self._first = (now, ended)
        line = self._line(progress, ended, now)
        if self._live:
            self._write(f"\r{line.ljust(self._width)}")
            self._width = len(line)
        elif now - self._said >= PLAIN_EVERY_S:
            self._said = now
            self._write(f"{line}\n")

    def finish(self) -> None:
        """End the live line."""
        if self._width:
            self._write("\n")
            self._width = 0

    def _line(self, progress: Progress, ended: int, now: float) -> str:
        if not ended:
            return f"starting Ray and its workers, {now - self._started:.0f} s"
        failed = sum(_failed(counts) for counts in progress.counters.values())
        in_flight = sum(int(counts.get("in_flight", 0)) for counts in progress.counters.values())
        since, before = self._first
        rate = (ended - before) / (now - since) if now > since else 0.0
        # A dead worker's last calls are asked again, so more may end than were missing.
        again = max(0, ended - self._missing)
        left = f", {_span(max(0, self._missing - ended) / rate)} left" if rate else ""
        parts = [
            f"{ended - again:,} of {self._missing:,} calls ({(ended - again) / self._missing:.0%})",
            *([f"{again:,} asked again"] if again else []),
            f"{rate:,.0f} calls/s",
            f"{failed:,} failed",
            f"{in_flight:,} in flight",
            f"{progress.workers} workers",
        ]
        if spent := sum(counts.get("cost_usd", 0.0) for counts in progress.counters.values()):
            # The dearer judges may be the slower ones: their calls are counted apart.
            parts.append(f"{spent:,.2f} USD spent, {self._forecast(progress):,.2f} at the end")
        return ", ".join(parts) + left

    def _forecast(self, progress: Progress) -> float:
        """Say what this start of the command will have cost, at each judge's mean until now."""
        whole = 0.0
        for judge, counts in progress.counters.items():
            ended = _ended({judge: counts})
            left = max(0, self._by_judge.get(judge, 0) - ended)
            whole += counts.get("cost_usd", 0.0) * (1 + left / ended if ended else 1.0)
        return whole

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        # A closed pipe or terminal must not end a run.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def _ended(counters: Mapping[str, Mapping[str, float]]) -> int:
    return sum(
        int(number)
        for counts in counters.values()
        for what, number in counts.items()
        if what not in _NOT_CALLS
    )


def _failed(counts: Mapping[str, float]) -> int:
    kinds = counts.keys() - _NOT_CALLS - {"verdicts"}
    return sum(int(counts[kind]) for kind in kinds)


def _span(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
