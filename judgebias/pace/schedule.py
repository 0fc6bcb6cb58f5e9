"""When requests may be sent: slots that lie at least an interval apart, whoever gets them.

A slot belongs to one request of one worker and is used from its time on, within `USE_WITHIN_S`; it
is lost afterwards. So the requests of any 60 s were given slots of at most 60 s + `USE_WITHIN_S`,
and an interval of that length over the limit keeps every such window within the limit, without
counting what was sent. A schedule that starts anew (its process died) needs no history either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

WINDOW_S = 60.0
CATCH_UP_S = 0.4
"""A schedule that was held up may fall behind by so much and still give those slots."""
USE_WITHIN_S = 0.5
TRANSIT_S = 0.1
"""What the way to the server may add or take away."""
AHEAD_S = 0.5
"""How far ahead slots are given."""
SINGLE_S = 0.4
"""From this interval on slots are given one by one, the next one after the last was used."""
SINGLE_MORE = 0.005
"""Single slots lie so much further apart: a server that takes one request a second refuses the
next one for being a few milliseconds early."""
SLIP_MORE = 0.005
"""And so much further for each time that one was refused all the same: the way to the server
varies more than that."""
MOST_MORE = 0.05
FORGET_SLIPS_S = 600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Slots:
    """Consecutive slots for one worker, from now on."""

    count: int = 0
    first_s: float = 0.0
    """Seconds until the first; below zero where the schedule is behind."""
    interval_s: float = 0.0


NO_SLOTS = Slots()


def interval_of(per_minute: float) -> float:
    """Give the seconds between two slots that keep any 60 s within the limit; 0 = no limit."""
    return (WINDOW_S + USE_WITHIN_S + TRANSIT_S) / per_minute if per_minute else 0.0


class Schedule:
    """Hands out slots in order; its intervals may change from one to the next."""

    def __init__(self, start: float) -> None:
        self._next = start
        self._more, self._slip_at = 0.0, start

    def take(self, most: int, interval: float, now: float) -> Slots:
        """Give at most so many slots that lie less than `AHEAD_S` ahead."""
        self._next = max(self._next, now - CATCH_UP_S)
        ahead = AHEAD_S if interval < SINGLE_S else SINGLE_S / 2
        room = now + ahead - self._next
        if room < 0 or most < 1:
            return NO_SLOTS
        count = min(most, 1 + int(room / interval) if interval < SINGLE_S else 1)
        slots = Slots(count=count, first_s=self._next - now, interval_s=interval)
        self._next += count * interval * (1.0 if interval < SINGLE_S else self._apart(now))
        return slots

    def slip(self, now: float) -> None:
        """Hear that a request was refused although the limit was kept."""
        self._more = self._apart(now) - 1.0 - SINGLE_MORE + SLIP_MORE
        self._slip_at = now

    def _apart(self, now: float) -> float:
        forgotten = math.exp(-max(0.0, now - self._slip_at) / FORGET_SLIPS_S)
        return 1.0 + min(MOST_MORE, SINGLE_MORE + self._more * forgotten)

    def shift(self, seconds: float) -> None:
        """Move what is still to be given: more was used than was planned, or less, or later."""
        self._next += seconds

    def not_before(self, time: float) -> None:
        """Give no slot before this time."""
        self._next = max(self._next, time)

    def wait(self, now: float) -> float:
        """Seconds until there may be a slot to give."""
        return max(0.0, self._next - now)
