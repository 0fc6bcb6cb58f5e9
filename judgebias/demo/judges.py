"""Four judges whose bias is known, because it was planted."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from judgebias.config import Engine, RunConfig, SimulatedJudge


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """A judge and what was planted in it, in words."""

    judge: SimulatedJudge
    planted: str


PLANTED = (
    Planted(
        judge=SimulatedJudge(
            name="honest", provider="simulated", quality=2.0, noise=0.2, tie_width=0.8
        ),
        planted="no bias",
    ),
    Planted(
        judge=SimulatedJudge(
            name="first-leaning",
            provider="simulated",
            quality=2.0,
            noise=0.2,
            tie_width=0.8,
            offset=0.8,
        ),
        planted="offset +0.8: pulls to the first slot",
    ),
    Planted(
        judge=SimulatedJudge(
            name="second-if-long",
            provider="simulated",
            quality=2.0,
            noise=0.2,
            tie_width=0.8,
            offset_long=-1.2,
            long_chars=500,
        ),
        planted="offset -1.2 above 500 characters: pulls to the second slot",
    ),
    Planted(
        judge=SimulatedJudge(name="tie-shy", provider="simulated", quality=2.0, noise=1.5),
        planted="never a tie, much noise: wavers, but to no side",
    ),
)
"""The judges of the demo, and the truth about them."""


def demo_config(out: Path) -> RunConfig:
    """Make the run of the demo: the bundled pairs, the planted judges, both orders."""
    pairs = resources.files("judgebias.demo") / "pairs.jsonl"
    return RunConfig(
        pairs=str(pairs),
        out=str(out.absolute()),
        judges=tuple(planted.judge for planted in PLANTED),
        engine=Engine(address="local"),
    )
