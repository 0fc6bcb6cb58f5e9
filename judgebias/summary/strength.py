"""tables/matchup_strength.csv: position by how even the pairing is; bias bites where it is.

The strength of a pairing is |win rate - 1/2| of its agreed verdicts (an agreed tie is a half), over
all tasks of a judge. Pairs stuck on a slot stay out of it: as ties they would pull the pairing of a
biased judge towards an even one, and the table would show bias at even pairings whatever is true.
Under a logistic choice the agreed verdicts know the gap alone, as the stuck pairs know the offset
alone. (x, y) and (y, x) are one pairing here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from judgebias.stats.interval import MIN_CLUSTERS
from judgebias.summary.columns import Row
from judgebias.summary.matchups import MODELS
from judgebias.summary.profiles import ALL
from judgebias.summary.rows import SUMMARY_COLUMNS, compare, table
from judgebias.summary.strata import COUNTED, strata_rows
from judgebias.verdicts import Cell

UNKNOWN: Final = "not available"
"""The band of pairings with fewer than 6 agreed verdicts."""
_BANDS: Final = 5
BANDS: Final = (*(f"{n / 10:.1f} to {(n + 1) / 10:.1f}" for n in range(_BANDS)), UNKNOWN)
"""Bands of |win rate - 1/2|, lower ends included."""
_PAIRING: Final = ("judge", "model_x", "model_y")
_WINS: Final = SUMMARY_COLUMNS[SUMMARY_COLUMNS.index("wins_a") :]


def strength_table(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute the position figures per judge x task x band of strength."""
    return compare_strength(strength_rows(verdicts))


def strength_rows(verdicts: pl.LazyFrame) -> list[Row]:
    """Compute the rows of each band, each by itself, with the number of its pairings."""
    frame = _named(verdicts)
    bands = _bands(frame)
    banded = frame.join(bands, on=_PAIRING, how="left")
    pairings = _pairings(banded)
    return [
        {**row, "n_pairings": pairings[row["judge"], row["task"], row["band"]]}
        for row in strata_rows(banded.lazy(), ["band"])
    ]


def compare_strength(rows: Sequence[Row]) -> pl.DataFrame:
    """Make the table of the rows of all judges: no win figures, as a band mixes pairings."""
    extra: dict[str, pl.DataType] = {"band": pl.String(), "n_pairings": pl.Int64()}
    return table(compare(rows, apart=["band"]), extra=extra).drop(_WINS)


def _named(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Keep pairs that name their models, with the models in sorted order."""
    named = verdicts.filter(pl.all_horizontal(pl.col(MODELS).is_not_null()))
    ordered = named.with_columns(
        model_x=pl.min_horizontal(MODELS), model_y=pl.max_horizontal(MODELS)
    )
    return ordered.select(*COUNTED, "cell", "model_a", "model_x", "model_y").collect()


def _bands(frame: pl.DataFrame) -> pl.DataFrame:
    """Place each pairing of a judge in its band, in whole numbers."""
    cell = pl.col("cell").cast(pl.String)
    x_is_a = pl.col("model_a") == pl.col("model_x")
    won = pl.when(x_is_a).then(cell == str(Cell.AGREED_A)).otherwise(cell == str(Cell.AGREED_B))
    agreed = cell.is_in([str(Cell.AGREED_A), str(Cell.AGREED_B), str(Cell.AGREED_TIE)])
    lead = 2 * won.cast(pl.Int64) - (agreed & (cell != str(Cell.AGREED_TIE))).cast(pl.Int64)
    sums = frame.group_by(_PAIRING).agg(n=agreed.cast(pl.Int64).sum(), lead=lead.sum().abs())
    # |win rate - 1/2| is lead/2n: a tenth of it is 5 lead/n.
    tenth = pl.min_horizontal(_BANDS * pl.col("lead") // pl.col("n"), pl.lit(_BANDS - 1))
    number = pl.when(pl.col("n") >= MIN_CLUSTERS).then(tenth).otherwise(_BANDS)
    names = dict(enumerate(BANDS))
    return sums.select(
        *_PAIRING, number.replace_strict(names, return_dtype=pl.String).alias("band")
    )


def _pairings(banded: pl.DataFrame) -> dict[tuple[object, ...], int]:
    met = banded.select("judge", "task", "band", "model_x", "model_y").unique()
    tasks = met.with_columns(pl.col("task").cast(pl.String))
    both = pl.concat([tasks, tasks.with_columns(task=pl.lit(ALL)).unique()])
    return {
        (judge, task, band): n
        for judge, task, band, n in both.group_by("judge", "task", "band").len().iter_rows()
    }
