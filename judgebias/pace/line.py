"""The requests of one worker that wait, and the slots in hand: first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from judgebias.judges.gate import NotSent


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """Leave to send one request, from a time on and until another."""

    at: float
    until: float
    tokens: float
    """It was given for so many."""
    single: bool = False
    """The next one is given only after this one was used."""


class Line:
    """Lets requests go by their slots; lives on the worker's event loop."""

    def __init__(self, on_use: Callable[[Slot, float, float], None]) -> None:
        """Make an empty line; `on_use` hears of a slot, its request's tokens, and the time."""
        self._on_use = on_use
        # Nothing passes before the first lease: there may be a pause that others know of.
        self.paced = True
        """Whether a request needs a slot."""
        self.until = 0.0
        """End of the pause."""
        self._waiters: deque[tuple[asyncio.Future[None], float]] = deque()
        self._slots: deque[Slot] = deque()
        self._tokens = self._last_tokens = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def __len__(self) -> int:
        """Requests that wait."""
        return len(self._waiters)

    @property
    def short(self) -> int:
        """Requests that wait and have no slot to wait for; below zero: slots to spare."""
        return len(self._waiters) - len(self._slots)

    @property
    def mean_tokens(self) -> float:
        """Tokens of the next requests, by those that wait or by the last one."""
        return self._tokens / len(self._waiters) if self._waiters else self._last_tokens

    def join(self, tokens: float) -> asyncio.Future[None] | None:
        """Get into line; None where a request may pass at once.

        Raises
        ------
        NotSent
            When the run stops.
        """
        if self._stopped:
            raise NotSent
        if not self.paced and self.until <= now():
            return None
        self._last_tokens = tokens
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((waiter, tokens))
        self._tokens += tokens
        self.release()
        return waiter

    def give(self, slot: Slot) -> None:
        """Add a slot behind the others."""
        self._slots.append(slot)

    def pause(self, until: float) -> None:
        """Let nobody go before this time; slots in hand are void."""
        self.until = max(self.until, until)
        self._slots.clear()

    def forget(self) -> None:
        """Give up the slots in hand."""
        self._slots.clear()

    def stop(self) -> None:
        """Let nobody go any more: who waits goes back."""
        self._stopped = True
        while self._waiters:
            waiter, _ = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(NotSent())

    def release(self) -> None:
        """Let go whoever has a slot, or needs none, and come back for the next."""
        moment = now()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            if self.until > moment:
                self._come_back(self.until)
                return
            if self.paced and not self._open(moment):
                return
            waiter, tokens = self._waiters.popleft()
            self._tokens = max(0.0, self._tokens - tokens)
            if waiter.done():
                continue  # its call was cancelled: the slot is for the next one
            if self.paced:
                self._on_use(self._slots.popleft(), tokens, moment)
            waiter.set_result(None)

    def _open(self, moment: float) -> bool:
        """Tell whether the first slot is open; drop those that nobody used in time."""
        while self._slots and self._slots[0].until < moment:
            self._slots.popleft()
        if not self._slots:
            return False
        if self._slots[0].at > moment:
            self._come_back(self._slots[0].at)
            return False
        return True

    def _come_back(self, at: float) -> None:
        self._timer = asyncio.get_running_loop().call_at(at, self.release)


def now() -> float:
    """Tell the time of the running loop."""
    return asyncio.get_running_loop().time()
