"""`judgebias run`: ask what is missing, then summarise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from judgebias.cli.exits import Exit
from judgebias.cli.interrupts import interruptible
from judgebias.cli.plan import design_lines
from judgebias.cli.price import agree
from judgebias.cli.screen import Screen
from judgebias.cli.summarize import summarize_run
from judgebias.cli.table import print_probe, print_written
from judgebias.cli.tabulate import Written, nothing_written
from judgebias.config import RunConfig, load_run_file
from judgebias.config.runfile import check_run
from judgebias.crash import crash_point
from judgebias.errors import ConfigError, UsageError
from judgebias.held import keep_held
from judgebias.pipeline.place import refuse_lost_folder
from judgebias.pipeline.prepare import prepared
from judgebias.pipeline.quiet import quiet_ray
from judgebias.pipeline.ready import Ready
from judgebias.pipeline.spent import keep_unrecorded
from judgebias.progress import BudgetState, Progress, RunEnd
from judgebias.rundir import RunDir

DEFAULT_ITEMS = 200
"""Items of `judgebias probe` where nothing else is said: a tie rate of .98 is known to .03."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Overrides:
    """What the command line says on top of the run file; paths start from where it was typed."""

    pairs: str = ""
    out: str = ""
    address: str = ""
    judges: tuple[str, ...] = ()
    limit: int = 0
    items: int = 0
    """Self pairs instead of the run file's."""
    yes: bool = False
    """Agree to the price."""
    take_over: bool = False
    """Own the run directory even if another host's process seems to."""


def run_file(path: Path, overrides: Overrides, screen: Screen, *, as_json: bool = False) -> Exit:
    """Run a run file and print its tables; the same call again resumes."""
    config = overridden(load_run_file(path), overrides)
    written, code = run(config, path.resolve().parent, overrides, screen)
    print_written(written, as_json=as_json)
    return code


def probe_file(path: Path, overrides: Overrides, screen: Screen, *, as_json: bool = False) -> Exit:
    """Ask the self-pair probe of a run file only, and print its table."""
    config = overridden(load_run_file(path), overrides)
    if not config.self_pair:
        config = config.model_copy(update={"self_pair": DEFAULT_ITEMS})
    written, code = run(config, path.resolve().parent, overrides, screen, probe=True)
    print_probe(written, as_json=as_json)
    return code


def run(
    config: RunConfig, base: Path, overrides: Overrides, screen: Screen, *, probe: bool = False
) -> tuple[Written, Exit]:
    """Ask every call that is missing, write the tables, and say how it ended.

    With `probe`, only the self pairs are asked, and what is said is about them.
    """
    checked = prepared(
        config,
        base=base,
        limit=overrides.limit,
        only=overrides.judges,
        take_over=overrides.take_over,
        probe=probe,
    )
    with interruptible(), checked as ready:
        for notice in ready.notices:
            screen.say(notice)
        for line in (*design_lines(ready), _plan_line(ready)):
            screen.say(line)
        agree(ready, screen, yes=overrides.yes)
        end = _ask(ready, screen) if ready.blocks else RunEnd()
        if end.fault:
            screen.say(f"the run was stopped: {end.fault}")
        try:
            crash_point("form:before_keep")
            ready.rundir.keep_forms(end.forms)
            written = summarize_run(ready.rundir, screen)
            if end.budget is not None:
                keep_unrecorded(ready, end.budget)
            keep_held(ready.rundir)
        except (OSError, UsageError) as error:
            if not end.fault:
                raise
            # The disk that stopped the run may have no room for tables either.
            screen.say(f"no tables: {error}")
            return nothing_written(), Exit.STOPPED
        return written, _ended(ready, end, written, screen, probe=probe)


def _ask(ready: Ready, screen: Screen) -> RunEnd:
    quiet_ray()
    # Ray takes seconds to import, and a run that has everything on disk does not need it.
    from judgebias.pipeline.run import ask_missing

    def watch(progress: Progress) -> None:
        ready.rundir.check_owner()
        screen.progress(progress)

    screen.start(ready.missing)
    try:
        return ask_missing(ready, watch)
    finally:
        screen.finish()


def overridden(config: RunConfig, overrides: Overrides) -> RunConfig:
    """Apply the command line to the run file, with the same checks."""
    data = config.model_dump(exclude_unset=True)
    # What was typed is relative to where it was typed, not to the run file.
    for name in ("pairs", "out"):
        if value := getattr(overrides, name):
            if name == "out":
                refuse_lost_folder("--out", value)
            data[name] = value if "://" in value else str(Path(value).absolute())
    if overrides.items:
        data["self_pair"] = overrides.items
    if overrides.address:
        data["engine"] = {**data.get("engine", {}), "address": overrides.address}
    unknown = set(overrides.judges) - {judge.name for judge in config.judges}
    if unknown:
        known = ", ".join(judge.name for judge in config.judges)
        raise ConfigError(f"no judge is named {sorted(unknown)[0]!r}", expected=f"one of: {known}")
    return check_run(data, where="the command line")


def _plan_line(ready: Ready) -> str:
    mine = {name: n for name, n in ready.expected.items() if name not in ready.concluded}
    expected, missing = sum(mine.values()), sum(ready.missing.values())
    judges = len(mine)
    if not judges:
        return "the stop rule holds for every judge: nothing to ask"
    if not missing:
        return f"all {expected:,} calls of {_judges(judges)} are on disk: nothing to ask"
    done = f", {expected - missing:,} are on disk" if missing < expected else ""
    return f"{missing:,} calls to ask of {_judges(judges)}{done}"


def _judges(number: int) -> str:
    return "1 judge" if number == 1 else f"{number} judges"


def _ended(ready: Ready, end: RunEnd, written: Written, screen: Screen, *, probe: bool) -> Exit:
    """Say what stopped the run, and choose the exit code."""
    for judge, reason in end.halted.items():
        screen.say(f"{judge} was stopped: {reason}")
    if end.interrupted:
        screen.say("interrupted: what was in flight has landed")
    if end.budget_spent:
        screen.say(_budget_line(ready, end.budget))
    for judge, reason in end.concluded.items():
        screen.say(f"{judge} needs no further calls: {reason}; see {_stopping(ready.rundir)}")
    pending = _pending(ready, end, written, probe=probe)
    cut = (end.interrupted or end.halted or end.budget_spent) and not end.concluded
    cut_short = end.pending if cut else 0
    if pending or cut_short or end.fault:
        number = pending or cut_short
        goes_on = "a larger budget" if end.budget_spent else "the same command"
        screen.say(f"{number:,} calls are pending; {goes_on} goes on from here")
        return Exit.STOPPED
    n_failed = _failed_items(written) if probe else written.n_failed
    if n_failed:
        calls = "1 call" if n_failed == 1 else f"{n_failed:,} calls"
        screen.say(f"{calls} ended without a verdict: see {_failures(ready.rundir)}")
        return Exit.UNANSWERED
    return Exit.COMPLETE


def _pending(ready: Ready, end: RunEnd, written: Written, *, probe: bool) -> int:
    """Count the calls that have not ended, by the journal: a dead worker's turns tell nothing.

    What the stop rule leaves out is not pending; it leaves out nothing of the probe.
    """
    over = {*ready.concluded, *end.concluded}
    return sum(
        written.pending_items[judge] if probe or judge in over else written.pending[judge]
        for judge in ready.expected
    )


def _stopping(rundir: RunDir) -> str:
    return rundir.shown(rundir.path / "tables" / "stopping.csv")


def _failed_items(written: Written) -> int:
    return int(written.self_pair.filter(pl.col("task") == "ALL")["n_failed"].sum())


def _budget_line(ready: Ready, state: BudgetState | None) -> str:
    budget = ready.plan.config.budget
    bounds = [f"max_calls = {budget.max_calls:,}"] if budget.max_calls else []
    bounds += [] if budget.max_usd is None else [f"max_usd = {budget.max_usd:,.2f}"]
    line = f"the budget ({', '.join(bounds)}) has no room for another pair"
    if state is not None and 0 < len(state.ended) < len(ready.expected):
        line += f" of {', '.join(state.ended)}"
    line += ": the report is partial"
    if state is not None and state.lost_calls:
        n = state.lost_calls
        line += f"; {n:,} requests that dead workers may have sent count as spent"
    return line


def _failures(rundir: RunDir) -> str:
    return rundir.shown(rundir.path / "tables" / "failures.csv")
