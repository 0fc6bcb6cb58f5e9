"""(a) The same judging by every way: calls a second, CPU time per call, memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scripts.benches.peers.layout import Row, median
from scripts.benches.peers.meter import Command
from scripts.benches.peers.scene import LONGEST_S, scene
from scripts.benches.peers.ways import Outcome, Way

COLUMNS = (
    *("calls_per_s", "command_s", "cpu_ms_all", "cpu_ms_more", "cpu_ms_asking", "cpu_s_start"),
    *("rss_mib", "pss_mib", "in_flight", "answered"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One undisturbed command."""

    calls: int
    exit: int | None
    command_s: float
    asking_s: float
    """From the first request to the last, as the server counts."""
    cpu_s: float
    cpu_ms_asking: float
    """CPU per call between the first quarter of the calls and the last."""
    rss_mib: float
    pss_mib: float
    in_flight: int
    """The most at once, as the server counts."""
    outcome: Outcome
    last_words: str


def trial(way: Way, calls: int) -> Trial:
    """Run a way once, with nobody in its way."""
    with scene(calls) as stage:
        command = stage.start(way)
        code = command.wait(LONGEST_S)
        arrivals, most = stage.arrivals(), stage.count("max_in_flight")
        stage.finish()
        return Trial(
            calls=stage.calls,
            exit=code,
            command_s=command.seconds,
            asking_s=arrivals[-1] - arrivals[0] if arrivals else 0.0,
            cpu_s=command.cpu_s,
            cpu_ms_asking=asking_cpu_ms(command, arrivals),
            rss_mib=command.rss_mib,
            pss_mib=command.pss_mib,
            in_flight=most,
            outcome=way.outcome(stage.folder),
            last_words="" if code == 0 else command.last_words(),
        )


def asking_cpu_ms(command: Command, arrivals: Sequence[float]) -> float:
    """Take the CPU per call of the middle half of the calls, where no start is in it."""
    if len(arrivals) < 4:
        return 0.0
    first, last = len(arrivals) // 4, 3 * len(arrivals) // 4
    used = command.cpu_at(arrivals[last]) - command.cpu_at(arrivals[first])
    return used / (last - first) * 1000


def figures(small: Trial, large: Trial) -> dict[str, float | None]:
    """Compare a trial with one of twice the calls: what a further call costs, and what a start."""
    more = large.calls - small.calls
    cpu_per_call = (large.cpu_s - small.cpu_s) / more
    return {
        "calls_per_s": (large.calls - 1) / large.asking_s if large.asking_s else None,
        "command_s": large.command_s,
        "cpu_ms_all": large.cpu_s / large.calls * 1000,
        "cpu_ms_more": cpu_per_call * 1000,
        "cpu_ms_asking": large.cpu_ms_asking,
        "cpu_s_start": small.cpu_s - small.calls * cpu_per_call,
        "rss_mib": large.rss_mib,
        "pss_mib": large.pss_mib,
        "in_flight": large.in_flight,
        "answered": large.outcome.answered,
    }


def judging(ways: Iterable[Way], calls: int, rounds: int) -> Iterator[Row]:
    """Give a row for each way; the rounds of all ways take turns, and medians count."""
    ways = list(ways)
    found: dict[str, list[dict[str, float | None]]] = {way.name: [] for way in ways}
    exits: dict[str, set[str]] = {way.name: set() for way in ways}
    for _ in range(rounds):
        for way in ways:
            pair = [trial(way, size) for size in (calls, 2 * calls)]
            found[way.name].append(figures(*pair))
            exits[way.name] |= {f"{one.exit}" for one in pair}
            for one in pair:
                if one.last_words:
                    print(f"{way.title} ended with {one.exit}: {one.last_words}", flush=True)
    for way in ways:
        medians: Row = {name: median(found[way.name], name) for name in COLUMNS}
        yield {"way": way.title, **medians, "exit": ", ".join(sorted(exits[way.name]))}
