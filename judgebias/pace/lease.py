"""What a worker tells the pacer of its limit group, and what it is given: plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from judgebias.pace.limits import Limits
from judgebias.pace.schedule import NO_SLOTS, Slots


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What a worker knows of the limit, for a pacer that has started anew."""

    told: Limits = field(default_factory=Limits)
    """From response headers."""
    ceiling: float = 0.0
    """Requests per second as learned from refusals; 0 = none."""
    window: int = 0
    """Calls in flight as learned; 0 = not known."""
    pause_s: float = 0.0
    steady: float = 0.0
    """Requests per second that were accepted when all was well."""


@dataclass(kw_only=True, slots=True)
class Report:
    """What happened in one worker since its last report, and what it needs."""

    worker: str
    pacer: str = ""
    """The pacer it last heard from."""
    waiting: int = 0
    """Requests that wait for a slot."""
    tokens: float = 0.0
    """Estimated tokens of those, together."""
    busy: int = 0
    """Requests on the wire."""
    owed: float = 0.0
    """Tokens used beyond those its slots were given for."""
    late_s: float = 0.0
    """How long after its time the last slot was used."""
    accepted: int = 0
    limited: int = 0
    """Requests refused by a limit."""
    after_s: float = 0.0
    """The longest pause that a server asked for."""
    failed: int = 0
    """Requests that failed for a moment."""
    trouble: bool = False
    """So many in a row that everybody had better wait."""
    told: Limits = field(default_factory=Limits)
    known: Known = field(default_factory=Known)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """What a worker may send until it asks again: a quarter second's worth."""

    pacer: str
    paced: bool
    """Whether a request needs a slot."""
    slots: Slots = NO_SLOTS
    tokens: float = 0.0
    """Tokens that each slot was given for."""
    interval_s: float = 0.0
    """Between two slots of the whole group; 0 = no bound."""
    workers: int = 1
    """Workers that share it: one that cannot reach the pacer goes on with its part."""
    ask_s: float = 0.25
    """When to ask again."""
    known: Known = field(default_factory=Known)
