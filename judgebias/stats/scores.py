"""The middle of a sandwich: sums over clusters of the squares of their summed scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from judgebias.stats.comparisons import OWN, Comparisons
from judgebias.stats.profiles import IntArray

FloatArray: TypeAlias = npt.NDArray[np.float64]

_CHUNK = 200_000
# Fuller than this, a table of scores is multiplied faster as it stands than entry by entry.
_FULL = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """Derivatives of the log-likelihood of rows, each in a few parameters only."""

    places: IntArray
    """(rows, few) parameters."""
    values: FloatArray
    """(rows, few) derivatives."""


def squared_scores(scores: Scores, comparisons: Comparisons, size: int) -> tuple[FloatArray, int]:
    """Return B = sum_c s_c s_c' and the number of clusters.

    Parameters
    ----------
    scores
        Of one pair of each row of `comparisons`.
    comparisons
        Where they come from: how many pairs, in which cluster.
    size
        Parameters.
    """
    order = np.argsort(comparisons.cluster, kind="stable")
    cluster, count = comparisons.cluster[order], comparisons.count[order]
    own = cluster == OWN
    # n clusters of their own, all with score s, add n s s': as one cluster with score sqrt(n) s.
    weight = np.where(own, np.sqrt(count), count)
    begins = own | (np.diff(cluster, prepend=OWN) != 0)
    number = np.cumsum(begins) - 1
    total = np.zeros((size, size))
    for rows in _chunks(number):
        chosen = order[rows]
        values = scores.values[chosen] * weight[rows, None]
        total += _squared(scores.places[chosen], values, number[rows] - number[rows.start], size)
    return total, int(count[own].sum() + begins[~own].sum())


def _chunks(number: IntArray) -> Iterator[slice]:
    """Cut rows into chunks, never inside a cluster."""
    cuts = np.searchsorted(number, number[::_CHUNK])
    for start, stop in zip(cuts, [*cuts[1:], number.size], strict=True):
        if stop > start:
            yield slice(int(start), int(stop))


def _squared(places: IntArray, values: FloatArray, number: IntArray, size: int) -> FloatArray:
    rows = np.repeat(number, places.shape[1])
    shape = (int(number[-1]) + 1, size)
    table = sparse.csr_array((values.ravel(), (rows, places.ravel())), shape=shape)
    if table.nnz > _FULL * shape[0] * size:
        full = table.toarray()
        return full.T @ full
    return (table.T @ table).toarray()
