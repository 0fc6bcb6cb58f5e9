"""Comparisons of models, counted: who won, and which models a chain of wins joins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csgraph

from judgebias.stats.profiles import IntArray, columns

FIRST, SECOND, TIE, NONE = 0, 1, 2, -1
"""What a call said, as a number; NONE where there is no verdict."""

OWN = -1
"""In place of a cluster: each of the pairs counted is a cluster by itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparisons:
    """Pairs with the same models, verdicts and cluster, counted; one entry of each column a row."""

    a: IntArray
    """Model of answer A, from 0; never equal to `b`."""
    b: IntArray
    """Model of answer B."""
    ab: IntArray
    """What the call said that showed A first."""
    ba: IntArray
    """What the call said that showed B first."""
    count: IntArray
    """Pairs of this kind."""
    cluster: IntArray
    """Number of their cluster, from 0, or `OWN`."""

    @classmethod
    def of(
        cls,
        *,
        a: npt.ArrayLike,
        b: npt.ArrayLike,
        ab: npt.ArrayLike,
        ba: npt.ArrayLike,
        count: npt.ArrayLike,
        cluster: npt.ArrayLike,
    ) -> Comparisons:
        """Check the columns and make the table.

        Raises
        ------
        ValueError
            The columns do not fit together, or are not of whole numbers.
        """
        parts = columns(a=a, b=b, ab=ab, ba=ba, count=count, cluster=cluster)
        return cls(**dict(zip(cls.__slots__, parts, strict=True)))

    def where(self, kept: npt.NDArray[np.bool_]) -> Comparisons:
        """Return the rows that are kept."""
        return Comparisons(**{name: getattr(self, name)[kept] for name in self.__slots__})

    def wins(self, n_models: int) -> IntArray:
        """Count calls won: (models, models), the row's model over the column's."""
        return self._calls(n_models, {FIRST: False, SECOND: True})

    def ties(self, n_models: int) -> IntArray:
        """Count calls tied: (models, models), symmetric."""
        shown = self._calls(n_models, {TIE: False})
        return shown + shown.T

    def _calls(self, n_models: int, slots: dict[int, bool]) -> IntArray:
        """Count calls by (model named or shown first, other); `slots` says which to turn round."""
        table = np.zeros((n_models, n_models), dtype=np.int64)
        for first, second, said in ((self.a, self.b, self.ab), (self.b, self.a, self.ba)):
            for slot, turned in slots.items():
                kept = said == slot
                rows, cols = (second, first) if turned else (first, second)
                np.add.at(table, (rows[kept], cols[kept]), self.count[kept])
        return table


def strong_components(wins: IntArray, ties: IntArray) -> IntArray:
    """Number the sets of models in which a chain of wins leads from each model to each other.

    Parameters
    ----------
    wins, ties
        (models, models) counts, the row's model over the column's; a tie counts both ways.

    Returns
    -------
    IntArray
        (models,) numbers from 0: larger sets first, then by their first model.

    Notes
    -----
    Ford (1957): strengths have a finite maximum likelihood estimate in such sets only.
    """
    graph = sparse.csr_array((wins + ties) > 0)
    _, labels = csgraph.connected_components(graph, directed=True, connection="strong")
    _, first, place, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    number = np.empty(first.size, dtype=np.int64)
    number[np.lexsort((first, -sizes))] = np.arange(first.size)
    return number[place]
