"""The tables on what misleads a judge beside position, and on judges together, two at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import polars as pl

from judgebias.biases.agreement import agreement_table
from judgebias.biases.ballots import ballots_of
from judgebias.biases.contests import contests
from judgebias.biases.length import length_table
from judgebias.biases.length_bands import length_bands_table
from judgebias.biases.panel import panel_table
from judgebias.biases.panel_verdicts import panel_verdicts
from judgebias.biases.ranking import ranking_table, wins_table
from judgebias.biases.self_preference import self_preference_table
from judgebias.biases.tone import tone_table
from judgebias.cli.evidence import Evidence
from judgebias.summary.matchups import compare_matchups, matchup_rows
from judgebias.summary.strength import compare_strength, strength_rows
from judgebias.tone import DENSITY_COLUMNS

_Tables = dict[str, pl.DataFrame]
_AT_ONCE: Final = min(2, os.cpu_count() or 1)
"""Each has millions of rows in memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BiasTables:
    """All of them, by name."""

    tables: _Tables
    panel: pl.LazyFrame | None
    """The panel's verdicts, None where there is one judge."""

    @classmethod
    def of(cls, evidence: Evidence, verdicts: Mapping[str, pl.LazyFrame]) -> BiasTables:
        """Make the tables.

        Parameters
        ----------
        evidence
            What the verdicts were made of.
        verdicts
            Judge -> what `settle_calls` gives.
        """
        every = pl.concat(verdicts.values())
        making: list[Callable[[], _Tables]] = [
            lambda: {"self_preference": _self_preference(evidence, every)},
            lambda: {"length": length_table(every)},
            lambda: {"length_bands": length_bands_table(every)},
            lambda: {"tone": _tone(evidence, every)},
            lambda: {"matchups": _matchups(verdicts)},
            lambda: {"matchup_strength": _strength(verdicts)},
        ]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            together = threads.submit(_together, evidence, every)
            made = [threads.submit(make) for make in making]
            tables, panel = together.result()
            for each in made:
                tables |= each.result()
        return cls(tables=tables, panel=panel)


def family_of(evidence: Evidence, judge: str) -> str:
    """Tell the family of a judge."""
    return evidence.judge_families.get(judge) or evidence.families.family(judge)


def _together(evidence: Evidence, verdicts: pl.LazyFrame) -> tuple[_Tables, pl.LazyFrame | None]:
    """Make the tables on judges beside each other, and on what they say of models."""
    tables: _Tables = {}
    voters, panel = verdicts, None
    if len(evidence.judges) > 1:
        families = {judge: family_of(evidence, judge) for judge in evidence.judges}
        ballots, quorum = ballots_of(verdicts), evidence.quorum
        tables["agreement"] = agreement_table(verdicts, quorum=quorum, ballots=ballots)
        tables["panel"] = panel_table(verdicts, quorum=quorum, families=families, ballots=ballots)
        panel = panel_verdicts(verdicts, quorum=quorum, ballots=ballots)
        voters = pl.concat([verdicts, panel])
    met = list(contests(voters))
    ranked = {"ranking": ranking_table(voters, met=met), "wins": wins_table(voters, met=met)}
    return tables | ranked, panel


def _tone(evidence: Evidence, verdicts: pl.LazyFrame) -> pl.DataFrame:
    return tone_table(verdicts, evidence.told(DENSITY_COLUMNS))


def _self_preference(evidence: Evidence, verdicts: pl.LazyFrame) -> pl.DataFrame:
    return self_preference_table(
        verdicts, judges=evidence.judge_families, families=evidence.families
    )


def _matchups(verdicts: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    return compare_matchups([row for mine in verdicts.values() for row in matchup_rows(mine)])


def _strength(verdicts: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    return compare_strength([row for mine in verdicts.values() for row in strength_rows(mine)])
