"""`judgebias demo`: planted judges on the bundled pairs, planted beside found."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from judgebias.cli.exits import Exit
from judgebias.cli.run import Overrides, run
from judgebias.cli.screen import Screen
from judgebias.cli.table import Column, console, print_summary, table_of
from judgebias.demo import PLANTED, demo_config
from judgebias.report import words

_PLANTED = {planted.judge.name: planted.planted for planted in PLANTED}


def run_demo(out: Path, screen: Screen, *, as_json: bool) -> Exit:
    """Run the demo; a second time everything is on disk and nothing is asked."""
    summary, code = run(demo_config(out), Path.cwd(), Overrides(), screen)
    if as_json:
        print_summary(summary, as_json=True)
        return code
    print_summary(summary, as_json=False)
    whole = summary.filter(pl.col("task") == "ALL")
    columns: tuple[Column, ...] = (
        ("planted", lambda row: _PLANTED[str(row["judge"])]),
        ("found", words.bias),
        ("p position", lambda row: words.p_value(row["p_position"])),
        ("consistency", lambda row: words.percent(row["consistency"])),
    )
    console().print(table_of(whole.iter_rows(named=True), columns))
    return code
