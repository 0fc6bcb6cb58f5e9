"""Rows that name the same pair: equal ones are judged once, different ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.errors import InputError
from judgebias.pairs.index_rows import IndexRows

Hashes: TypeAlias = npt.NDArray[np.uint64]
Place = Callable[[int], str]
"""Says where a row of the index lies: file and row."""

_KEY = ("task", "pair_id")
_FOUND = {"at": pl.Int64, "block": pl.Int32}
_EXAMPLES = 5


def find_repeats(rows: IndexRows, keys: Hashes, rests: Hashes, place: Place) -> pl.DataFrame:
    """Find the rows whose key an earlier row has.

    Only rows whose key's hash occurs twice are compared by their names: memory stays at a few
    bytes a row unless the input really repeats itself.

    Parameters
    ----------
    rows
        The index.
    keys, rests
        Of each row, the hash of its key and of all that its digest does not cover.
    place
        Says where a row lies.

    Returns
    -------
    DataFrame
        `at` (the row's place in the index) and its `block`.

    Raises
    ------
    InputError
        The same key stands for different pairs.
    """
    ordered = np.sort(keys)
    repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not repeated.size:
        return pl.DataFrame(schema=_FOUND)
    at = np.flatnonzero(np.isin(keys, repeated))
    suspects = rows.gather(at, *_KEY, "digest", "block").with_columns(
        at=pl.Series(at), rest=pl.Series(rests[at])
    )
    later = _compare_with_first(suspects).filter(pl.col("at") != pl.col("first_at"))
    _refuse_different(later, place)
    return later.select(*_FOUND)


def _compare_with_first(suspects: pl.DataFrame) -> pl.DataFrame:
    names = ("at", "digest", "rest")
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
        f"{place(row['first_at'])} and {place(row['at'])}"
        for row in different.head(_EXAMPLES).iter_rows(named=True)
    ]
    raise InputError(
        "\n".join([f"{different.height} rows repeat a key with different content", *examples]),
        expected="one pair for each task and pair_id",
        do="give each pair an id of its own, or delete the row that is wrong",
    )


def is_plain(ids: pl.Series) -> bool:
    """Tell whether no id of these could look like another one: ASCII, and no outer spaces."""
    return (
        ids.str.len_bytes().sum() == ids.str.len_chars().sum()
        and not ids.str.contains(r"^\s|\s$").any()
    )


def look_alikes(rows: IndexRows) -> list[str]:
    """Warn of ids that differ only in Unicode form or in spaces; they stay different pairs."""
    alike = pl.col("pair_id").str.normalize("NFC").str.strip_chars()
    names = rows.scan.select(pl.struct("task", alike).hash().alias("name"))
    n_alike = rows.height - int(names.select(pl.col("name").n_unique()).collect().item())
    if not n_alike:
        return []
    return [f"{n_alike} ids differ from another one only in Unicode form or outer spaces"]
