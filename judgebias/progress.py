"""Where a run stands: the counters that workers send and screens show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Counters: TypeAlias = Mapping[str, Mapping[str, float]]
"""Judge -> what -> number: `verdicts`, each kind of failure, `in_flight`, `cost_usd`."""

FormData: TypeAlias = Mapping[str, object]
"""A judge's settled verdict form as plain data, for run.json and for every worker."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetState:
    """What a bounded run has spent, over all its starts."""

    calls: int
    """Requests."""
    usd: float
    """What cannot be known at its worst."""
    lost_calls: int = 0
    """Requests that workers of this start may have sent when they died."""
    lost_usd: float = 0.0
    """What those may have cost."""
    ended: tuple[str, ...] = ()
    """Judges whose next pair has no room."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """Where the run stands, summed over the workers."""

    counters: dict[str, dict[str, float]]
    workers: int
    deaths: int
    """Worker processes that ended before the run did."""
    halted: dict[str, str]
    """Judge -> why it was halted."""
    fault: str = ""
    """What ended the run from within a worker, "" = nothing."""
    forms: dict[str, FormData] = field(default_factory=dict[str, FormData])
    """Judge -> the verdict form that was settled on."""
    over: bool = False
    """Whether no block waits that will be handed out, and no living worker holds one."""
    budget_spent: bool = False
    """Whether the run's budget has nothing left for another pair of some judge."""
    budget: BudgetState | None = None
    """None = no bound."""


@dataclass(kw_only=True, slots=True)
class RunEnd:
    """How the asking ended."""

    asked: int = 0
    """Calls that ended, with a verdict or a failure, in this start of the command."""
    pending: int = 0
    """Calls that stay to be asked by the next start."""
    halted: dict[str, str] = field(default_factory=dict[str, str])
    """Judge -> why it was halted."""
    concluded: dict[str, str] = field(default_factory=dict[str, str])
    """Judge -> why the stop rule ended its asking."""
    interrupted: bool = False
    fault: str = ""
    """What ended the run for every judge: a full disk, an input that changed."""
    forms: dict[str, FormData] = field(default_factory=dict[str, FormData])
    """Judge -> the verdict form that was settled on."""
    budget_spent: bool = False
    """Whether the run's budget had nothing left for another pair of some judge."""
    budget: BudgetState | None = None
    """None = no bound, or nothing was asked."""
