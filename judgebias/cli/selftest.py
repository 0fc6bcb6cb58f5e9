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
    "consistency": "consist.",
    "first_position_rate": "1st slot",
    "lean_rate": "lean",
    "offset": "offset",
    "swing": "swing",
    "win_rate_a": "win A",
    "decisive_win_rate_a": "dec. A",
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
    out.print(_how_to_read(result))
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
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("planted judge", "seed"):
        table.add_column(name)
    heads = ("pairs", "offset: true", "found", "consist.: true", "found", "p position", "pooled p")
    for name in (*heads, *(_HEADS[figure] for figure in INTERVALS)):
        table.add_column(name, justify="right")
    for one in result.measured:
        table.add_row(*_planted_row(one))
    return table


def _planted_row(one: Measured) -> list[str]:
    n = one.repetitions
    found = [*_recovered(one, "offset"), *_recovered(one, "consistency")]
    rejected = [f"{one.found / n:.1%}", f"{one.rejected['p_value'] / n:.1%}"]
    coverage = [_coverage(one, figure) for figure in INTERVALS]
    seed = ", ".join(str(part) for part in one.seed)
    return [one.planted.name, seed, str(one.planted.n_pairs), *found, *rejected, *coverage]


def _recovered(one: Measured, figure: str) -> list[str]:
    estimated = one.estimated.get(figure)
    if estimated is None:
        return [_MISSING, _MISSING]
    mean = _MISSING if estimated.mean is None else f"{estimated.mean:.2f}"
    return [f"{estimated.truth:.2f}", mean]


def _coverage(one: Measured, figure: str) -> str:
    estimated = one.estimated.get(figure)
    if estimated is None or not estimated.available:
        return _MISSING
    return f"{estimated.covered / estimated.available:.1%}"


def _how_to_read(result: SelfTest) -> str:
    return (
        f"seed {result.seed}: a row's draws come from numpy's default_rng(seed shown); "
        f"{result.repetitions} repetitions each.\n"
        "p position: how often position bias is reported; for judges without bias these are "
        "false findings (5% at most).\n"
        "pooled p: the same by the customary test over single calls (p_value), for contrast.\n"
        "The columns from the second 'consist.' on: how often the 95% interval holds the truth."
    )


_STOPS: Final[tuple[_StopColumn, ...]] = (
    ("swing", lambda row: f"{row.swing:g}"),
    ("consistency", lambda row: f"{row.consistency:g}"),
    ("seed", lambda row: ", ".join(str(part) for part in row.seed)),
    ("false calls, population", lambda row: f"{row.false_population:.2%}"),
    ("finite set", lambda row: f"{row.false_set:.2%}"),
    ("peeking at p", lambda row: f"{row.false_peeking:.1%}"),
    ("bounds miss, set", lambda row: f"{row.missed_set:.1%}"),
    ("population", lambda row: f"{row.missed_population:.1%}"),
    ("decided", lambda row: f"{row.decided:.1%}"),
    ("pairs: decided", lambda row: _pairs(row.used_decided)),
    ("fixed", lambda row: _MISSING if row.fixed_power is None else f"{row.fixed_power:,}"),
    ("pairs: width", lambda row: _pairs(row.used_width)),
    ("fixed", lambda row: f"{row.fixed_width:,}"),
    ("pairs: either", lambda row: _pairs(row.used_either)),
)


def _pairs(used: tuple[float, float]) -> str:
    return f"{used[0]:,.0f} / {used[1]:,.0f}"


def _stop_table(result: SelfTest) -> Table:
    first = result.stops[0]
    title = (
        f"stop rule: sets of {PAIRS:,} pairs, a look after every block of {BLOCK}, {WORKERS} "
        f"workers out of order, half-width {HALF_WIDTH:g}; {first.repetitions:,} runs, bounds and "
        f"pairs used (looked at / bought) over {first.fewer:,}; fixed: for power .8, and for the "
        f"same width"
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for name, _ in _STOPS:
        table.add_column(name, justify="right")
    for row in result.stops:
        table.add_row(*(show(row) for _, show in _STOPS))
    return table


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
