"""Position by length (`tables/length_bands.csv`): the figures for pairs of similar length.

The direction of a position bias can reverse with length, and then the whole hides it. Two sets of
bands: `quartiles` of len_a + len_b over the pairs of the input, the same for all judges, and
`fixed` ones. A row per judge x task, and per judge over ALL, in each band that has pairs.

Columns: `judge, task, bands, band, from_length, to_length` (code points, both ends inside; null
where open), the columns of the summary after `task`, `p_bands_differ`, `crossing`, `reason`.
`q_position` is adjusted over the rows of one set of bands, task and ALL rows apart.
`p_bands_differ` is the chi-square test of lean_first and lean_second by band; `crossing` names
where the direction reverses between two bands that both show one; both stand on every row of the
judge, task and set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import polars as pl

from judgebias.stats.heterogeneity import directions_differ_p
from judgebias.summary.columns import Figure, Row
from judgebias.summary.profiles import ALL
from judgebias.summary.rows import SUMMARY_COLUMNS, column_type, compare
from judgebias.summary.settle import is_numbered
from judgebias.summary.strata import strata_rows
from judgebias.verdicts import Slot

FIXED_EDGES: Final = (0, 1000, 2000, 4000, 8000)
"""Where fixed bands begin, in code points of both answers together."""
UNKNOWN: Final = "unknown"
"""The band of pairs whose lengths are not known."""

_BAND: Final = ("bands", "band", "from_length", "to_length")
_TAIL: Final = ("p_bands_differ", "crossing", "reason")
LENGTH_BAND_COLUMNS: Final = (*SUMMARY_COLUMNS[:2], *_BAND, *SUMMARY_COLUMNS[2:], *_TAIL)
"""The columns of tables/length_bands.csv, in order."""

_TYPES: Final[dict[str, pl.DataType]] = {
    **dict.fromkeys(("bands", "band", "crossing", "reason"), pl.String()),
    **dict.fromkeys(("from_length", "to_length"), pl.Int64()),
    "p_bands_differ": pl.Float64(),
}
_NO_LENGTHS: Final = "not available: lengths are not known (no texts)"
_COMBINED: Final = pl.col("len_a").cast(pl.Int64) + pl.col("len_b").cast(pl.Int64)


def length_bands_table(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute the position figures in bands of combined length.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, in any order.

    Returns
    -------
    DataFrame
        `LENGTH_BAND_COLUMNS`, sorted by judge, task (ALL last), set of bands, length.
    """
    rows: list[Row] = []
    for name, edges in (("quartiles", _quartiles(verdicts)), ("fixed", FIXED_EDGES)):
        rows += _rows_of_bands(verdicts, name, edges)
    rows.sort(key=_order)
    schema = {name: _TYPES.get(name) or column_type(name) for name in LENGTH_BAND_COLUMNS}
    data = [[row.get(name) for name in LENGTH_BAND_COLUMNS] for row in rows]
    return pl.DataFrame(data, schema, orient="row")


def _quartiles(verdicts: pl.LazyFrame) -> tuple[int, ...]:
    """Return where the quarters of the pairs begin; equal lengths stay together."""
    keys = ("pair_id",) if is_numbered(verdicts) else ("task", "pair_id")
    pairs = verdicts.select(*keys, _COMBINED.alias("combined")).unique(keys)
    lengths = pairs.select("combined").drop_nulls().collect()["combined"].sort()
    if lengths.is_empty():
        return ()
    n = lengths.len()
    ends = [int(lengths[-(-n * part // 4) - 1]) for part in (1, 2, 3)]
    return (0, *sorted({end + 1 for end in ends if end < int(lengths[-1])}))


def _rows_of_bands(verdicts: pl.LazyFrame, name: str, edges: Sequence[int]) -> list[Row]:
    bands = {str(band["band"]): band for band in _bands(edges)}
    band_of = pl.coalesce(
        pl.when(_is_in(band["from_length"], band["to_length"])).then(pl.lit(word))
        for word, band in bands.items()
    )
    banded, judge = verdicts.with_columns(band_of.alias("band")), pl.col("judge").cast(pl.String)
    judges = verdicts.select(judge.unique().sort()).collect()["judge"].to_list()
    # One judge at a time: a row needs no other judge until rows are compared.
    found = [row for name in judges for row in strata_rows(banded.filter(judge == name), ["band"])]
    # Tasks are compared inside a band, rows of all bands are adjusted together.
    together = [{**row, **bands[str(row["band"])], "bands": name} for row in found]
    rows = sorted(compare(together, apart=["band"]), key=_order)
    return [row for same in _by_judge_and_task(rows) for row in _with_crossing(same)]


def _bands(edges: Sequence[int]) -> Iterator[Row]:
    for start, stop in pairwise((*edges, None)):
        last = None if stop is None else stop - 1
        name = f"{start}+" if last is None else f"{start}-{last}"
        yield {"band": name, "from_length": start, "to_length": last, "reason": None}
    yield {"band": UNKNOWN, "from_length": None, "to_length": None, "reason": _NO_LENGTHS}


def _is_in(start: Figure, last: Figure) -> pl.Expr:
    if start is None:
        return _COMBINED.is_null()
    above = pl.lit(start) <= _COMBINED
    return above if last is None else above & (pl.lit(last) >= _COMBINED)


def _by_judge_and_task(rows: Sequence[Row]) -> Iterator[list[Row]]:
    groups: dict[tuple[Figure, Figure], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["judge"], row["task"]), []).append(row)
    yield from groups.values()


def _with_crossing(rows: list[Row]) -> list[Row]:
    """Add what compares the bands of one judge and task, which are in the order of length."""
    known = [row for row in rows if row["band"] != UNKNOWN]
    counts = [[int(row[name] or 0) for row in known] for name in ("lean_first", "lean_second")]
    told = {"p_bands_differ": directions_differ_p(*counts), "crossing": _crossing(known)}
    return [{**row, **told} for row in rows]


def _crossing(rows: Sequence[Row]) -> str | None:
    shown = [(direction, row) for row in rows if (direction := _direction(row))]
    return (
        "; ".join(
            f"{before} up to {row['to_length']} characters, {after} from {next_row['from_length']}"
            for (before, row), (after, next_row) in pairwise(shown)
            if before != after
        )
        or None
    )


def _direction(row: Row) -> str | None:
    words = str(row["position_bias"])
    return next((str(slot) for slot in (Slot.FIRST, Slot.SECOND) if words.startswith(slot)), None)


def _order(row: Row) -> tuple[str, bool, str, bool, bool, int]:
    task, start = str(row["task"]), row["from_length"]
    length = int(start) if start is not None else 0
    fixed, unknown = row["bands"] == "fixed", start is None
    return str(row["judge"]), task == ALL, task, fixed, unknown, length
