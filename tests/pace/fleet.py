"""A fleet of workers, their pacer and a server, on a clock that only waiting moves."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any

from judgebias.judges.gate import NotSent
from judgebias.pace.gate import PacedGate, PacerGone
from judgebias.pace.lease import Lease, Report
from judgebias.pace.limits import Limits
from judgebias.pace.pacer import Pacer

WAY_S = 0.001
"""What a message takes between a worker and the pacer."""


def uniform(most_s: float, seed: int = 1) -> Callable[[], float]:
    """Draw times between nothing and so much."""
    draw = random.Random(seed).random
    return lambda: most_s * draw()


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing: the time that would pass is added to the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nobody would ever go on")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only where everybody waits."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def in_virtual_time(story: Coroutine[Any, Any, None]) -> None:
    """Run a story to its end; an hour takes as long as its events do."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(story)


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(kw_only=True)
class Server:
    """Answers after a while, refuses what is over its limit, and remembers who came when."""

    latency_s: float = 0.2
    per_minute: float = 0.0
    """What it bears; 0 = everything."""
    burst_s: float = 1.0
    retry_after: bool = True
    in_flight: int = 0
    """Calls at once that it bears; 0 = any number."""
    tokens_per_request: int = 0
    way: Callable[[], float] | None = None
    """What a request takes until it arrives; None = nothing."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    arrivals: list[float] = field(default_factory=list[float])
    accepted: list[float] = field(default_factory=list[float])
    refused: list[float] = field(default_factory=list[float])
    outage: tuple[float, float] = (0.0, 0.0)
    storm: tuple[float, float] = (0.0, 0.0)
    busy: int = 0
    most: int = 0
    level: float | None = None
    at: float = 0.0

    async def answer(self) -> str:
        """Take one request: `ok`, `limited`, or `failed`."""
        if self.way is not None:
            await asyncio.sleep(self.way())
        moment = now()
        self.arrivals.append(moment)
        if self.outage[0] <= moment < self.outage[1]:
            await asyncio.sleep(0.01)
            return "failed"
        stormy = self.storm[0] <= moment < self.storm[1]
        crowded = self.in_flight and self.busy >= self.in_flight
        if stormy or crowded or not self._fits(moment):
            self.refused.append(moment)
            return "limited"
        self.accepted.append(moment)
        self.busy += 1
        self.most = max(self.most, self.busy)
        await asyncio.sleep(self.latency_s)
        self.busy -= 1
        return "ok"

    def _fits(self, moment: float) -> bool:
        if not self.per_minute:
            return True
        rate = self.per_minute / 60
        size = max(1.0, rate * self.burst_s)
        level = size if self.level is None else min(size, self.level + (moment - self.at) * rate)
        self.at, self.level = moment, level
        if level < 1 - 1e-9:
            return False
        self.level -= 1
        return True


class Fleet:
    """Workers that ask as much as they may, through real gates and a real pacer."""

    def __init__(
        self,
        server: Server,
        workers: int,
        limits: Limits | None = None,
        *,
        window: int = 64,
        way: Callable[[], float] = lambda: WAY_S,
    ) -> None:
        self.server = server
        self.limits = limits or Limits()
        self.window = window
        self.way = way
        self.gates: list[PacedGate] = []
        self.attempts: list[int] = []
        self.passed: dict[str, deque[float]] = {}
        self.lives = 0
        self.down = False
        self.exchanges = 0
        self.tasks: set[asyncio.Task[None]] = set()
        self.pacer = self._pacer()
        for number in range(workers):
            self.join(f"w{number}")

    def _pacer(self) -> Pacer:
        self.lives += 1
        name, reborn = f"life {self.lives}", self.lives > 1
        return Pacer(self.limits, name, now, lambda: 0.5, reborn=reborn)

    def join(self, name: str) -> list[asyncio.Task[None]]:
        """Let one more worker start."""
        busy = [0]
        gate = PacedGate(name, self._exchange, lambda: busy[0], paced=self.limits.known)
        self.gates.append(gate)
        self.passed[name] = deque()
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(gate.keep())]
        tasks += [loop.create_task(self._ask(gate, name, busy)) for _ in range(self.window)]
        self.tasks.update(tasks)
        return tasks

    async def _exchange(self, report: Report) -> Lease:
        self.exchanges += 1
        await asyncio.sleep(self.way())
        if self.down:
            raise PacerGone
        lease = self.pacer.exchange(report)
        await asyncio.sleep(self.way())
        return lease

    async def _ask(self, gate: PacedGate, name: str, busy: list[int]) -> None:
        row = 0
        while True:
            busy[0] += 1
            try:
                await gate.admit(100)
            except NotSent:
                return
            self.passed[name].append(now())
            said = await self.server.answer()
            if said == "ok":
                row = 0
                told = self.server.tokens_per_request or None
                gate.observed(self.server.headers, told, 100)
            elif said == "limited":
                gate.rate_limited(0.5 if self.server.retry_after else None)
            else:
                row += 1
                gate.failed(trouble=True)
            busy[0] -= 1

    def kill_pacer(self) -> None:
        """Let the pacer's process end; nothing it knew is left."""
        self.down = True

    def restart_pacer(self) -> None:
        """Let a new process stand in for it."""
        self.pacer = self._pacer()
        self.down = False

    def end(self) -> None:
        """Stop everybody; who ended before that has failed."""
        for task in self.tasks:
            if task.done() and not task.cancelled():
                task.result()
        for task in self.tasks:
            task.cancel()


Story = Callable[[], Awaitable[None]]


def most_within(times: Sequence[float], width: float) -> int:
    """Count the most arrivals within any half-open window of this width."""
    most, start = 0, 0
    for end, time in enumerate(times):
        while times[start] <= time - width:
            start += 1
        most = max(most, end - start + 1)
    return most
