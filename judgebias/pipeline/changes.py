"""What changed in the input since the last start, in numbers; rows are known by their content."""

from __future__ import annotations

import polars as pl

_KEY = ["task", "pair_id"]


def changes_of_input(old: pl.DataFrame, new: pl.DataFrame) -> list[str]:
    """Compare two indexes by pair and by content; re-ordered rows are no change."""
    both = old.select(*_KEY, "digest").join(
        new.select(*_KEY, now="digest"), on=_KEY, how="full", coalesce=True
    )
    counts = both.select(
        added=pl.col("digest").is_null().sum(),
        removed=pl.col("now").is_null().sum(),
        edited=(pl.col("digest") != pl.col("now")).sum(),
    ).row(0, named=True)
    words = {
        "added": "rows were added to the input and will be judged",
        "removed": "rows left the input: their replies are kept and are out of the tables",
        "edited": "rows were edited and will be judged anew: old replies are out of the tables",
    }
    return [f"{counts[what]} {sentence}" for what, sentence in words.items() if counts[what]]
