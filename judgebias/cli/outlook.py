"""How far a run will get: what its budget reaches for, and what its stop rule may save."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from judgebias.cli.price import Estimate
from judgebias.pace.budget import Amount
from judgebias.pipeline.ready import Ready
from judgebias.pipeline.spent import bounded, means_so_far, spent_so_far
from judgebias.pipeline.stopping import asked_columns, draws_of, rule_of, units_of_run
from judgebias.stopping.rule import Units, look
from judgebias.stopping.settled import UnitsOfRun
from judgebias.verdicts import Order


def outlook(ready: Ready, estimates: Sequence[Estimate]) -> list[str]:
    """Say what bounds the run before all its calls are asked; nothing without such bounds."""
    return [*_budget_lines(ready, estimates), *_stop_lines(ready)]


def _budget_lines(ready: Ready, estimates: Sequence[Estimate]) -> Iterator[str]:
    budget, missing = ready.plan.config.budget, sum(ready.missing.values())
    if not bounded(budget) or not missing:
        return
    spent = spent_so_far(ready) if ready.rundir.journal.is_dir() else Amount()
    if budget.max_calls:
        left = max(0, budget.max_calls - spent.calls)
        yield (
            f"budget: max_calls = {budget.max_calls:,}, {spent.calls:,} are used:"
            f" {_reach(left, missing, missing)}, where none needs a second request"
        )
    if budget.max_usd is not None:
        left_usd = max(0.0, budget.max_usd - spent.usd)
        worst = sum(estimate.worst_usd or 0.0 for estimate in estimates)
        yield (
            f"budget: max_usd = {budget.max_usd:,.2f}, {spent.usd:,.2f} are spent:"
            f" {_reach(left_usd, worst, missing)} at the most they may cost ({worst:,.2f} USD)"
        )
        if (mean := _at_the_mean(ready)) is not None:
            yield (
                f"at the mean cost of the calls on disk they need {mean:,.2f} USD:"
                f" {_reach(left_usd, mean, missing)}"
            )


def _reach(left: float, needed: float, missing: int) -> str:
    """Say for how many calls it is enough where all cost the same."""
    if left >= needed:
        return f"enough for the {missing:,} calls to ask"
    return f"enough for {int(missing * left / needed):,} of {missing:,} calls to ask"


def _at_the_mean(ready: Ready) -> float | None:
    """Estimate what is missing by what was paid; None where a judge has no priced reply yet."""
    if not ready.rundir.journal.is_dir():
        return None
    means = means_so_far(ready)
    asked = {judge: n for judge, n in ready.missing.items() if n}
    if not asked.keys() <= means.keys():
        return None
    return sum(n * means[judge] for judge, n in asked.items())


def _stop_lines(ready: Ready) -> Iterator[str]:
    buying = ready.plan.buying
    if buying is None:
        return
    index = asked_columns(ready.survey)
    units = units_of_run(index, ready.plan.design)
    asked = index.join(units.pairs, left_on="digest", right_on="pair", how="semi")
    waves = buying.waves(draws_of(asked, seed=buying.seed))
    n, soonest = asked.height, _soonest(ready, units)
    # What is settled grows wave by wave: within one, pairs come back in any order.
    ends = np.cumsum(np.bincount(waves, minlength=buying.n_waves))
    needed = int(units.sizes[:soonest].sum())
    bought = int(ends[np.searchsorted(ends, needed)]) if n else 0
    if bought >= n:
        yield (
            f"stop rule: it can save nothing here: even if all verdicts were alike it could hold"
            f" only after {bought:,} of {n:,} pairs"
        )
        return
    calls = len(Order) * units.repeats
    yield (
        f"stop rule: a judge whose verdicts are all alike is asked about {calls * bought:,} of its"
        f" {calls * n:,} calls, any other judge more (the rule can hold after {soonest:,} units at"
        f" the soonest, and pairs are bought in {buying.n_waves:,} waves)"
    )


def _soonest(ready: Ready, units: UnitsOfRun) -> int:
    """Count the units after which the rule can hold at the soonest; all of them if never."""
    rule, n, sizes = rule_of(ready.plan.config), units.sizes.size, units.sizes * units.repeats

    def holds(first: int) -> bool:
        alike = Units(
            leans=np.ones(first, dtype=np.int64), swings=2 * sizes[:first], sizes=sizes[:first]
        )
        return bool(look(rule, alike, n_units=n, largest=units.largest).reason)

    most = 1
    while most < n and not holds(most):
        most = min(n, 2 * most)
    least = most // 2
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (least, middle) if holds(middle) else (middle, most)
    return most
