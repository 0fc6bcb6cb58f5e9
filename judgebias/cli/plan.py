"""`judgebias plan`: what a run would find, ask and cost; nothing is asked or written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import polars as pl
import typer

from judgebias.cli.price import Estimate, estimates, line
from judgebias.config import load_run_file
from judgebias.design import words_of
from judgebias.pairs import Reject
from judgebias.pipeline.leaking import leaks_of_run
from judgebias.pipeline.prepare import examined
from judgebias.pipeline.ready import Ready
from judgebias.summary.figures import Row

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
    """Rows that are left out, those skipped for an identity leak among them."""
    n_skipped: int
    rejects: tuple[Reject, ...]
    """The first ones."""
    expected: dict[str, int]
    """Judge -> calls of the design."""
    missing: dict[str, int]
    """Judge -> calls that a run would ask now."""
    leaks: tuple[Row, ...]
    """Pairs with identity leaks, per judge and task, as in tables/leaks.csv."""
    estimates: tuple[Estimate, ...]
    """Judges that are asked over a network."""
    notices: tuple[str, ...]


def print_plan(path: Path, *, limit: int, as_json: bool) -> None:
    """Print the plan of a run file."""
    ready = examined(load_run_file(path), base=path.resolve().parent, limit=limit)
    plan = make_plan(ready)
    if owner := ready.rundir.owner():
        notice = f"a run would be refused now: {ready.rundir.path} is in use ({owner})"
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
        n_skipped=sum(ready.survey.skipped.values()),
        rejects=tuple(ready.survey.rejects[:SHOWN_REJECTS]),
        expected=dict(ready.expected),
        missing=dict(ready.missing),
        leaks=tuple(_leaks(ready)),
        estimates=tuple(estimates(ready)),
        notices=ready.notices,
    )


def _leaks(ready: Ready) -> list[Row]:
    words = words_of(b"".join(ready.survey.index["digest"]))
    return leaks_of_run(ready.plan.config, ready.survey, words, ready.plan.design)


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
    lines += [
        f"{row['judge']} / {row['task']}: identity leaks in {row['n_leaking']} of {row['n_pairs']}"
        f" pairs ({row['names']}), {row['n_own_family']} of them of its own family"
        for row in plan.leaks
        if row["n_leaking"]
    ]
    return [*lines, *(line(estimate) for estimate in plan.estimates)]


def _rejects(plan: Plan) -> list[str]:
    """Show the first rows that cannot be judged; a run writes all of them to a file."""
    if not plan.n_rejects:
        return []
    why = "are left out" if plan.n_skipped else "cannot be judged"
    lines = [f"{plan.n_rejects:,} input rows {why}:"]
    for reject in plan.rejects:
        field = f", {reject.field}" if reject.field else ""
        lines.append(f"  {reject.file} row {reject.row}{field}: {reject.reason}")
    if plan.n_rejects > len(plan.rejects):
        lines.append(f"  and {plan.n_rejects - len(plan.rejects):,} more")
    return lines
