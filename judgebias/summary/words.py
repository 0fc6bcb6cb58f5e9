"""Words of verdicts as small numbers: their places among the words there are."""

from __future__ import annotations

from enum import StrEnum

import polars as pl


def place_of(column: str | pl.Expr, kind: type[StrEnum]) -> pl.Expr:
    """Turn words, as text or enumerated, into their places in a kind, null where there is none.

    Enumerated words are numbers already, and twenty times as fast as a look-up of each.
    """
    words = pl.col(column) if isinstance(column, str) else column
    return words.cast(pl.Enum(kind)).to_physical().cast(pl.Int8)
