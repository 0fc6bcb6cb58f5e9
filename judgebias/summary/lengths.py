"""Mean lengths beside the win rates of the summary; what length does to a judge is length.csv's."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import polars as pl

from judgebias.summary.columns import NUMBER, typed

MEAN_LENGTHS: Final = typed(NUMBER, "mean_len_a", "mean_len_b")
"""The last columns of summary.*: mean code points of the complete pairs whose lengths are known."""


def with_mean_lengths(
    summary: pl.DataFrame, length: pl.DataFrame, asked: Collection[str]
) -> pl.DataFrame:
    """Add `MEAN_LENGTHS` to the summary, for the judges that were asked.

    A recorded judge has none here: records carry no texts, and a run that replays them gives the
    bytes that they give alone. Where the pairs are given, length.csv has the means of every judge.

    Parameters
    ----------
    summary, length
        The tables of those names, with one row per (judge, task).
    asked
        The judges that were asked.
    """
    known = length.filter(pl.col("judge").is_in(sorted(asked)))
    means = known.select(
        "judge", "task", *(pl.col(name).cast(kind) for name, kind in MEAN_LENGTHS.items())
    )
    return summary.join(means, on=["judge", "task"], how="left", maintain_order="left")
