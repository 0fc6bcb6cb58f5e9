"""A command as a process of its own, with the CPU time and memory of everything below it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from scripts.forces.census import end, family

EVERY_S = 0.2
MEMORY_EVERY_S = 1.0
GONE_WITHIN_S = 10.0
MIB = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """What the tree had used at one moment."""

    time: float
    """Monotonic clock, which all processes of a machine share."""
    cpu_s: float
    """User and system time of all processes until now, ended ones as last seen."""


@dataclass(kw_only=True)
class Command:
    """A started command, watched until its end."""

    process: subprocess.Popen[bytes]
    said: Path
    started: float
    samples: list[Sample] = field(default_factory=list)
    ended: float = 0.0
    rss_mib: float = 0.0
    """Peak of the sum of all resident sizes, shared pages counted in each process."""
    pss_mib: float = 0.0
    """The same with shared pages counted once."""
    _seen: dict[int, psutil.Process] = field(default_factory=dict)
    _cpu: dict[int, float] = field(default_factory=dict)
    _memory_at: float = 0.0

    @classmethod
    def start(
        cls, words: Sequence[str], *, folder: Path, environ: Mapping[str, str], said: Path
    ) -> Command:
        """Start it in a session of its own, so that a signal to its group reaches nobody else."""
        with said.open("ab") as file:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **environ},
                start_new_session=True,
            )
        return cls(process=process, said=said, started=time.monotonic())

    @property
    def seconds(self) -> float:
        """From its start to its end."""
        return self.ended - self.started

    @property
    def cpu_s(self) -> float:
        """CPU time of the whole tree, start-up included."""
        return self.samples[-1].cpu_s if self.samples else 0.0

    @property
    def tree_size(self) -> int:
        """How many processes were seen to belong to it."""
        return len(self._seen)

    def cpu_at(self, moment: float) -> float:
        """CPU time of the tree until a moment, between two samples on a straight line."""
        times = [sample.time for sample in self.samples]
        return float(np.interp(moment, times, [sample.cpu_s for sample in self.samples]))

    def wait(self, timeout: float, *, until: Callable[[], bool] = lambda: False) -> int | None:
        """Watch until it ends or `until` holds; returns the exit code, None where there is none.

        A command that takes longer than `timeout` seconds is ended, and has no exit code either.
        """
        deadline = time.monotonic() + timeout
        while self.process.poll() is None and not until():
            if time.monotonic() > deadline:
                self.kill()
                self._close()
                return None
            self.look()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(EVERY_S)
        if self.process.poll() is None:
            return None
        self._close()
        return self.process.returncode

    def look(self) -> None:
        """Take a sample."""
        known = {process.pid: process for process in family(self.process.pid)}
        # A process whose parent has died is below nobody, and goes on using time.
        self._seen |= {pid: one for pid, one in known.items() if pid not in self._seen}
        for pid, process in self._seen.items():
            with suppress(psutil.Error):
                used = process.cpu_times()
                self._cpu[pid] = used.user + used.system
        now = time.monotonic()
        self.samples.append(Sample(time=now, cpu_s=sum(self._cpu.values())))
        if now - self._memory_at > MEMORY_EVERY_S:
            self._memory_at = now
            self._weigh()

    def kill(self, *, everything: bool = False) -> None:
        """Kill -9 the command's process group.

        Ray's workers have groups of their own, and die a moment after the rest; `everything` kills
        them at the same time.
        """
        if everything:
            self.look()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        if everything:
            end(self._seen.values())
        self.process.wait()

    def clear(self) -> int:
        """End by their ids the processes that outlived it; returns how many there were."""
        until = time.monotonic() + GONE_WITHIN_S
        while (left := self._alive()) and time.monotonic() < until:
            time.sleep(EVERY_S)
        end(left)
        return len(left)

    def last_words(self) -> str:
        """What it said at the end."""
        return self.said.read_text(errors="replace")[-1500:]

    def _alive(self) -> list[psutil.Process]:
        """List those that run; a dead one whose parent does not ask for it is not alive."""
        alive: list[psutil.Process] = []
        for process in self._seen.values():
            with suppress(psutil.NoSuchProcess):
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
        return alive

    def _weigh(self) -> None:
        rss = pss = 0
        for process in self._seen.values():
            with suppress(psutil.Error):
                memory = process.memory_full_info()
                rss, pss = rss + memory.rss, pss + memory.pss
        self.rss_mib, self.pss_mib = max(self.rss_mib, rss / MIB), max(self.pss_mib, pss / MIB)

    def _close(self) -> None:
        self.ended = time.monotonic()
