"""(a) Kill -9 at random moments: the driver, a worker, the raylet, everything at once.

A run is killed a dozen times and started again by the same command each time. What was bought
twice is read from the server's log: an answer that was paid for and asked for again was lost by the
kill that came next.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from judgebias.journal.commit import EVERY_S
from scripts.forces.census import end, members
from scripts.forces.world import (
    FOREVER,
    IN_FLIGHT,
    Start,
    World,
    bill_lines,
    calls_of,
    differences,
    doubled,
    leftovers,
    passing,
    world,
)

KINDS = ("driver", "worker", "raylet", "worker", "everything")
"""A worker's death costs no start, so there are more of them."""
LATENCY_S = 0.1
PER_RUN = 10
PAIRS_PER_KILL = 130
"""A kill comes after some 250 requests and a start; so many pairs last that long."""
ORPHAN_S = 4.0
"""What is bought so long after a driver's death is bought by its orphans: a start takes longer."""
FLUSH_S = 0.4
"""Seconds that writing a frame takes on a machine that is busy with Ray's starts."""
EARLY = 0.2
"""Share of the kills that come while the command is still starting."""


@dataclass(frozen=True, kw_only=True)
class Blow:
    """One kill."""

    kind: str
    moment: str
    time: float
    in_flight: int
    """Requests that the server had accepted and not answered."""


@dataclass(frozen=True, kw_only=True)
class Extra:
    """What one kill cost."""

    blow: Blow
    again: int
    """Answers that were bought a second time because of it."""
    exposed: int
    """Answers under way, or on their way to the disk, when it came."""


def kill_loop(seed: int, kills: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Give the tables of the kill loop."""
    runs = max(1, round(kills / PER_RUN))
    shares = [kills // runs + (number < kills % runs) for number in range(runs)]
    extras: list[Extra] = []
    with calm_world(max(shares) * PAIRS_PER_KILL) as (pairs, calm):
        for number, share in enumerate(shares):
            kinds = [KINDS[place % len(KINDS)] for place in range(share)]
            row, found = run_under_kills(seed + number, kinds, pairs, calm)
            extras += found
            yield f"run {number + 1} of {runs} under kills", [row]
    yield "calls bought again, by kind of kill", [*_by(extras, "kind"), *_by(extras, "moment")]


@contextmanager
def calm_world(pairs: int) -> Iterator[tuple[int, Path]]:
    """Give the run directory of an undisturbed run over so many pairs."""
    with world(pairs, rules=FOREVER) as calm:
        yield pairs, calm.undisturbed()


def run_under_kills(
    seed: int, kinds: Sequence[str], pairs: int, calm: Path
) -> tuple[dict[str, Any], list[Extra]]:
    """Kill one run in these ways, in an order that the seed says; compare it with the calm one."""
    draw = random.Random(seed)
    kinds = draw.sample(kinds, len(kinds))
    began = time.monotonic()
    with world(pairs, rules=(*FOREVER, *passing(seed)), latency_s=LATENCY_S) as attacked:
        run = attacked.run_file("out")
        attack = Attack(attacked, run, draw)
        for kind in kinds:
            if not attack.strike(kind):
                break
        code = attack.finish()
        out = run.with_suffix("")
        extras = list(_extras(attack.blows, bill_lines(attacked)))
        row = {
            "seed": seed,
            "kills": len(attack.blows),
            "starts": len(attack.starts),
            "exit": code,
            "calls": calls_of(out)[0],
            "recorded_twice": doubled(out),
            "tables_that_differ": differences(calm, out),
            "bought_again": sum(extra.again for extra in extras),
            "beyond_exposed": sum(max(0, extra.again - extra.exposed) for extra in extras),
            "processes_left": attack.left(),
            "files_left": leftovers(out),
            "minutes": (time.monotonic() - began) / 60,
        }
        row["holds"] = (code, row["calls"]) == (3, 4 * pairs) and not any(
            row[name]
            for name in (
                *("recorded_twice", "tables_that_differ", "beyond_exposed"),
                *("processes_left", "files_left"),
            )
        )
        if code != 3:
            row["said"] = attack.starts[-1].last_words()
    return row, extras


class Attack:
    """One run and those who kill it."""

    def __init__(self, attacked: World, run: Path, draw: random.Random) -> None:
        self._world, self._run, self._draw = attacked, run, draw
        self.starts: list[Start] = [attacked.start(run)]
        self.blows: list[Blow] = []

    def strike(self, kind: str) -> bool:
        """Kill once; False when the run was complete before."""
        start = self._going()
        early = kind != "worker" and self._draw.random() < EARLY
        if early:
            self._watch(start, time.monotonic() + self._draw.uniform(0.0, 9.0))
        elif not self._asked(start, self._draw.randint(1, 250)):
            return False
        victims = self._victims(start, kind)
        while not victims and start.running:
            # Ray has not started it yet, or not again.
            self._watch(start, time.monotonic() + 0.5)
            victims = self._victims(start, kind)
        if not victims:
            return False
        in_flight = self._requests("in_flight")
        end(victims)
        moment = "starting" if early else "asking"
        self.blows.append(
            Blow(kind=kind, moment=moment, time=time.monotonic(), in_flight=in_flight)
        )
        if kind != "worker":
            start.wait(120)
            if self._draw.random() < 0.5:
                # Half of the time the next start comes while the orphans still live.
                psutil.wait_procs(list(start.seen.values()), timeout=30)
        return True

    def finish(self) -> int:
        """Let the run come to its end; returns the exit code."""
        return self._going().wait()

    def left(self) -> list[str]:
        """Describe the processes of all starts that are still there."""
        return [line for start in self.starts for line in start.gone()]

    def _going(self) -> Start:
        if not self.starts[-1].running:
            self.starts.append(self._world.start(self._run))
        return self.starts[-1]

    def _requests(self, name: str) -> int:
        found = self._world.server.bill()[name]
        return found if isinstance(found, int) else 0

    def _watch(self, start: Start, until: float) -> None:
        while time.monotonic() < until and start.running:
            start.look()
            time.sleep(0.2)

    def _asked(self, start: Start, more: int) -> bool:
        """Wait until so many more requests were made, and then for a random moment."""
        wanted = self._requests("requests") + more
        while start.running and self._requests("requests") < wanted:
            start.look()
            time.sleep(0.05)
        self._watch(start, time.monotonic() + self._draw.uniform(0.0, 0.4))
        return start.running

    def _victims(self, start: Start, kind: str) -> list[psutil.Process]:
        everybody = start.look()
        if kind == "driver":
            return everybody[:1]
        if kind == "everything":
            with suppress(ProcessLookupError):
                os.killpg(start.process.pid, signal.SIGKILL)
            return everybody
        found = members(start.process.pid, kind)
        return [self._draw.choice(found)] if found else []


def _extras(blows: Sequence[Blow], lines: Sequence[dict[str, Any]]) -> Iterator[Extra]:
    """Find what each kill cost in the server's log."""
    bought: defaultdict[str, list[float]] = defaultdict(list)
    for line in lines:
        if line["billed"] and not line["rule"]:
            bought[line["digest"]].append(line["time"])
    lost = [first for times in bought.values() for first, _ in pairwise(sorted(times))]
    ends = [blow.time + (0.0 if blow.kind == "worker" else ORPHAN_S) for blow in blows]
    begin = 0.0
    for blow, until in zip(blows, ends, strict=True):
        again = sum(begin < moment <= until for moment in lost)
        since = blow.time - LATENCY_S - EVERY_S - FLUSH_S
        exposed = sum(since < moment <= until for times in bought.values() for moment in times)
        yield Extra(blow=blow, again=again, exposed=max(exposed, 2 * IN_FLIGHT))
        begin = max(begin, until)


def _by(extras: Sequence[Extra], name: str) -> Iterator[dict[str, Any]]:
    kinds = sorted({getattr(extra.blow, name) for extra in extras})
    for kind in kinds:
        mine = [extra for extra in extras if getattr(extra.blow, name) == kind]
        again = sorted(extra.again for extra in mine)
        yield {
            "kill": kind,
            "kills": len(mine),
            "in_flight_max": max(extra.blow.in_flight for extra in mine),
            "again_median": statistics.median(again),
            "again_p90": again[min(len(again) - 1, int(0.9 * len(again)))],
            "again_max": again[-1],
            "again_in_all": sum(again),
            "window": 2 * IN_FLIGHT,
            "beyond_window": sum(extra.again > 2 * IN_FLIGHT for extra in mine),
        }
