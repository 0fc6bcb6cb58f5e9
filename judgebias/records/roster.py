"""The pairs that records speak of: numbered as they appear, with what records say of them.

Every record repeats what it knows of its pair. Kept once per pair, that is a few megabytes where
the records themselves would be gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import polars as pl

from judgebias.records.columns import QUESTION, WHOLE

ATTRIBUTES: Final = ("model_a", "model_b", "gold", "cluster", QUESTION, "len_a", "len_b")
"""What a record may say of its pair."""

_NUMBER: Final = "number"
_HELD: Final = ":held"
_PLACE: Final = "place"


class Roster:
    """Gives each pair a number and holds what was said of it."""

    def __init__(self, extra: Sequence[str] = ()) -> None:
        self.names = (*ATTRIBUTES, *extra)
        self.told: set[str] = set()
        """The attributes that some record has."""
        self._tasks: dict[str, pl.DataFrame] = {}
        self._contradicted: list[pl.DataFrame] = []
        self._size = 0

    def numbers(self, records: pl.DataFrame) -> pl.Series:
        """Give the number of each record's pair, and keep what the records say of it."""
        placed = records.select(
            "task", "pair_id", *self.names, pl.int_range(pl.len(), dtype=pl.UInt32).alias(_PLACE)
        )
        found = [self._of_task(task, part) for task, part in parts_by(placed, "task")]
        return (found[0] if len(found) == 1 else pl.concat(found).sort(_PLACE))[_NUMBER]

    @property
    def contradicted(self) -> pl.DataFrame:
        """task, pair_id of the pairs of which records say different things."""
        empty = pl.DataFrame(schema={"task": pl.String, "pair_id": pl.String})
        return pl.concat([empty, *self._contradicted]).unique()

    def pairs(self) -> pl.DataFrame:
        """One row a pair, sorted by task and id: both, `number` and the attributes."""
        columns = ("task", "pair_id", _NUMBER, *self.names)
        parts = [
            held.sort("pair_id").with_columns(task=pl.lit(task)).select(columns)
            for task, held in sorted(self._tasks.items())
        ]
        return pl.concat(parts, rechunk=True)

    def _of_task(self, task: str, records: pl.DataFrame) -> pl.DataFrame:
        said = [name for name in self.names if records[name].null_count() < records.height]
        self.told.update(said)
        held = self._tasks.get(task, _nobody(self.names))
        joined = _beside(records, held)
        if joined[_NUMBER].has_nulls():
            held = self._with_new(held, joined.filter(pl.col(_NUMBER).is_null()))
            joined = _beside(records, held)
        late = [name for name in said if (_is_missing(joined, name)).any()]
        if late:
            held = _filled(held, joined, late)
            joined = _beside(records, held)
        self._tasks[task] = held
        differ = [pl.col(name) != pl.col(f"{name}{_HELD}") for name in said]
        wrong = joined.filter(pl.any_horizontal(differ)) if said else joined.clear()
        if wrong.height:
            self._contradicted.append(wrong.select(pl.lit(task).alias("task"), "pair_id").unique())
        return joined.select(_PLACE, _NUMBER)

    def _with_new(self, held: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        """Add the pairs of records that are not held."""
        # Whichever record is taken, the others are compared with it, and fill in what it lacks.
        single = new.unique("pair_id", keep="any").select("pair_id", *self.names)
        numbers = pl.int_range(self._size, self._size + pl.len(), dtype=pl.UInt32)
        self._size += single.height
        numbered = single.with_columns(numbers.alias(_NUMBER)).select(held.columns)
        return pl.concat([held, numbered], rechunk=True)


def parts_by(frame: pl.DataFrame, column: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """Part a frame by the names in a column; most files have one, and need no copy."""
    if frame.height and frame[column].n_unique() == 1:
        yield str(frame[column][0]), frame
        return
    for (name,), part in frame.partition_by(column, as_dict=True, maintain_order=True).items():
        yield str(name), part


def _nobody(names: Sequence[str]) -> pl.DataFrame:
    types = {name: pl.Int64 if name in WHOLE else pl.String for name in names}
    return pl.DataFrame(schema={"pair_id": pl.String, _NUMBER: pl.UInt32, **types})


def _beside(records: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Put what is held of its pair beside each record, in the order of the records."""
    return records.join(held, on="pair_id", how="left", suffix=_HELD, maintain_order="left")


def _is_missing(joined: pl.DataFrame, name: str) -> pl.Series:
    return joined[f"{name}{_HELD}"].is_null() & joined[name].is_not_null()


def _filled(held: pl.DataFrame, joined: pl.DataFrame, late: Sequence[str]) -> pl.DataFrame:
    """Fill in what only a later record says."""
    news = joined.group_by("pair_id").agg(pl.col(late).max())
    both = held.join(news, on="pair_id", how="left", suffix=_HELD, maintain_order="left")
    filled = both.with_columns(pl.coalesce(name, f"{name}{_HELD}").alias(name) for name in late)
    return filled.select(held.columns)
