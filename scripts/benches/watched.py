"""A command in a process of its own, with what each process below it holds, and when."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

EVERY_S = 0.5
DRIVER = "driver"
_KINDS = {"RunOwner": "owner", "Worker": "worker", "ray::": "other ray actor"}


@dataclass(frozen=True, slots=True)
class Seen:
    """One process at one moment."""

    time: float
    """Seconds since 1970."""
    kind: str
    """driver, worker, owner, or what else Ray started."""
    pid: int
    rss: int
    """Bytes of memory that are resident, shared ones included."""
    most: int
    """The most that ever were, between two looks as well."""
    cpu_s: float


@dataclass(kw_only=True, slots=True)
class Watched:
    """What was seen of a command from its start to its end."""

    started: float
    ended: float = 0.0
    code: int | None = None
    lines: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    """What it said on stderr, with the time."""
    seen: list[Seen] = field(default_factory=list[Seen])
    looks_at_files: bool = False
    journal_opened: float | None = None
    """When the driver was first seen with a segment of the journal open."""

    def said(self, words: str) -> float:
        """Tell when a line with these words came."""
        return next(at for at, line in self.lines if words in line)

    def peak_mib(self, kind: str) -> float | None:
        """Give the most memory that any one process of this kind ever held, as the kernel knows."""
        sizes = [one.most for one in self.seen if one.kind == kind]
        return max(sizes) / 2**20 if sizes else None

    def seen_mib(self, kind: str, start: float, end: float) -> float | None:
        """Give the most that one of them was seen to hold between two moments."""
        sizes = [one.rss for one in self.seen if one.kind == kind and start <= one.time <= end]
        return max(sizes) / 2**20 if sizes else None

    def cpu_s(self, kind: str, start: float = 0.0, end: float = float("inf")) -> float:
        """Give the CPU that processes of this kind used between two moments."""
        spent: dict[int, tuple[float, float]] = {}
        for one in self.seen:
            if one.kind == kind and start <= one.time <= end:
                first, _ = spent.get(one.pid, (one.cpu_s, one.cpu_s))
                spent[one.pid] = first, one.cpu_s
        return sum(last - first for first, last in spent.values())

    def ray_gone(self) -> float:
        """Tell when the last process that Ray started was seen."""
        return max((one.time for one in self.seen if one.kind != DRIVER), default=self.ended)


@contextmanager
def watched(run: Path, *, files: bool = False) -> Generator[tuple[subprocess.Popen[str], Watched]]:
    """Start `judgebias run` on a run file, and watch it until it ends.

    With `files` it is noted when the driver opens the journal, which takes some CPU to see.
    """
    command = [sys.executable, "-m", "judgebias", "run", str(run)]
    environment = {**os.environ, "RAY_ADDRESS": "local"}
    found = Watched(started=time.time(), looks_at_files=files)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        over = threading.Event()
        threads = [
            threading.Thread(target=_listen, args=(process, found), daemon=True),
            threading.Thread(target=_look, args=(process.pid, found, over), daemon=True),
        ]
        for thread in threads:
            thread.start()
        try:
            yield process, found
        finally:
            found.code = process.wait()
            found.ended = time.time()
            over.set()
            for thread in threads:
                thread.join()


def _listen(process: subprocess.Popen[str], found: Watched) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        found.lines.append((time.time(), line.rstrip()))


def _look(pid: int, found: Watched, over: threading.Event) -> None:
    driver = psutil.Process(pid)
    turn = 0
    while not over.wait(EVERY_S / 5):
        with suppress(psutil.Error):
            if found.looks_at_files and found.journal_opened is None:
                _look_at_files(driver, found)
            if turn % 5 == 0:
                _look_at_memory(driver, found)
        turn += 1


def _look_at_files(driver: psutil.Process, found: Watched) -> None:
    if any(file.path.endswith(".seg") for file in driver.open_files()):
        found.journal_opened = time.time()


def _look_at_memory(driver: psutil.Process, found: Watched) -> None:
    now = time.time()
    for process in (driver, *driver.children(recursive=True)):
        with suppress(psutil.Error):
            kind = DRIVER if process == driver else _kind(process)
            cpu = process.cpu_times()
            rss, most = process.memory_info().rss, high_water(process.pid)
            found.seen.append(Seen(now, kind, process.pid, rss, most, cpu.user + cpu.system))


def high_water(pid: int) -> int:
    """Read the most memory that a process ever had resident, in bytes; 0 where it is gone."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line[:6] == "VmHWM:"), 0)
    return 0


def _kind(process: psutil.Process) -> str:
    title = (process.cmdline() or [""])[0]
    if not title.startswith("ray::"):
        return f"ray's {process.name()}"
    return next(kind for word, kind in _KINDS.items() if word in title)
