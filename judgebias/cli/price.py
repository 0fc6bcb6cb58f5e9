"""What a run may cost, shown and agreed to before the first priced call."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from judgebias.cli.screen import Screen
from judgebias.config import WireJudge
from judgebias.errors import UsageError
from judgebias.judges.opening import template_of
from judgebias.pipeline.ready import Ready

BYTES_PER_TOKEN = 4
"""Of English text; other scripts need up to twice the tokens per byte."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What one judge's missing calls may cost, each asked once."""

    judge: str
    calls: int
    input_tokens: int
    """Estimated from the bytes of the texts and of the template."""
    output_tokens: int
    """At most: the whole budget of every call."""
    worst_usd: float | None
    """None where the price is unknown."""


def estimates(ready: Ready) -> list[Estimate]:
    """Estimate each judge that is asked over a network."""
    return [
        _estimate(ready, judge)
        for judge in ready.plan.config.judges
        if isinstance(judge, WireJudge) and ready.missing.get(judge.name)
    ]


def agree(ready: Ready, screen: Screen, *, yes: bool) -> None:
    """Show what may be spent, and go on only with a yes where it is not known to be nothing.

    Raises
    ------
    UsageError
        Without a yes; nothing was asked.
    """
    found = estimates(ready)
    for estimate in found:
        screen.say(line(estimate))
    if yes or all(estimate.worst_usd == 0 for estimate in found):
        return
    if not sys.stdin.isatty():
        raise UsageError(
            "these calls may cost money, and there is no terminal to ask for a yes",
            do="add --yes to agree, or set price = { input = 0, output = 0 } where it is free",
        )
    if not typer.confirm("Ask these calls?"):
        raise UsageError("not agreed to; nothing was asked")


def line(estimate: Estimate) -> str:
    """Say an estimate with its assumptions."""
    cost = "price unknown"
    if estimate.worst_usd is not None:
        cost = f"{estimate.worst_usd:,.2f} USD at most"
    return (
        f"{estimate.judge}: {estimate.calls:,} calls, about {estimate.input_tokens:,} input tokens"
        f" ({BYTES_PER_TOKEN} bytes each), {estimate.output_tokens:,} output tokens at most:"
        f" {cost}, retries not counted"
    )


def _estimate(ready: Ready, judge: WireJudge) -> Estimate:
    calls = ready.missing[judge.name]
    template = len(template_of(judge, str(Path(ready.plan.base))).text.encode())
    tokens = (ready.text_bytes[judge.name] + calls * template) // BYTES_PER_TOKEN
    output = calls * max(judge.max_tokens, judge.max_tokens_retry)
    price = judge.price
    worst = None if price is None else (tokens * price.input + output * price.output) / 1e6
    return Estimate(
        judge=judge.name,
        calls=calls,
        input_tokens=tokens,
        output_tokens=output,
        worst_usd=worst,
    )
