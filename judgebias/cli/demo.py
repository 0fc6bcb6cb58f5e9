"""`judgebias demo`: planted judges on the bundled pairs, planted beside found."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from rich import box
from rich.table import Table

from judgebias.cli.exits import Exit
from judgebias.cli.run import Overrides, overridden, run
from judgebias.cli.screen import Screen
from judgebias.cli.table import console, print_summary
from judgebias.demo import PLANTED, demo_config
from judgebias.report import words

_PLANTED = {planted.judge.name: planted.planted for planted in PLANTED}


def run_demo(out: Path, screen: Screen, *, as_json: bool) -> Exit:
    """Run the demo; a second time everything is on disk and nothing is asked."""
    config = overridden(demo_config(Path()), Overrides(out=str(out)))
    written, code = run(config, Path.cwd(), Overrides(), screen)
    summary = written.summary
    if as_json:
        print_summary(summary, as_json=True)
        return code
    print_summary(summary, as_json=False)
    console().print(_planted_beside_found(summary.filter(pl.col("task") == "ALL")))
    return code


def _planted_beside_found(rows: pl.DataFrame) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("judge", "planted", "found", "p position"):
        table.add_column(head)
    for row in rows.iter_rows(named=True):
        name = str(row["judge"])
        table.add_row(name, _PLANTED[name], words.bias(row), words.p_value(row["p_position"]))
    return table
