"""`judgebias status`: how far a running or stopped run is, read from its journal."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import typer

from judgebias.cli.summarize import calls_of_run, expected_of_run
from judgebias.rundir import RunDir

RATE_OVER = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeStatus:
    """How the calls of one judge ended so far; expected = verdicts + failed + pending."""

    judge: str
    expected: int
    verdicts: int
    failed: int
    pending: int
    failures: dict[str, int]
    """Kind -> calls."""
    cost_usd: float | None
    """None where a call's price or usage is unknown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStatus:
    """Where a run stands."""

    running: str
    """Who holds the run directory, "" when nobody does."""
    judges: tuple[JudgeStatus, ...]
    calls_per_s: float
    """Over the last minute."""
    seconds_left: float | None
    """At that rate; None when nothing moves or nothing is left."""


def print_status(folder: Path, *, as_json: bool) -> None:
    """Print one line per judge, and whether the run goes on."""
    status = read_status(RunDir(folder))
    if as_json:
        typer.echo(json.dumps(asdict(status), indent=2))
        return
    typer.echo(f"{folder}: {status.running or 'not running'}")
    for judge in status.judges:
        typer.echo(_line(judge))
    if status.seconds_left is not None:
        typer.echo(f"{status.calls_per_s:,.1f} calls/s, {status.seconds_left:,.0f} s left")


def read_status(run: RunDir) -> RunStatus:
    """Count the calls of each judge by how they ended."""
    manifest = run.manifest()
    names = sorted(judge.name for judge in manifest.config.judges)
    found = {name: calls_of_run(run, manifest, judge=name).ended for name in names}
    orders = pl.col("expects_ab").cast(pl.Int64) + pl.col("expects_ba").cast(pl.Int64)
    wanted = (
        expected_of_run(run, manifest).group_by("judge").agg(orders.sum()).sort("judge").collect()
    )
    judges = tuple(_judge(str(judge), int(n), found[judge]) for judge, n in wanted.iter_rows())
    late = pl.col("time") > datetime.now(UTC) - RATE_OVER
    recent = sum(calls.filter(late).height for calls in found.values())
    rate, pending = recent / RATE_OVER.total_seconds(), sum(judge.pending for judge in judges)
    return RunStatus(
        running=run.owner(),
        judges=judges,
        calls_per_s=rate,
        seconds_left=pending / rate if rate and pending else None,
    )


def _line(judge: JudgeStatus) -> str:
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in judge.failures.items())
    failed = f" ({kinds})" if kinds else ""
    cost = "unknown" if judge.cost_usd is None else f"{judge.cost_usd:.4f} USD"
    return (
        f"{judge.judge}: {judge.expected:,} calls = {judge.verdicts:,} verdicts + "
        f"{judge.failed:,} failed{failed} + {judge.pending:,} pending; cost {cost}"
    )


def _judge(name: str, expected: int, mine: pl.DataFrame) -> JudgeStatus:
    failed = mine.filter(pl.col("failure").is_not_null())
    kinds = failed.group_by(pl.col("failure").cast(pl.String)).len().sort("failure")
    priced = mine.height > 0 and mine["cost_usd"].null_count() == 0
    return JudgeStatus(
        judge=name,
        expected=expected,
        verdicts=mine.height - failed.height,
        failed=failed.height,
        pending=expected - mine.height,
        failures=dict(kinds.iter_rows()),
        cost_usd=float(mine["cost_usd"].sum()) if priced else None,
    )
