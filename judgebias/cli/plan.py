"""`judgebias plan`: what a run would find, ask and cost; nothing is asked or written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import polars as pl
import typer

from judgebias.cli.price import Estimate, estimates, line
from judgebias.config import load_run_file
from judgebias.pairs import Reject
from judgebias.pipeline.prepare import examined
from judgebias.pipeline.ready import Ready

SHOWN_REJECTS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a run would do."""

    n_pairs: int
    tasks: dict[str, int]
    """Task -> pairs."""
    n_questions: int
    n_identical: int
    """Pairs whose two answers are the same text."""
    n_rejects: int
    rejects: tuple[Reject, ...]
    """The first ones."""
    expected: dict[str, int]
    """Judge -> calls of the design."""
    missing: dict[str, int]
    """Judge -> calls that a run would ask now."""
    estimates: tuple[Estimate, ...]
    """Judges that are asked over a network."""
    notices: tuple[str, ...]


def print_plan(path: Path, *, limit: int, as_json: bool) -> None:
    """Print the plan of a run file."""
    ready = examined(load_run_file(path), base=path.resolve().parent, limit=limit)
    plan = make_plan(ready)
    if owner := ready.rundir.owner():
        notice = f"a run would be refused now: {ready.rundir.name} is in use ({owner})"
        plan = replace(plan, notices=(*plan.notices, notice))
    if as_json:
        typer.echo(json.dumps(asdict(plan), indent=2, ensure_ascii=False))
        return
    for text in _lines(plan):
        typer.echo(text)


def make_plan(ready: Ready) -> Plan:
    """Count what a run would do."""
    index = ready.survey.index
    by_task = index.group_by("task").len().sort("task")
    return Plan(
        n_pairs=index.height,
        tasks={str(task): int(n) for task, n in by_task.iter_rows()},
        n_questions=index["question_id"].n_unique(),
        n_identical=int(index.select(pl.col("identical").sum()).item()),
        n_rejects=ready.survey.n_rejects,
        rejects=tuple(ready.survey.rejects[:SHOWN_REJECTS]),
        expected=dict(ready.expected),
        missing=dict(ready.missing),
        estimates=tuple(estimates(ready)),
        notices=ready.notices,
    )


def _lines(plan: Plan) -> list[str]:
    tasks = ", ".join(f"{task} {n:,}" for task, n in plan.tasks.items())
    lines = [
        f"{plan.n_pairs:,} pairs of {plan.n_questions:,} questions ({tasks})",
        *plan.notices,
        *_rejects(plan),
    ]
    if plan.n_identical:
        lines.append(f"{plan.n_identical:,} pairs have two identical answers")
    for judge, expected in plan.expected.items():
        missing = plan.missing[judge]
        lines.append(f"{judge}: {missing:,} calls to ask, {expected - missing:,} are on disk")
    return [*lines, *(line(estimate) for estimate in plan.estimates)]


def _rejects(plan: Plan) -> list[str]:
    """Show the first rows that cannot be judged; a run writes all of them to a file."""
    if not plan.n_rejects:
        return []
    lines = [f"{plan.n_rejects:,} input rows cannot be judged:"]
    for reject in plan.rejects:
        field = f", {reject.field}" if reject.field else ""
        lines.append(f"  {reject.file} row {reject.row}{field}: {reject.reason}")
    if plan.n_rejects > len(plan.rejects):
        lines.append(f"  and {plan.n_rejects - len(plan.rejects):,} more")
    return lines
