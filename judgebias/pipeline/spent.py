"""The budget of a run at its start: whether it can be kept, and what is spent of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import polars as pl

from judgebias.config import Budget, FunctionJudge, JudgeConfig, WireJudge
from judgebias.errors import ConfigError
from judgebias.journal import read_journal
from judgebias.judges.opening import template_of
from judgebias.pace.budget import Amount, Grant, Spending, Tariff, worst_usd
from judgebias.pace.wallet import Wallet
from judgebias.pipeline.plan import RunPlan
from judgebias.pipeline.ready import Ready
from judgebias.pipeline.surveyed import numbers_of
from judgebias.progress import BudgetState


def bounded(budget: Budget) -> bool:
    """Tell whether the run file sets a budget at all."""
    return budget.max_usd is not None or budget.max_calls > 0


def check_prices(budget: Budget, judges: Iterable[JudgeConfig]) -> None:
    """Refuse a bound in USD on calls whose price nobody knows.

    Raises
    ------
    ConfigError
        Naming the judges without a price.
    """
    if budget.max_usd is None:
        return
    unknown = [judge.name for judge in judges if not _priced(judge)]
    if unknown:
        raise ConfigError(
            f"max_usd = {budget.max_usd:g} cannot be kept: the price of {', '.join(unknown)}"
            " is unknown",
            expected="price = { input = ..., output = ... } in USD per million tokens for every"
            " judge on the wire; for a function only price = { input = 0, output = 0 }",
            do="add the prices, or bound max_calls instead",
        )


def _priced(judge: JudgeConfig) -> bool:
    """Tell whether a call's cost can be known: a function of the user's counts no tokens."""
    if isinstance(judge, WireJudge):
        return judge.price is not None
    if isinstance(judge, FunctionJudge):
        return judge.price is not None and not (judge.price.input or judge.price.output)
    return True


def spent_so_far(ready: Ready) -> Amount:
    """Add up what was spent by whatever start of the command, as the journal says.

    A reply whose cost is unknown counts as the dearest that its judge could have sent; requests
    that earlier starts know of and the journal does not count as well.
    """
    rows = read_journal(ready.rundir.journal, columns=("judge", "attempts", "cost_usd")).table
    tariff = tariff_of(ready.plan)
    # A pair of the probe shows one answer twice.
    most = 2 * int(numbers_of(ready.survey, "n_bytes").max(initial=0))
    # Judges that left the run file or were renamed spent of the same budget.
    others = rows.filter(~pl.col("judge").cast(pl.String).is_in(list(tariff.judges)))
    spent = Amount(calls=int(others["attempts"].sum()), usd=float(others["cost_usd"].sum()))
    spent += ready.plan.unrecorded
    for name, judge in tariff.judges.items():
        mine = rows.filter(pl.col("judge").cast(pl.String) == name)
        usd = float(mine["cost_usd"].sum())
        unknown = int(mine.filter(pl.col("cost_usd").is_null())["attempts"].sum())
        usd += unknown * worst_usd(judge, most + tariff.template_bytes.get(name, 0))
        spent += Amount(calls=int(mine["attempts"].sum()), usd=usd)
    return spent


def keep_unrecorded(ready: Ready, state: BudgetState) -> None:
    """Note for the next start what this one counts as spent and the journal does not tell."""
    known = spent_so_far(ready)
    requests, usd = max(0, state.calls - known.calls), max(0.0, state.usd - known.usd)
    if requests:
        ready.rundir.keep_unrecorded(requests, usd)


def means_so_far(ready: Ready) -> dict[str, float]:
    """Average what the calls on disk cost, by judge; those without a priced call are left out."""
    rows = read_journal(ready.rundir.journal, columns=("judge", "cost_usd")).table
    means = rows.drop_nulls("cost_usd").group_by("judge").agg(pl.col("cost_usd").mean())
    return {str(judge): float(mean) for judge, mean in means.iter_rows()}


def tariff_of(plan: RunPlan) -> Tariff:
    """Find what a call of each judge costs at its worst."""
    judges = {judge.name: judge for judge in plan.config.judges}
    templates = {
        name: len(template_of(judge, str(Path(plan.base))).text.encode())
        for name, judge in judges.items()
        if isinstance(judge, WireJudge)
    }
    return Tariff(judges=judges, template_bytes=templates)


def open_wallet(plan: RunPlan, exchange: Callable[[Spending], Awaitable[Grant]]) -> Wallet | None:
    """Make a worker's wallet; a run without a budget has none."""
    budget = plan.config.budget
    if not bounded(budget):
        return None
    return Wallet(exchange, tariff_of(plan), usd=budget.max_usd is not None)
