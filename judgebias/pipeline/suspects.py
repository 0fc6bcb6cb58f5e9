"""Which call kills the workers: a block that deaths keep coming back to is asked with care.

A worker has several blocks open when it dies, so its death accuses all of them. A block accused
`CAREFUL_AFTER` times is asked alone in one worker, a group of calls at a time, and each group is
announced before it is sent. So the next death accuses one group, then a smaller one, at last one
call; after `STRIKES` deaths with nothing else under way that call ends as a failure, and the rest
of the block goes on. Ray itself would restart the worker for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from judgebias.calls import Call
from judgebias.config import JudgeConfig, WireJudge
from judgebias.replies import FailureKind, Reply

CAREFUL_AFTER = 3
"""Deaths that a block may have been open at by chance (kills, preemption, memory)."""
GROUP = 256
"""Calls announced at once while nothing is known."""
NARROW = 16
"""An accused group is asked again in so many parts."""
STRIKES = 2
"""Deaths with one single call under way, after which that call is a failure."""
HOPELESS = 5
"""Calls that ended so, or deaths before the first call, after which a judge is stopped."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Care:
    """How a careful worker is to ask a block."""

    suspects: frozenset[bytes] = frozenset()
    """Keys of the calls that were under way at the last death."""
    lethal: Mapping[bytes, int] = field(default_factory=dict[bytes, int])
    """Keys of the calls that are not to be sent again -> deaths they were alone in."""


@dataclass(kw_only=True, slots=True)
class _Known:
    judge: str
    suspects: frozenset[bytes] = frozenset()
    strikes: Counter[bytes] = field(default_factory=Counter[bytes])
    unannounced: int = 0
    """Deaths before the first group was announced: the judge could not even be opened."""

    @property
    def lethal(self) -> dict[bytes, int]:
        return {key: n for key, n in self.strikes.items() if n >= STRIKES}


class Suspects:
    """What the deaths of careful workers told about each block."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[str, int], _Known] = {}

    def care(self, judge: str, number: int) -> Care:
        """Say how to ask a block, by what is known of it."""
        known = self._known(judge, number)
        return Care(suspects=known.suspects, lethal=known.lethal)

    def died(self, judge: str, number: int, announced: Sequence[bytes] | None) -> None:
        """Take note that a careful worker died while these calls of the block were under way."""
        known = self._known(judge, number)
        if announced is None:
            known.unannounced += 1
            return
        known.suspects = frozenset(announced)
        if len(known.suspects) == 1:
            known.strikes.update(known.suspects)

    @property
    def hopeless(self) -> dict[str, str]:
        """Judge -> why asking on makes no sense."""
        lethal: Counter[str] = Counter()
        unopened: Counter[str] = Counter()
        for known in self._blocks.values():
            lethal[known.judge] += len(known.lethal)
            unopened[known.judge] += known.unannounced
        ways = {"asking one of its calls": lethal, "opening it": unopened}
        return {
            judge: f"the worker process did not survive {way}, {n} times"
            for way, deaths in ways.items()
            for judge, n in deaths.items()
            if n >= HOPELESS
        }

    def _known(self, judge: str, number: int) -> _Known:
        return self._blocks.setdefault((judge, number), _Known(judge=judge))


def groups(calls: Sequence[Call], care: Care) -> Iterator[list[Call]]:
    """Divide the calls of a careful block: the suspects first, in small parts, then the others."""
    suspects = [call for call in calls if call.key in care.suspects]
    others = [call for call in calls if call.key not in care.suspects]
    yield from _parts(suspects, max(1, len(care.suspects) // NARROW))
    yield from _parts(others, GROUP)


def _parts(calls: list[Call], size: int) -> Iterator[list[Call]]:
    for start in range(0, len(calls), size):
        yield calls[start : start + size]


def lethal_reply(judge: JudgeConfig, deaths: int) -> Reply:
    """Make the failure that a call ends as which no worker survived."""
    # The list of kinds is closed: for a server's judge no reply reached us, and nothing is known
    # of the server; a local judge is a function that failed.
    wire = isinstance(judge, WireJudge)
    return Reply(
        failure=FailureKind.CONNECTION if wire else FailureKind.FUNCTION_ERROR,
        message=f"the worker process died {deaths} times while only this call was under way",
        attempts=deaths,
    )
