from __future__ import annotations

import io

import pytest

from judgebias.cli.screen import PLAIN_EVERY_S, Screen, _span
from judgebias.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


class Shown:
    """A screen on a clock of its own."""

    def __init__(self, stream: io.StringIO) -> None:
        self.now = 50.0
        self.stream = stream
        self.screen = Screen(stream, clock=lambda: self.now)

    def at(self, seconds: float, *, deaths: int = 0, **counts: float) -> None:
        self.now = 50.0 + seconds
        counters = {"j": counts} if counts else {}
        self.screen.progress(Progress(counters=counters, workers=2, deaths=deaths, halted={}))


def test_a_dead_worker_is_said_once_for_each_death() -> None:
    shown = Shown(io.StringIO())
    shown.screen.start({"j": 10})
    for second, deaths in enumerate([0, 1, 1, 3]):
        shown.at(second, deaths=deaths)
    assert shown.stream.getvalue().splitlines() == [
        "a worker process died (1 so far); another takes its blocks",
        "a worker process died (3 so far); another takes its blocks",
    ]


def test_plain_lines_come_every_few_seconds() -> None:
    shown = Shown(io.StringIO())
    shown.screen.start({"j": 600, "k": 400})
    for tenth in range(101):
        shown.at(tenth / 10, verdicts=tenth)
    lines = shown.stream.getvalue().splitlines()
    assert len(lines) == 10 // PLAIN_EVERY_S
    assert lines[0].startswith("50 of 1,000 calls (5%), 10 calls/s, 0 failed, 0 in flight")
    assert lines[0].endswith("2 workers, 1 min 35 s left")
    assert "\r" not in shown.stream.getvalue()


def test_more_calls_than_were_missing_are_calls_asked_again() -> None:
    shown = Shown(io.StringIO())
    shown.screen.start({"j": 100})
    shown.at(0, verdicts=1)
    shown.at(PLAIN_EVERY_S, verdicts=112)
    (line,) = shown.stream.getvalue().splitlines()
    assert line.startswith("100 of 100 calls (100%), 12 asked again, ")


def test_failures_count_as_ended_and_what_is_no_call_does_not() -> None:
    shown = Shown(io.StringIO())
    shown.screen.start({"j": 100})
    shown.at(6, verdicts=8, timeout=1, server=1, in_flight=7, cost_usd=99.5)
    line = shown.stream.getvalue()
    assert line.startswith("10 of 100 calls (10%), 0 calls/s, 2 failed, 7 in flight")


def test_spend_and_forecast_are_shown_by_each_judges_own_mean() -> None:
    shown = Shown(io.StringIO())
    shown.screen.start({"dear": 100, "cheap": 100})
    shown.now += 6
    counters = {
        "dear": {"verdicts": 10.0, "cost_usd": 2.0},
        "cheap": {"verdicts": 50.0, "cost_usd": 0.5},
    }
    shown.screen.progress(Progress(counters=counters, workers=2, deaths=0, halted={}))
    # 100 at 0.20 and 100 at 0.01: not 200 at the mean of both.
    assert "2.50 USD spent, 21.00 at the end" in shown.stream.getvalue()


def test_rays_own_start_is_no_part_of_the_rate() -> None:
    shown = Shown(io.StringIO())
    shown.screen.start({"j": 1000})
    shown.at(0)
    shown.at(6)
    assert shown.stream.getvalue() == "starting Ray and its workers, 6 s\n"
    shown.at(8, verdicts=100)
    shown.at(12, verdicts=300)
    assert "300 of 1,000 calls (30%), 50 calls/s" in shown.stream.getvalue()


def test_calls_that_are_asked_again_leave_no_negative_time() -> None:
    shown = Shown(io.StringIO())
    shown.screen.start({"j": 100})
    shown.at(0, verdicts=50)
    shown.at(6, verdicts=110)
    assert shown.stream.getvalue().endswith("2 workers, 0 s left\n")


def test_a_terminal_has_one_live_line() -> None:
    shown = Shown(Terminal())
    shown.screen.start({"j": 100})
    shown.at(1, verdicts=100, in_flight=100)
    long = shown.stream.getvalue()
    assert long.startswith("\r100 of 100 calls")
    shown.screen.say("a notice")
    said = shown.stream.getvalue()[len(long) :]
    assert said == f"\r{' ' * (len(long) - 1)}\ra notice\n"
    shown.at(2, verdicts=100)
    shown.screen.finish()
    shown.screen.finish()
    assert shown.stream.getvalue().count("\n") == 2


def test_a_shorter_live_line_covers_the_longer_one() -> None:
    shown = Shown(Terminal())
    shown.screen.start({"j": 100})
    shown.at(1, verdicts=100, in_flight=10_000)
    shown.at(2, verdicts=100, in_flight=1)
    first, second = shown.stream.getvalue().split("\r")[1:]
    assert len(second) >= len(first)


@pytest.mark.parametrize("stream", [Closed(), io.StringIO()])
def test_a_closed_stream_ends_no_run(stream: io.StringIO) -> None:
    if type(stream) is io.StringIO:
        stream.close()
    shown = Shown.__new__(Shown)
    shown.now, shown.stream = 50.0, stream
    shown.screen = Screen(Terminal(), clock=lambda: shown.now)
    shown.screen._stream = stream
    shown.screen.start({"j": 10})
    shown.at(6, verdicts=1)
    shown.screen.say("a notice")
    shown.screen.finish()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (61, "1 min 01 s"),
        (3599.6, "1 h 00 min"),
        (90_061, "25 h 01 min"),
    ],
)
def test_spans(seconds: float, words: str) -> None:
    assert _span(seconds) == words
