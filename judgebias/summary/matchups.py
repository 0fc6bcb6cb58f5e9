"""tables/matchups.csv: the summary's figures per judge x task x model pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from judgebias.summary.columns import Row
from judgebias.summary.rows import compare, table
from judgebias.summary.strata import strata_rows

MODELS: Final = ("model_a", "model_b")


def matchups_table(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute the figures per judge x task x model pair; no rows where no pair names models.

    Model pairs are those of the input, as given: where a file holds both (x, y) and (y, x) they are
    two rows, so that "A wins" names one model in each. The columns are those of the summary, with
    `model_a` and `model_b` after `task`. The family of `q_position` is the rows of this table.
    """
    return compare_matchups(matchup_rows(verdicts))


def matchup_rows(verdicts: pl.LazyFrame) -> list[Row]:
    """Compute the rows of each model pair, each by itself; pairs without a model are left out."""
    named = verdicts.filter(pl.all_horizontal(pl.col(MODELS).is_not_null()))
    return strata_rows(named, MODELS)


def compare_matchups(rows: Sequence[Row]) -> pl.DataFrame:
    """Make the table of the rows of all judges."""
    return table(compare(rows, apart=MODELS), extra={name: pl.String() for name in MODELS})
