"""The statistics as a textbook writes them: a dictionary and a loop, a groupby, a binomial sum.

Every way of counting gives the same numbers per task (and for ALL), so they can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import polars as pl

from judgebias.summary import rows_of, settle_calls
from judgebias.summary.profiles import ALL

Call = tuple[str, str, str, str | None]
"""task, pair_id, order, slot"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What is counted of the pairs that have both verdicts."""

    pairs: int = 0
    agreed: int = 0
    """Both orders name the same answer, or both say tie."""
    firsts: int = 0
    """Verdicts for the first slot."""
    decisive: int = 0
    """Verdicts for either slot."""

    def __add__(self, other: Counts) -> Counts:
        """Add counts of different pairs."""
        return Counts(
            pairs=self.pairs + other.pairs,
            agreed=self.agreed + other.agreed,
            firsts=self.firsts + other.firsts,
            decisive=self.decisive + other.decisive,
        )


Table = dict[str, Counts]
"""Task -> its counts."""

SWAPPED = {"first": "second", "second": "first", "tie": "tie"}


def by_loop(calls: Iterable[Call]) -> Table:
    """Count with a dictionary of verdicts and a loop over its pairs."""
    verdicts: dict[tuple[str, str, str], str] = {}
    for task, pair_id, order, slot in calls:
        if slot is not None:
            verdicts[task, pair_id, order] = slot
    pairs: dict[str, int] = {}
    agreed: dict[str, int] = {}
    firsts: dict[str, int] = {}
    decisive: dict[str, int] = {}
    for (task, pair_id, order), ab in verdicts.items():
        ba = verdicts.get((task, pair_id, "ba"))
        if order != "ab" or ba is None:
            continue
        pairs[task] = pairs.get(task, 0) + 1
        agreed[task] = agreed.get(task, 0) + (ab == SWAPPED[ba])
        firsts[task] = firsts.get(task, 0) + (ab == "first") + (ba == "first")
        decisive[task] = decisive.get(task, 0) + (ab != "tie") + (ba != "tie")
    return with_all(
        {
            task: Counts(
                pairs=pairs[task],
                agreed=agreed[task],
                firsts=firsts[task],
                decisive=decisive[task],
            )
            for task in pairs
        }
    )


def by_pandas(calls: Any) -> Table:
    """Count with a pivot of a pandas frame of calls and a groupby over its tasks."""
    both = calls.pivot(index=["task", "pair_id"], columns="order", values="slot").dropna()
    ab, ba = both["ab"], both["ba"]
    marks = import_module("pandas").DataFrame(
        {
            "pairs": 1,
            "agreed": ab == ba.map(SWAPPED),
            "firsts": (ab == "first").astype(int) + (ba == "first").astype(int),
            "decisive": (ab != "tie").astype(int) + (ba != "tie").astype(int),
        },
        index=both.index,
    )
    sums = marks.groupby(level="task").sum()
    rows = {str(task): {name: int(n) for name, n in row.items()} for task, row in sums.iterrows()}
    return with_all({task: Counts(**row) for task, row in rows.items()})


def by_summary(calls: pl.DataFrame, pairs: pl.DataFrame) -> Table:
    """Take the same counts out of the rows of our summary, which hold much else."""
    verdicts = settle_calls(calls.lazy(), pairs.lazy())
    table: Table = {}
    for row in rows_of(verdicts):
        count = {name: int(row[name] or 0) for name in row if isinstance(row[name], int)}
        agreed = count["agreed_a"] + count["agreed_b"] + count["agreed_tie"]
        halves = count["half_first"] + count["half_second"]
        clear = count["agreed_a"] + count["agreed_b"]
        stuck = count["stuck_first"] + count["stuck_second"]
        table[str(row["task"])] = Counts(
            pairs=count["n_complete"],
            agreed=agreed,
            # A verdict that agrees names each slot once.
            firsts=clear + 2 * count["stuck_first"] + count["half_first"],
            decisive=2 * clear + 2 * stuck + halves,
        )
    return table


def with_all(table: Table) -> Table:
    """Add the row over all tasks."""
    return {**table, ALL: sum(table.values(), start=Counts())}


def binomial_sum(k: int, n: int) -> float:
    """Compute the two-sided sign test as its definition says: a sum of binomial coefficients."""
    tail = min(k, n - k)
    ways = sum(math.comb(n, i) for i in range(tail + 1))
    return min(1.0, 2 * ways / 2**n)
