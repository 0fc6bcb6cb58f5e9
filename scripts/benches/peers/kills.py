"""(b) Kill -9 at half of the calls, the same command again: what is bought twice, what is lost."""

from __future__ import annotations

from dataclasses import dataclass

from scripts.benches.peers.layout import Row
from scripts.benches.peers.scene import LONGEST_S, Scene, finish, scene
from scripts.benches.peers.ways import Way


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """What the server had counted at one time."""

    requests: int
    in_flight: int


def killed(way: Way, calls: int) -> Row:
    """Kill a way once, start it again at once, and count."""
    with scene(calls) as stage:
        first = stage.start(way)
        ended = first.wait(LONGEST_S, until=lambda: stage.count() >= stage.calls // 2)
        if ended is not None:
            said = first.last_words()
            return {"way": way.title, "calls": stage.calls, "exit": f"{ended}: {said[-80:]}"}
        moment = _now(stage)
        first.kill()
        again = stage.start(way)
        code = again.wait(LONGEST_S)
        finish([first, again])
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
