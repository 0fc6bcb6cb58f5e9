"""Identity leaks of a run that is about to start: in the pairs of its design, and in its templates.

What a template or a rubric names goes to the judge with every pair, so it is looked through too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from judgebias.config import RunConfig, WireJudge
from judgebias.design import Design, Words
from judgebias.families import judge_families
from judgebias.judges.opening import template_of
from judgebias.leaks import LEAK_COLUMNS, leaks_of_text
from judgebias.pairs import Survey
from judgebias.summary.figures import Row
from judgebias.summary.leaks import leak_rows


def leaks_of_run(config: RunConfig, survey: Survey, words: Words, design: Design) -> list[Row]:
    """Count the leaks that each judge would be shown, per task and over ALL."""
    # As categories, a pair takes twelve bytes however long the names are.
    names = survey.rows.scan.select(pl.col("task", *LEAK_COLUMNS).cast(pl.Categorical))
    chosen = names.collect(engine="streaming").filter(design.chosen(words))
    families = judge_families(config)
    return [
        row
        for judge in config.judges
        for row in leak_rows(judge.name, families[judge.name], chosen, survey.skipped)
    ]


def template_leaks(config: RunConfig, models: Sequence[str], base: Path) -> list[str]:
    """Say which judges are told a model's name by their own template, rubric or criteria."""
    lines: list[str] = []
    for judge in config.judges:
        if isinstance(judge, WireJudge):
            names = leaks_of_text(template_of(judge, str(base)).text, models)
            if names:
                told = ", ".join(names)
                lines.append(f"the template or rubric of judge {judge.name} names {told}")
    return lines
