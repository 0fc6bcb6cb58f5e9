"""`judgebias selftest`: what was planted beside what was found, and every bar that is missed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Final, TypeAlias

from rich import box
from rich.table import Table

from judgebias.cli.exits import Exit
from judgebias.cli.table import console
from judgebias.selftest.checks import Check
from judgebias.selftest.measure import Measured
from judgebias.selftest.run import SelfTest, self_test
from judgebias.selftest.stopping import BLOCK, HALF_WIDTH, PAIRS, WORKERS, StopRow
from judgebias.selftest.truth import INTERVALS

_MISSING: Final = "-"
_HEADS: Final = {
    "consistency": "consist-\nency",
    "first_position_rate": "first\nslot",
    "lean_rate": "lean\nrate",
    "offset": "off-\nset",
    "swing": "swing",
    "win_rate_a": "win\nrate A",
    "decisive_win_rate_a": "decis-\nive A",
    "kappa": "kappa",
}
_StopColumn: TypeAlias = tuple[str, Callable[[StopRow], str]]


def print_self_test(*, seed: int, repetitions: int, as_json: bool) -> Exit:
    """Run the self-test and print it; returns what the command exits with."""
    result = self_test(seed=seed, repetitions=repetitions)
    if as_json:
        sys.stdout.write(json.dumps(_data(result), indent=2) + "\n")
    else:
        _print(result)
    return Exit.GATE_FAILED if result.broken else Exit.COMPLETE


def _print(result: SelfTest) -> None:
    out = console()
    out.print(_planted_table(result))
    out.print(_how_to_read(result), markup=False, highlight=False)
    out.print(_about_stops(result), markup=False, highlight=False)
    out.print(_stop_table(result))
    for check in result.checks:
        if not check.repetitions:
            verdict = "holds" if check.holds else "is missed"
            out.print(f"by enumeration: {check.judge}: {check.figure} {check.value:.4f} {verdict}")
    _print_missed("short of the bar, as is known:", result.short)
    _print_missed("BROKEN:", result.broken)
    n = len(result.checks)
    missed = len(result.short) + len(result.broken)
    out.print(f"{n - missed} of {n} bars hold, {len(result.broken)} are broken")


def _print_missed(head: str, checks: tuple[Check, ...]) -> None:
    if checks:
        console().print(head)
    for check in checks:
        console().print(f"  {check.sentence()}", markup=False, soft_wrap=True)


def _planted_table(result: SelfTest) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("#", justify="right")
    table.add_column("planted judge", no_wrap=True)
    heads = ("pairs", "offset\ntrue / found", "consist.\ntrue / found", "found\n%", "pooled\n%")
    for name in (*heads, *(_HEADS[figure] for figure in INTERVALS)):
        table.add_column(name, justify="right", no_wrap=True)
    for one in result.measured:
        table.add_row(*_planted_row(one))
    return table


def _planted_row(one: Measured) -> list[str]:
    n = one.repetitions
    found = [_recovered(one, "offset"), _recovered(one, "consistency")]
    rejected = [f"{100 * one.found / n:.1f}", f"{100 * one.rejected['p_value'] / n:.1f}"]
    coverage = [_coverage(one, figure) for figure in INTERVALS]
    about = [str(one.seed[1]), one.planted.name, f"{one.planted.n_pairs}"]
    return [*about, *found, *rejected, *coverage]


def _recovered(one: Measured, figure: str) -> str:
    estimated = one.estimated.get(figure)
    if estimated is None:
        return _MISSING
    mean = _MISSING if estimated.mean is None else f"{estimated.mean:.2f}"
    return f"{estimated.truth:.2f} / {mean}"


def _coverage(one: Measured, figure: str) -> str:
    estimated = one.estimated.get(figure)
    if estimated is None or not estimated.available:
        return _MISSING
    return f"{100 * estimated.covered / estimated.available:.1f}"


def _how_to_read(result: SelfTest) -> str:
    return (
        f"{result.repetitions} repetitions; the draws of row # come from numpy's default_rng("
        f"[{result.seed}, #]).\n"
        "found %: how often position bias is reported, by p position; of a judge without bias these"
        " are false findings, 5% at most.\n"
        "pooled %: how often the customary test over single calls is below .05: blind for good "
        "judges, and it cries wolf for bad ones.\n"
        "The last eight columns: how often (%) the 95% interval of a figure holds the true value."
    )


_STOPS: Final[tuple[_StopColumn, ...]] = (
    ("#", lambda row: f"{row.seed[1]}"),
    ("swing", lambda row: f"{row.swing:g}"),
    ("consist.", lambda row: f"{row.consistency:g}"),
    ("false %\npopulation", lambda row: f"{100 * row.false_population:.2f}"),
    ("false %\nset", lambda row: f"{100 * row.false_set:.2f}"),
    ("peeking\nat p %", lambda row: f"{100 * row.false_peeking:.1f}"),
    ("miss %\npopulation", lambda row: f"{100 * row.missed_population:.1f}"),
    ("miss %\nset", lambda row: f"{100 * row.missed_set:.1f}"),
    ("decided\n%", lambda row: f"{100 * row.decided:.1f}"),
    ("pairs to\ndecide", lambda row: f"{row.used_decided[0]:,.0f}"),
    ("bought", lambda row: f"{row.used_decided[1]:,.0f}"),
    ("fixed", lambda row: _MISSING if row.fixed_power is None else f"{row.fixed_power:,}"),
    ("pairs to\nwidth", lambda row: f"{row.used_width[0]:,.0f}"),
    ("bought", lambda row: f"{row.used_width[1]:,.0f}"),
    ("fixed", lambda row: f"{row.fixed_width:,}"),
    ("either:\nbought", lambda row: f"{row.used_either[1]:,.0f}"),
)


def _stop_table(result: SelfTest) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name, _ in _STOPS:
        table.add_column(name, justify="right", no_wrap=True)
    for row in result.stops:
        table.add_row(*(show(row) for _, show in _STOPS))
    return table


def _about_stops(result: SelfTest) -> str:
    first = result.stops[0]
    return (
        f"Stop rule: sets of {PAIRS:,} pairs, a look after every block of {BLOCK}, {WORKERS} "
        f"workers out of order, half-width {HALF_WIDTH:g}.\n"
        f"{first.repetitions:,} runs; bounds, pairs and peeking over {first.fewer:,} of them. "
        "Pairs: settled when the rule holds, and bought by then.\n"
        "fixed: what a fixed design needs for power .8, and for the same width. A swing is never "
        "larger than the share of pairs that lean."
    )


def _data(result: SelfTest) -> dict[str, object]:
    return {
        "seed": result.seed,
        "repetitions": result.repetitions,
        "planted": [_planted_data(one) for one in result.measured],
        "stop_rule": [asdict(row) for row in result.stops],
        "checks": [
            {**asdict(check), "holds": check.holds, "broken": check.broken}
            for check in result.checks
        ],
    }


def _planted_data(one: Measured) -> dict[str, object]:
    return {
        "judge": one.planted.name,
        "seed": one.seed,
        "n_pairs": one.planted.n_pairs,
        "n_clusters": one.planted.clusters,
        "repetitions": one.repetitions,
        "said": one.said,
        "rejected": one.rejected,
        "figures": {name: asdict(figure) for name, figure in one.estimated.items()},
    }
