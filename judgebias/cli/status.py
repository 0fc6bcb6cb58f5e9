"""`judgebias status`: how far a running or stopped run is, read from its journal."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

import polars as pl
import typer

from judgebias.cli.evidence import Calls
from judgebias.cli.replies import AskedPairs
from judgebias.cli.summarize import asked_pairs, calls_of_run
from judgebias.held import check_held
from judgebias.journal import read_journal
from judgebias.rundir import RunDir
from judgebias.stored import open_rundir

RATE_OVER = timedelta(seconds=60)
LEAST_S = 1.0
"""A shorter time says nothing about the rate."""


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
    forecast_usd: float | None
    """At the end, at the mean of the calls until now; None where nothing is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunStatus:
    """Where a run stands."""

    running: str
    """Who holds the run directory, "" when nobody does."""
    judges: tuple[JudgeStatus, ...]
    calls_per_s: float | None
    """Over the last minute of this start, or since its first reply; None when nobody runs it, or
    it is too early to tell."""
    seconds_left: float | None
    """At that rate, or at the last rate of a run that was stopped; None when it is not known or
    nothing is left."""
    max_usd: float | None
    """The budget, None = no bound."""
    max_calls: int
    """Requests that the budget allows, 0 = no bound."""
    requests: int
    """Sent by all starts of the run, those among them that no reply on disk tells of."""
    known_usd: float
    """Spent by them, where it is known."""
    n_unpriced: int
    """Replies whose cost is not."""


def print_status(folder: str, *, as_json: bool) -> None:
    """Print one line per judge, and whether the run goes on."""
    status = read_status(open_rundir(folder))
    if as_json:
        typer.echo(json.dumps(asdict(status), indent=2))
        return
    typer.echo(f"{folder}: {status.running or 'not running'}")
    for judge in status.judges:
        typer.echo(_line(judge))
    if pace := _pace_line(status):
        typer.echo(pace)
    if status.max_usd is not None or status.max_calls:
        typer.echo(_budget(status))


def read_status(run: RunDir, *, now: datetime | None = None) -> RunStatus:
    """Count the calls of each judge by how they ended; rates of a running run end `now`."""
    manifest = run.manifest()
    check_held(run, manifest)
    names = sorted(judge.name for judge in manifest.config.judges)
    asked = AskedPairs.of(asked_pairs(run, manifest))
    calls = {name: calls_of_run(run, manifest, asked, judge=name) for name in names}
    found = {name: _ended(mine) for name, mine in calls.items()}
    judges = tuple(_judge(name, calls[name].n_pending, found[name]) for name in names)
    running, pending = run.owner(), sum(judge.pending for judge in judges)
    times = pl.concat([ended["time"] for ended in found.values()]).drop_nulls()
    end = (now or datetime.now(UTC)) if running else times.max()
    rate = _pace(times, manifest.started, end) if isinstance(end, datetime) else None
    # What the budget counts: every reply, those of judges that left the run file among them.
    bought = read_journal(run.journal, columns=("attempts", "cost_usd")).table
    return RunStatus(
        running=running,
        judges=judges,
        calls_per_s=rate if running else None,
        seconds_left=pending / rate if rate and pending else None,
        max_usd=manifest.config.budget.max_usd,
        max_calls=manifest.config.budget.max_calls,
        requests=int(bought["attempts"].sum()) + manifest.unrecorded_requests,
        known_usd=float(bought["cost_usd"].sum()) + manifest.unrecorded_usd,
        n_unpriced=bought["cost_usd"].null_count(),
    )


def _pace(times: pl.Series, started: str, end: datetime) -> float | None:
    """Count the replies a second of the last minute before `end`, or since the first of a start.

    The first reply only starts the clock: what Ray and the workers needed before it is no part of
    the rate.
    """
    mine = times.filter((times >= datetime.fromisoformat(started)) & (times <= end))
    first = mine.min()
    if not isinstance(first, datetime):
        return None
    begin = max(first, end - RATE_OVER)
    span = (end - begin).total_seconds()
    return int((mine > begin).sum()) / span if span >= LEAST_S else None


def _pace_line(status: RunStatus) -> str:
    if status.seconds_left is None:
        return ""
    left = f"{status.seconds_left:,.0f} s"
    if status.calls_per_s is None:
        return f"at the rate before it stopped, what is pending takes {left}"
    return f"{status.calls_per_s:,.1f} calls/s, {left} left"


def _budget(status: RunStatus) -> str:
    parts: list[str] = []
    if status.max_calls:
        parts.append(f"{status.requests:,} of {status.max_calls:,} requests are used")
    if status.max_usd is not None:
        least = f", and {status.n_unpriced:,} replies without a price" if status.n_unpriced else ""
        parts.append(f"{status.known_usd:,.4f} of {status.max_usd:,.2f} USD are spent{least}")
    return f"budget: {', '.join(parts)}"


def _line(judge: JudgeStatus) -> str:
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in judge.failures.items())
    failed = f" ({kinds})" if kinds else ""
    cost = "unknown" if judge.cost_usd is None else f"{judge.cost_usd:.4f} USD"
    if judge.pending and judge.forecast_usd is not None:
        cost += f", {judge.forecast_usd:.4f} at the end"
    return (
        f"{judge.judge}: {judge.expected:,} calls = {judge.verdicts:,} verdicts + "
        f"{judge.failed:,} failed{failed} + {judge.pending:,} pending; cost {cost}"
    )


def _ended(calls: Calls) -> pl.DataFrame:
    return calls.ended if calls.bought is None else calls.bought


def _judge(name: str, pending: int, mine: pl.DataFrame) -> JudgeStatus:
    failed = mine.filter(pl.col("failure").is_not_null())
    kinds = failed.group_by(pl.col("failure").cast(pl.String)).len().sort("failure")
    known = mine["cost_usd"].drop_nulls()
    cost = float(known.sum()) if mine.height and len(known) == mine.height else None
    expected = mine.height + pending
    forecast = float(known.sum()) / len(known) * expected if len(known) else None
    return JudgeStatus(
        judge=name,
        expected=expected,
        verdicts=mine.height - failed.height,
        failed=failed.height,
        pending=pending,
        failures=dict(kinds.iter_rows()),
        cost_usd=cost,
        forecast_usd=forecast,
    )
