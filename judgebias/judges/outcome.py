"""What one request came to; the classification names it, and the retry layer acts on it.

::

    Answered      a slot, by the rules
    Refused       fatal for this call: another try would end the same way
    Unusable      paid for, but no verdict can be read; a small bound of tries of its own
    Transient     the server or the network failed; another try may succeed
    RateLimited   wait, together with every other call of this judge
    Halt          fatal for the judge: no other call could be answered either
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from judgebias.replies import FailureKind
from judgebias.verdicts import Slot


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """A verdict."""

    slot: Slot


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """The call has no verdict and will have none."""

    kind: FailureKind
    message: str
    parameter: str = ""
    """The request parameter that the server does not take, where it names one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unusable:
    """A reply was received, and probably paid for, from which nothing can be read."""

    kind: FailureKind
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Transient:
    """A failure that may pass."""

    kind: FailureKind
    message: str
    maybe_paid: bool = False
    """The request may have been worked on and billed, though no reply came."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RateLimited:
    """Too many requests or tokens."""

    after_s: float | None
    """Seconds to wait as the server says; None = it does not say."""
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Halt:
    """The judge cannot go on."""

    reason: str
    do: str
    until: str | None = None
    """UTC time from which it can go on, where the server says so."""


Outcome: TypeAlias = Answered | Refused | Unusable | Transient | RateLimited | Halt
