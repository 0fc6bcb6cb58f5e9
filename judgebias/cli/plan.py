"""`judgebias plan`: what a run would find, ask and cost; nothing is asked or written."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import polars as pl
import typer

from judgebias.cli.outlook import outlook
from judgebias.cli.price import Estimate, estimates, line
from judgebias.config import load_run_file
from judgebias.pairs import Reject, Survey
from judgebias.pipeline.leaking import leaks_of_run
from judgebias.pipeline.prepare import examined
from judgebias.pipeline.ready import Ready
from judgebias.summary.figures import Row
from judgebias.summary.sample_size import plan_sample_sentence

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
    orders: str
    n_both: int
    """Pairs asked in both orders."""
    n_in_one_order: int
    n_items: int
    """Self pairs of the probe."""
    sample_size: str
    """How many pairs must be asked in both orders, in words."""
    expected: dict[str, int]
    """Judge -> calls of the design, the probe's included."""
    missing: dict[str, int]
    """Judge -> calls that a run would ask now."""
    leaks: tuple[Row, ...]
    """Pairs with identity leaks, per judge and task, as in tables/leaks.csv."""
    estimates: tuple[Estimate, ...]
    """Judges that are asked over a network."""
    outlook: tuple[str, ...]
    """What the budget reaches for and what the stop rule may save, in words."""
    notices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What is to be known of a judge's consistency, and how well."""

    consistency: float = 0.8
    """What is expected, from 0 to 1."""
    width: float = 0.1
    """Of its 95% interval, from end to end."""


def print_plan(path: Path, *, limit: int, wish: Wish, as_json: bool) -> None:
    """Print the plan of a run file."""
    ready = examined(load_run_file(path), base=path.resolve().parent, limit=limit)
    plan = make_plan(ready, wish)
    if owner := ready.rundir.owner():
        notice = f"a run would be refused now: {ready.rundir.name} is in use ({owner})"
        plan = replace(plan, notices=(*plan.notices, notice))
    if as_json:
        typer.echo(json.dumps(asdict(plan), indent=2, ensure_ascii=False))
        return
    for text in _lines(plan, design_lines(ready)):
        typer.echo(text)


def design_lines(ready: Ready) -> list[str]:
    """Say what is asked of each judge, where it is not simply both orders of every pair."""
    asked, orders, repeats = ready.asked, ready.plan.design.orders, ready.plan.design.repeats
    n, times = asked.n_pairs, "" if repeats == 1 else f", {repeats} times"
    lines: list[str] = []
    if n and orders == "sampled":
        drawn = "drawn by question" if _questions_repeat(ready.survey) else "drawn by pair"
        lines.append(
            f'orders = "sampled": {n:,} pairs in one order and {asked.n_both:,} of them in the '
            f"other too ({drawn}): {n + asked.n_both:,} calls a judge{times}"
        )
    elif n and orders != "both":
        lines.append(
            f'orders = "{orders}": {n:,} pairs in one order ({asked.n_ab:,} show A first, '
            f"{asked.n_ba:,} B): {n:,} calls a judge{times}; consistency and position bias "
            "cannot be told from one order"
        )
    if asked.n_items:
        lines.append(
            f"self-pair probe: {asked.n_items:,} texts, each in both slots at once: "
            f"{asked.n_items:,} calls a judge{times}"
        )
    return lines


def _questions_repeat(survey: Survey) -> bool:
    found = survey.rows.scan.select(pl.col("question_id").hash().is_duplicated().any())
    return bool(found.collect().item())


def make_plan(ready: Ready, wish: Wish) -> Plan:
    """Count what a run would do."""
    asked = ready.asked
    rows = ready.survey.rows.scan
    found = tuple(estimates(ready))
    by_task = rows.group_by("task").len().sort("task").collect(engine="streaming")
    return Plan(
        n_pairs=ready.survey.n_pairs,
        tasks={str(task): int(n) for task, n in by_task.iter_rows()},
        n_questions=int(rows.select(pl.col("question_id").hash().n_unique()).collect().item()),
        n_identical=int(rows.select(pl.col("identical").sum()).collect().item()),
        n_rejects=ready.survey.n_rejects,
        n_skipped=sum(ready.survey.skipped.values()),
        rejects=tuple(ready.survey.rejects[:SHOWN_REJECTS]),
        orders=ready.plan.design.orders,
        n_both=asked.n_both,
        n_in_one_order=asked.n_pairs - asked.n_both,
        n_items=asked.n_items,
        sample_size=plan_sample_sentence(wish.consistency, wish.width, asked.n_pairs),
        expected=dict(ready.expected),
        missing=dict(ready.missing),
        leaks=tuple(_leaks(ready)),
        estimates=found,
        outlook=tuple(outlook(ready, found)),
        notices=ready.notices,
    )


def _leaks(ready: Ready) -> list[Row]:
    return leaks_of_run(ready.plan.config, ready.survey, ready.survey.digests(), ready.plan.design)


def _lines(plan: Plan, design: list[str]) -> list[str]:
    tasks = ", ".join(f"{task} {n:,}" for task, n in plan.tasks.items())
    lines = [
        f"{plan.n_pairs:,} pairs of {plan.n_questions:,} questions ({tasks})",
        *plan.notices,
        *_rejects(plan),
    ]
    lines += design
    for judge, expected in plan.expected.items():
        missing = plan.missing[judge]
        lines.append(f"{judge}: {missing:,} calls to ask, {expected - missing:,} are on disk")
    lines += [
        f"{row['judge']} / {row['task']}: identity leaks in {row['n_leaking']} of {row['n_pairs']}"
        f" pairs ({row['names']}), {row['n_own_family']} of them of its own family"
        for row in plan.leaks
        if row["n_leaking"]
    ]
    lines += [line(estimate) for estimate in plan.estimates]
    return [*lines, *plan.outlook, plan.sample_size]


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
