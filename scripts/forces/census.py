"""Which processes a run consists of, what they hold, and whether any is left behind."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

import psutil

KINDS = (
    ("MapWorker", "worker"),
    ("RunOwner", "owner"),
    ("raylet", "raylet"),
    ("gcs_server", "gcs"),
    ("judgebias", "driver"),
)
"""A text in the command line, and what such a process is called here; the first that fits."""


def kind_of(process: psutil.Process) -> str:
    """Name what a process is for; "ray" for those that only serve Ray itself."""
    words = process.cmdline()
    head = " ".join(words[:1]) if words and "python" not in words[0] else " ".join(words[:3])
    return next((kind for text, kind in KINDS if text in head), "ray")


def family(pid: int) -> list[psutil.Process]:
    """List a process and everything below it; nothing if it is gone."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def members(pid: int, kind: str) -> list[psutil.Process]:
    """List those below a process that are of one kind."""
    found: list[psutil.Process] = []
    for process in family(pid)[1:]:
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if kind_of(process) == kind:
                found.append(process)
    return found


def left_behind(seen: Iterable[psutil.Process], *, wait_s: float = 30.0) -> list[str]:
    """Wait until all are gone; describe those that are not."""
    _, alive = psutil.wait_procs(list(seen), timeout=wait_s)
    return [_described(process) for process in alive]


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill what an attack left, by its id."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def zombies() -> list[psutil.Process]:
    """List the dead children that this process or one below it has not waited for."""
    found: list[psutil.Process] = []
    for process in family(os.getpid())[1:]:
        with suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Fit a straight line by least squares; y per unit of x, 0 for less than two points."""
    if len(points) < 2:
        return 0.0
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def _described(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return f"{process.pid} {' '.join(process.cmdline())[:80]} ({process.status()})"
    return str(process.pid)
