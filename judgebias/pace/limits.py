"""What a limit group may send: judges that share a key and a model share one limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judgebias.config import JudgeConfig, WireJudge
from judgebias.judges.secrets import USUAL_VARIABLE, endpoint

MOST_IN_FLIGHT = 2000
"""A learned window never grows beyond this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Bounds per minute; 0 = none known."""

    requests: float = 0.0
    tokens: float = 0.0

    @property
    def known(self) -> bool:
        """Whether there is any bound."""
        return bool(self.requests or self.tokens)

    def and_(self, other: Limits) -> Limits:
        """Give the stricter of each bound."""
        return Limits(
            requests=_stricter(self.requests, other.requests),
            tokens=_stricter(self.tokens, other.tokens),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One limit group of a run."""

    name: str
    judges: tuple[str, ...]
    limits: Limits
    """As configured: of several judges, the strictest."""


def groups_of(judges: Iterable[JudgeConfig]) -> tuple[Group, ...]:
    """Find the limit groups of a run, in the order of their first judges.

    A judge without a network and without a configured limit is in none: it pays for no pace.
    """
    found: dict[str, list[JudgeConfig]] = {}
    for judge in judges:
        if isinstance(judge, WireJudge) or _configured(judge).known or judge.limit_group:
            found.setdefault(_name(judge), []).append(judge)
    return tuple(_group(name, members) for name, members in found.items())


def group_by_judge(groups: Iterable[Group]) -> Mapping[str, Group]:
    """Find each judge's group by the judge's name."""
    return {judge: group for group in groups for judge in group.judges}


def _group(name: str, members: list[JudgeConfig]) -> Group:
    limits = Limits()
    for judge in members:
        limits = limits.and_(_configured(judge))
    return Group(name=name, judges=tuple(judge.name for judge in members), limits=limits)


def _configured(judge: JudgeConfig) -> Limits:
    return Limits(requests=judge.requests_per_minute, tokens=judge.tokens_per_minute)


def _name(judge: JudgeConfig) -> str:
    if judge.limit_group:
        return judge.limit_group
    if not isinstance(judge, WireJudge):
        return f"judge {judge.name}"
    # The key's name stands for the key: the driver need not have it.
    key = judge.api_key_file or judge.api_key_env or USUAL_VARIABLE[judge.provider]
    return f"{endpoint(judge)} {key} {judge.model}"


def _stricter(one: float, other: float) -> float:
    return min(one, other) if one and other else one or other
