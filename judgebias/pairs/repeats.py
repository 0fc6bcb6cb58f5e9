"""Rows that name the same pair: equal ones are judged once, different ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from judgebias.errors import InputError

_KEY = ("task", "pair_id")
_EXAMPLES = 5

Place = Callable[[int, int], str]
"""Says where (block, offset) lies: file and row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Distinct:
    """An index without repeated rows."""

    index: pl.DataFrame
    dropped: pl.DataFrame
    """Rows of the index that are not judged again."""


def drop_repeats(index: pl.DataFrame, place: Place) -> Distinct:
    """Keep the first row of every key.

    Only rows whose key's hash occurs twice are compared by their names: memory stays at eight
    bytes a row unless the input really repeats itself.

    Raises
    ------
    InputError
        The same key stands for different pairs.
    """
    keys = np.sort(index["key"].to_numpy())
    repeated = np.unique(keys[1:][keys[1:] == keys[:-1]])
    if not repeated.size:
        return Distinct(index=index, dropped=index.clear())
    is_suspect = pl.Series(np.isin(index["key"].to_numpy(), repeated))
    suspects = index.with_row_index("at").filter(is_suspect)
    later = _compare_with_first(suspects).filter(pl.col("at") != pl.col("first_at"))
    _refuse_different(later, place)
    keep = np.ones(index.height, dtype=np.bool_)
    keep[later["at"].to_numpy()] = False
    return Distinct(index=index.filter(pl.Series(keep)), dropped=later.select(index.columns))


def _compare_with_first(suspects: pl.DataFrame) -> pl.DataFrame:
    names = ("at", "digest", "rest", "block", "offset")
    return suspects.with_columns(
        pl.col(name).first().over(_KEY).alias(f"first_{name}") for name in names
    )


def _refuse_different(later: pl.DataFrame, place: Place) -> None:
    same = (pl.col("digest") == pl.col("first_digest")) & (pl.col("rest") == pl.col("first_rest"))
    different = later.filter(~same)
    if different.is_empty():
        return
    examples = [
        f"  task {row['task']!r}, pair_id {row['pair_id']!r}: "
        f"{place(row['first_block'], row['first_offset'])} and {place(row['block'], row['offset'])}"
        for row in different.head(_EXAMPLES).iter_rows(named=True)
    ]
    raise InputError(
        "\n".join([f"{different.height} rows repeat a key with different content", *examples]),
        expected="one pair for each task and pair_id",
        do="give each pair an id of its own, or delete the row that is wrong",
    )


def look_alikes(index: pl.DataFrame) -> list[str]:
    """Warn of ids that differ only in Unicode form or in spaces; they stay different pairs."""
    ids = index["pair_id"]
    plain = ids.str.len_bytes().sum() == ids.str.len_chars().sum()
    if plain and not ids.str.contains(r"^\s|\s$").any():
        return []
    alike = index.select(*_KEY, ids.str.normalize("NFC").str.strip_chars().alias("alike"))
    n_alike = index.height - alike.select("task", "alike").unique().height
    if not n_alike:
        return []
    return [f"{n_alike} ids differ from another one only in Unicode form or outer spaces"]
