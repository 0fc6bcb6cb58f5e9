"""The calls in flight of one judge, divided among the workers by what each can use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True, slots=True)
class _Part:
    size: int
    busy: int
    wanted: int
    until: float

    @property
    def held(self) -> int:
        """What nobody else can have: a part that shrank is free as its calls land."""
        return max(self.size, self.busy)


class Shares:
    """A window that is never exceeded in sum, and never left empty where somebody has calls."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._parts: dict[str, _Part] = {}

    def ask(self, worker: str, *, busy: int, waiting: int, now: float, until: float) -> int:
        """Give a worker its part; it holds it until the given time, or asks again."""
        for name in [name for name, part in self._parts.items() if part.until < now]:
            del self._parts[name]
        part = self._parts.setdefault(worker, _Part(size=0, busy=0, wanted=0, until=until))
        part.busy, part.wanted, part.until = busy, busy + waiting, until
        free = self.total - sum(p.held for name, p in self._parts.items() if name != worker)
        part.size = max(0, min(self._level(worker), free))
        return part.size

    def drop(self, worker: str) -> None:
        """Take back a dead worker's part."""
        self._parts.pop(worker, None)

    def _level(self, worker: str) -> int:
        """Fill all wants evenly, the small ones first, and see what falls to this worker."""
        left = self.total
        # The same order at every question, so that the remainders go to the same workers.
        rest = sorted(self._parts, key=lambda name: (self._parts[name].wanted, name))
        while rest:
            name = rest.pop(0)
            given = min(self._parts[name].wanted, -(-left // (len(rest) + 1)))
            if name == worker:
                return given
            left -= given
        return 0
