"""What every worker of a run is told once: plain data, no key, no text of any pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judgebias.config import JudgeConfig, RunConfig
from judgebias.design import Design
from judgebias.pairs import Block, PairsSpec
from judgebias.progress import FormData
from judgebias.stopping.sequence import BuyingOrder

DEFAULT_IN_FLIGHT = 256
"""Calls under way of a judge whose run file names no window, over all workers."""


def window_of(judge: JudgeConfig) -> int:
    """Give the calls that may be under way at once, in the whole cluster."""
    return judge.max_in_flight or DEFAULT_IN_FLIGHT


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """The run as its workers see it."""

    config: RunConfig
    spec: PairsSpec
    """How to read a block of pairs."""
    blocks: tuple[Block, ...]
    design: Design
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
    buying: BuyingOrder | None = None
    """The order in which pairs are bought under a stop rule; None = as they come."""
