"""The summary's figures for parts of the pairs: per judge x task x stratum, and over ALL tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import polars as pl

from judgebias.summary.columns import Row, place
from judgebias.summary.figures import figures
from judgebias.summary.profiles import ALL, Tally, count

_OTHER: Final = ("judge", "repeat", "cluster", "gold", "state_ab", "state_ba")
COUNTED: Final = ("task", "pair_id", *_OTHER)
"""The columns of verdicts that are counted."""
_Content: TypeAlias = tuple[object, ...]


def strata_rows(verdicts: pl.LazyFrame, strata: Sequence[str]) -> list[Row]:
    """Compute the rows of each stratum, each by itself, sorted by judge, task (ALL last), stratum.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, with the text columns `strata`; none of them null.
    strata
        Columns whose values together name a stratum.

    Returns
    -------
    list of Row
        judge, task, the strata, and what `figures` gives. For a table: `compare(rows,
        apart=strata)`, then `table`.

    Notes
    -----
    Each stratum travels through `count` as if it were a task, so all are grouped at once.
    """
    frame = verdicts.select(*COUNTED, *strata).collect()
    known: dict[_Content, Row] = {}
    rows = [*_rows(frame, ["task", *strata], known), *_rows(frame, strata, known)]
    return sorted(rows, key=lambda row: (*place(row), *(str(row[name]) for name in strata)))


def _rows(frame: pl.DataFrame, unit: Sequence[str], known: dict[_Content, Row]) -> Iterable[Row]:
    units = frame.select(unit).unique().sort(unit).with_row_index("unit")
    named = frame.join(units, on=unit, how="left").select(
        *_OTHER,
        pl.col("unit").cast(pl.String).alias("task"),
        # A pair is known by its task too, which the stratum's name is about to cover.
        pl.struct("task", "pair_id").alias("pair_id"),
    )
    names = units.drop("unit").to_dicts()
    for (judge, task), tally in count(named.lazy()).items():
        if task != ALL:
            about: Row = {"judge": judge, "task": ALL} | names[int(task)]
            yield about | _figures(tally, known)


def _figures(tally: Tally, known: dict[_Content, Row]) -> Row:
    """Compute figures once for equal tallies: many small strata are alike, as is a lone task."""
    profiles = tally.profiles
    content = (
        frozenset(tally.states.items()),
        profiles.codes.tobytes(),
        profiles.counts.tobytes(),
        profiles.multiplicity.tobytes(),
    )
    if content not in known:
        known[content] = figures(tally)
    return known[content]
