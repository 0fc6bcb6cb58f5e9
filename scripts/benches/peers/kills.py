"""(b) Kill -9 at half of the calls, the same command again: what is bought twice, what is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from scripts.benches.peers.layout import Row, median
from scripts.benches.peers.scene import LONGEST_S, Scene, scene
from scripts.benches.peers.ways import Way


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """What the server had counted at one time."""

    requests: int
    in_flight: int


def kills(
    ways: Iterable[Way], calls: int, rounds: int, *, everything: bool
) -> Iterator[tuple[str, list[Row]]]:
    """Give a row for each way: medians over the rounds, and the most bought again in one.

    The command's process group is killed, or every process of its tree at the same time: Ray's
    workers have groups of their own and live a moment longer, in which they may finish.
    """
    ways = list(ways)
    found: dict[str, list[Row]] = {way.title: [] for way in ways}
    for _ in range(rounds):
        for way in ways:
            found[way.title].append(killed(way, calls, everything=everything))
    whom = "every process" if everything else "the process group"
    title = f"kill -9 of {whom} at half of {calls} calls, the same command again"
    yield f"{title}, medians of {rounds}", [joined(rows) for rows in found.values()]


def joined(rounds: Sequence[Row]) -> Row:
    """Make one row of a way's rounds."""
    names = dict.fromkeys(name for row in rounds for name in row)
    whole = {name: median(rounds, name) for name in names if name not in ("way", "exit")}
    most = max(
        (bought for row in rounds if (bought := row.get("bought_again")) is not None), default=None
    )
    exits = ", ".join(sorted({f"{row['exit']}" for row in rounds}))
    return {"way": rounds[0]["way"], **whole, "bought_again_most": most, "exit": exits}


def killed(way: Way, calls: int, *, everything: bool) -> Row:
    """Kill a way once, start it again at once, and count."""
    with scene(calls) as stage:
        first = stage.start(way)
        ended = first.wait(LONGEST_S, until=lambda: stage.count() >= stage.calls // 2)
        if ended is not None:
            said = first.last_words()
            return {"way": way.title, "calls": stage.calls, "exit": f"{ended}: {said[-80:]}"}
        moment = _now(stage)
        first.kill(everything=everything)
        again = stage.start(way)
        code = again.wait(LONGEST_S)
        stage.finish()
        outcome = way.outcome(stage.folder)
        return {
            "way": way.title,
            "calls": stage.calls,
            "asked_at_kill": moment.requests,
            "in_flight_at_kill": moment.in_flight,
            "bought_again": stage.count("duplicates"),
            "of_them_answered": stage.count("duplicates_after_answer"),
            "without_verdict": stage.calls - outcome.answered,
            "rows_twice": outcome.twice,
            "restart_s": again.seconds,
            "exit": f"{code}",
        }


def _now(stage: Scene) -> Moment:
    bill = stage.server.bill()
    return Moment(requests=int(str(bill["requests"])), in_flight=int(str(bill["in_flight"])))
