"""Texts that stand in several pairs of one question: such pairs are not independent."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatedTexts:
    """How far pairs of a question share their texts."""

    n_pairs: int
    """All pairs."""
    n_pairs_sharing: int
    """Pairs with a text that stands in another pair of their question too."""
    n_texts: int
    """Texts that stand in several pairs of their question."""
    n_questions: int
    """Questions with such a text."""

    @property
    def warning(self) -> str | None:
        """What a reader must know; None where no text repeats."""
        if not self.n_texts:
            return None
        return (
            f"{self.n_pairs_sharing} of {self.n_pairs} pairs share a text with another pair of "
            f"their question ({self.n_texts} texts in {self.n_questions} questions): such pairs "
            "are not independent; clusters by question, the default, allow for it, and "
            'cluster = "pair" does not'
        )


def repeated_texts(index: pl.LazyFrame) -> RepeatedTexts:
    """Count the texts that stand in several pairs of a question.

    Parameters
    ----------
    index
        question_id, text_id_a, text_id_b: one row per pair. Rows without a question, and texts
        without an id, repeat nothing; a text on both sides of one pair stands in one pair.
    """
    pairs = index.select("question_id", "text_id_a", "text_id_b").with_row_index("row")
    frame = pairs.collect()
    stands = (
        frame.unpivot(["text_id_a", "text_id_b"], index=["row", "question_id"], value_name="text")
        .drop_nulls(["question_id", "text"])
        .unique(["row", "question_id", "text"])
    )
    shared = stands.filter(pl.len().over("question_id", "text") > 1)
    return RepeatedTexts(
        n_pairs=frame.height,
        n_pairs_sharing=shared["row"].n_unique(),
        n_texts=shared.select("question_id", "text").n_unique(),
        n_questions=shared["question_id"].n_unique(),
    )
