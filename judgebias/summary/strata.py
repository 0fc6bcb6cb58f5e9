"""The summary's figures for parts of the pairs: per judge x task x stratum, and over ALL tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import polars as pl

from judgebias.stats.profiles import dense
from judgebias.summary.columns import Figure, Row, place
from judgebias.summary.figures import figures
from judgebias.summary.profiles import ALL, COUNTED, Coded, Tally, numbered

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
    """
    frame = verdicts.select(*COUNTED, *strata).collect()
    coded = Coded.of(frame)
    known: dict[_Content, Row] = {}
    rows = [
        {"judge": judge, "task": ALL} | names | _figures(tally, known)
        for unit in (["task", *strata], strata)
        for judge, names, tally in _units(frame, coded, unit)
    ]
    return sorted(rows, key=lambda row: (*place(row), *(str(row[name]) for name in strata)))


def _units(
    frame: pl.DataFrame, coded: Coded, unit: Sequence[str]
) -> Iterator[tuple[str, Row, Tally]]:
    """Count by judge and the names in some columns."""
    number, names = np.zeros(frame.height, np.int64), list[list[str]]()
    for name in unit:
        places, words = numbered(frame[name])
        number = number * len(words) + places
        names.append(words)
    units, n_units = dense(number)
    numbers = np.zeros(n_units, np.int64)
    numbers[units] = number
    for (judge, at), tally in coded.by(units).items():
        rest, told = int(numbers[at]), dict[str, Figure]()
        for name, words in zip(reversed(unit), reversed(names), strict=True):
            rest, digit = divmod(rest, len(words))
            told[name] = words[digit]
        yield judge, told, tally


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
