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


@dataclass(frozen=True, kw_only=True, slots=True)
class Texts:
    """What a reader must know of the texts of an input."""

    repeated: RepeatedTexts
    n_identical: int
    """Pairs whose two answers are the same text."""

    @classmethod
    def of(cls, index: pl.LazyFrame) -> Texts:
        """Look at an index: `repeated_texts` and `identical`, one row per pair."""
        n_identical = index.select(pl.col("identical").sum()).collect().item()
        return cls(repeated=repeated_texts(index), n_identical=int(n_identical or 0))

    def words(self, *, live: bool, recorded: bool) -> list[str]:
        """Say what repeats, and what becomes of identical answers.

        Parameters
        ----------
        live, recorded
            Whether judges are asked, and whether judges are read from records.
        """
        warning = self.repeated.warning
        said = [] if warning is None else [warning]
        pairs = "1 pair has" if self.n_identical == 1 else f"{self.n_identical} pairs have"
        if self.n_identical and live:
            said.append(
                f"{pairs} two identical answers: they join the self-pair probe "
                "(tables/self_pair.csv) and stay out of the other tables"
            )
        if self.n_identical and recorded:
            said.append(
                f"{pairs} two identical answers: recorded verdicts on them are counted like any "
                "other, and shown in tables/self_pair.csv too"
            )
        return said

    def table(self) -> pl.DataFrame:
        """Make tables/texts.csv: one row."""
        counts = {
            "n_pairs": self.repeated.n_pairs,
            "n_pairs_sharing": self.repeated.n_pairs_sharing,
            "n_texts": self.repeated.n_texts,
            "n_questions": self.repeated.n_questions,
            "n_identical": self.n_identical,
        }
        schema = {**dict.fromkeys(counts, pl.Int64()), "warning": pl.String()}
        return pl.DataFrame([{**counts, "warning": self.repeated.warning}], schema)


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
    # Most questions of a large input stand in one pair, and their texts need no comparing.
    several = frame.filter(pl.col("question_id").hash().is_duplicated())
    stands = (
        several.unpivot(["text_id_a", "text_id_b"], index=["row", "question_id"], value_name="text")
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
