"""What every worker of a run is told once: plain data, no key, no text of any pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from judgebias.config import JudgeConfig, RunConfig, WireJudge
from judgebias.design import Design, Words
from judgebias.pace.budget import NOTHING, Amount
from judgebias.pace.learning import FIRST_WINDOW
from judgebias.pace.limits import MOST_IN_FLIGHT
from judgebias.pairs import Block, PairsSpec
from judgebias.progress import FormData
from judgebias.stopping.sequence import BuyingOrder

LOCAL_IN_FLIGHT = 256
"""Calls under way of a judge without a network whose run file names no window."""


def window_of(judge: JudgeConfig) -> int:
    """Give the calls that may be under way at the start, in the whole cluster."""
    learned = FIRST_WINDOW if isinstance(judge, WireJudge) else LOCAL_IN_FLIGHT
    return judge.max_in_flight or learned


def most_in_flight(judge: JudgeConfig) -> int:
    """Give the calls that may ever be under way at once."""
    return judge.max_in_flight or MOST_IN_FLIGHT


def is_learned(judge: JudgeConfig) -> bool:
    """Tell whether the window grows with what the server bears."""
    return not judge.max_in_flight and isinstance(judge, WireJudge)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """The run as its workers see it."""

    config: RunConfig
    spec: PairsSpec
    """How to read a block of pairs."""
    blocks: tuple[Block, ...]
    design: Design
    items: Words = field(default_factory=lambda: np.empty((2, 0), dtype=np.uint64))
    """Digests of the probe's self pairs, sorted, shape (2, n)."""
    journal: str
    """The folder of the journal."""
    epoch: int
    """Which start of the command this is; part of the segments' names."""
    fingerprints: Mapping[str, bytes]
    """Judge -> sixteen bytes."""
    forms: Mapping[str, FormData]
    """Judge -> the verdict form an earlier start settled on."""
    base: str
    """The folder that relative paths of the run file start from."""
    unrecorded: Amount = NOTHING
    """What earlier starts spent on requests that have no reply in the journal."""
    buying: BuyingOrder | None = None
    """The order in which pairs are bought under a stop rule; None = as they come."""
