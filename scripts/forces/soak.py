"""(d) A long run with a fault every few seconds: memory, files, sockets, processes watched."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from judgebias.journal import JournalReader, read_journal
from scripts.forces.census import kind_of, members, slope
from scripts.forces.world import Start, World, doubled, leftovers, world
from tests.server import Rule, faults

PAIRS = 150_000
SIMULATED = 7
CALLS = 2_000_000
QUIET_SHARE = 0.5
"""For this last part of the time or of the calls nothing is killed: a leak shows in processes that
live."""
WARM_MIN = 1.5
"""Minutes that a process takes to fill its caches and pools."""
LEAK_MB_PER_MIN = 3.0
SAMPLE_S = 2.0
OURS = ("driver", "owner", "worker")


@dataclass(kw_only=True)
class Life:
    """What was seen of one process."""

    born: float
    kind: str = ""
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Minutes since it was first seen, and MB."""
    files: int = 0
    sockets: int = 0
    half_closed: int = 0


class Watch:
    """Samples every process of a run."""

    def __init__(self) -> None:
        self.lives: dict[int, Life] = {}
        self.zombies: Counter[int] = Counter()
        self.run_files = 0
        self._next = 0.0

    def look(self, start: Start, out: Path) -> None:
        """Take a sample when it is time for one."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + SAMPLE_S
        self.run_files = max(self.run_files, sum(1 for _ in out.rglob("*")) if out.exists() else 0)
        for process in start.look():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                self._sample(process, now)

    def _sample(self, process: psutil.Process, now: float) -> None:
        if process.status() == psutil.STATUS_ZOMBIE:
            self.zombies[process.pid] += 1
            return
        life = self.lives.setdefault(process.pid, Life(born=now))
        # Ray starts processes before it knows what they are for.
        life.kind = kind_of(process)
        life.memory.append(((now - life.born) / 60, process.memory_info().rss / 2**20))
        if life.kind in OURS:
            life.files = max(life.files, process.num_fds())
            states = [each.status for each in process.net_connections("tcp")]
            life.sockets = max(life.sockets, len(states))
            life.half_closed = max(life.half_closed, states.count(psutil.CONN_CLOSE_WAIT))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Sum up each kind of process; slopes are of the longest lives."""
        by_kind: defaultdict[str, list[Life]] = defaultdict(list)
        for life in self.lives.values():
            by_kind[life.kind].append(life)
        for kind, lives in sorted(by_kind.items()):
            longest = max(lives, key=lambda life: life.memory[-1][0])
            warm = [(at, mb) for at, mb in longest.memory if at > WARM_MIN]
            lasted = warm[-1][0] - warm[0][0] if warm else 0.0
            steady = slope(warm) if lasted > 1.0 else None
            yield {
                "process": kind,
                "lives": len(lives),
                "longest_min": longest.memory[-1][0],
                "memory_mb_max": max(mb for life in lives for _, mb in life.memory),
                "slope_mb_per_min": steady,
                "files_max": max(life.files for life in lives),
                "sockets_max": max(life.sockets for life in lives),
                "half_closed_max": max(life.half_closed for life in lives),
                # Ray's own processes are told of, and nothing is promised of them.
                "holds": kind not in OURS or steady is None or steady < LEAK_MB_PER_MIN,
            }


def long_run(seed: int, minutes: float) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Give the tables of the long run."""
    draw, watch, did = random.Random(seed), Watch(), Counter[str]()
    began = time.monotonic()
    with world(PAIRS, latency_s=0.05) as attacked:
        run = attacked.run_file("out", judges=_judges(attacked), engine_pairs_per_block=1024)
        out, starts = run.with_suffix(""), [attacked.start(run)]
        trouble = Trouble(attacked, draw, did)
        until, quiet = began + 60 * minutes, began + 60 * minutes * (1 - QUIET_SHARE)
        due = began + 60
        goal = Goal(out / "journal")
        while time.monotonic() < until and not goal.reached():
            watch.look(starts[-1], out)
            if time.monotonic() >= due:
                few = goal.rows < CALLS * (1 - QUIET_SHARE)
                trouble.make(starts[-1], kills=few and time.monotonic() < quiet)
                due = time.monotonic() + draw.uniform(3.0, 7.0)
            trouble.mend()
            if not starts[-1].running:
                starts.append(attacked.start(run))
                due = time.monotonic() + 40
            time.sleep(0.2)
        attacked.server.script()
        starts[-1].process.send_signal(signal.SIGINT)
        code = starts[-1].wait()
        left = [line for start in starts for line in start.gone()]
        open_still = _open_to(attacked.server.port)
        rows = read_journal(out / "journal", columns=("judge", "slot")).report.rows
        end = {
            "seed": seed,
            "minutes": (time.monotonic() - began) / 60,
            "calls": rows,
            "wire_requests": attacked.server.bill()["requests"],
            "starts": len(starts),
            "exit": code,
            "recorded_twice": doubled(out),
            "files_max": watch.run_files,
            "files_left": leftovers(out),
            "zombies": sum(times > 2 for times in watch.zombies.values()),
            "sockets_left": open_still,
            "processes_left": left,
        }
        wrong = ("recorded_twice", "files_left", "zombies", "sockets_left", "processes_left")
        end["holds"] = code in (0, 4) and not any(end[name] for name in wrong)
        if code not in (0, 4):
            end["said"] = starts[-1].last_words()
    yield "how it ended", [end]
    yield "faults", [dict(did)]
    yield "processes", list(watch.rows())


def _judges(attacked: World) -> list[dict[str, Any]]:
    simulated = {"provider": "simulated", "latency_s": 0.05, "max_in_flight": 32}
    judges = [{"name": f"s{number}", "seed": number, **simulated} for number in range(SIMULATED)]
    return [*judges, attacked.judges()[0]]


class Goal:
    """Whether enough calls are recorded; looked for once a minute, for it reads the journal."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._next = time.monotonic() + 60
        self.rows = 0
        """Calls that were recorded when it was last looked."""

    def reached(self) -> bool:
        """Look if it is time to."""
        if time.monotonic() >= self._next and self._journal.exists():
            self._next = time.monotonic() + 60
            with JournalReader(self._journal) as journal:
                self.rows = sum(journal.count().values())
        return self.rows >= CALLS


def _open_to(port: int) -> int:
    """Count connections to the server that are neither closed nor the server's own."""
    gone = (psutil.CONN_TIME_WAIT, psutil.CONN_LISTEN, psutil.CONN_NONE)
    return sum(
        bool(each.raddr) and each.raddr.port == port and each.status not in gone
        for each in psutil.net_connections("tcp")
    )


class Trouble:
    """Makes trouble, and ends what lasts only for a while."""

    def __init__(self, attacked: World, draw: random.Random, did: Counter[str]) -> None:
        self._world, self._draw, self._did = attacked, draw, did
        self._mend_at = float("inf")

    def make(self, start: Start, *, kills: bool) -> None:
        """Do one of the things that happen."""
        ways: dict[str, tuple[float, Callable[[Start], object]]] = {
            "unavailable": (3, lambda _: self._outage("unavailable")),
            "refused": (2, lambda _: self._outage("refused")),
            "reset": (2, lambda _: self._outage("reset")),
            "hang": (1, lambda _: self._outage("hang")),
            "storm_of_429": (3, lambda _: self._storm()),
        }
        if kills:
            ways |= {"worker_killed": (2, self._kill_worker), "driver_killed": (1, self._kill)}
        names = list(ways)
        name = self._draw.choices(names, [ways[each][0] for each in names])[0]
        ways[name][1](start)
        self._did[name] += 1

    def mend(self) -> None:
        """End a storm that has lasted."""
        if time.monotonic() >= self._mend_at:
            self._mend_at = float("inf")
            self._world.server.script()

    def _outage(self, kind: Any) -> None:
        self._world.server.outage(kind, self._draw.uniform(0.5, 3.0))
        # A server that refuses connections refuses those of its master as well.
        time.sleep(3.5)

    def _storm(self) -> None:
        self._world.server.script(Rule(action=faults.too_many("1")))
        self._mend_at = time.monotonic() + 2.0

    def _kill_worker(self, start: Start) -> None:
        found = members(start.process.pid, "worker")
        if found:
            self._draw.choice(found).kill()

    def _kill(self, start: Start) -> None:
        start.process.kill()
        start.process.wait()
