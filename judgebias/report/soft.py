"""Verdict probabilities as summary.md shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from judgebias.report import words
from judgebias.report.words import Row

SOFT: Final[tuple[tuple[str, Callable[[Row], str]], ...]] = (
    ("pairs with probabilities", lambda row: f"{row['n_soft']}"),
    ("win rate of A, soft", lambda row: words.with_interval(row, "win_rate_a_soft")),
    ("offset, soft", words.offset_soft),
)
HOW_SOFT: Final = (
    "Soft: from the probabilities of the verdict's words. The soft offset is the mean over pairs "
    "of ln P(first) - ln P(second), averaged over the two orders: another scale than the offset "
    "above, and not to be compared with it."
)
