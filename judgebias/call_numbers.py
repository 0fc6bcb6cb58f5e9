"""Calls as numbers: which of millions of them stand there more than once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

_SPARSE = 16
"""Where there are so many times more numbers than calls, names of calls are compared instead."""


def is_repeated(pair: pl.Series, repeat: pl.Series, order: pl.Series) -> npt.NDArray[np.bool_]:
    """Say of each of a judge's calls whether another one has the same key.

    Nearly always none has, and a mark for each possible call tells so without a look-up.

    Parameters
    ----------
    pair
        Whole numbers from 0.
    repeat
        Whole numbers from 1.
    order
        Enumerated.
    """
    pairs, repeats, orders = (
        column.to_numpy().astype(np.uint64) for column in (pair, repeat, order.to_physical())
    )
    if not pairs.size:
        return np.zeros(0, np.bool_)
    per_pair = 2 * int(repeats.max())
    if (int(pairs.max()) + 1) * per_pair <= _SPARSE * pairs.size:
        marks = np.zeros((int(pairs.max()) + 1) * per_pair, np.bool_)
        marks[pairs * np.uint64(per_pair) + np.uint64(2) * (repeats - np.uint64(1)) + orders] = True
        if int(marks.sum()) == pairs.size:
            return np.zeros(pairs.size, np.bool_)
    key = pairs * np.uint64(2**32) + repeats * np.uint64(2) + orders
    return pl.Series(key).is_duplicated().to_numpy()
