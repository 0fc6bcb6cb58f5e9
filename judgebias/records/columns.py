"""What a verdict record may hold, and the one form every file is brought to."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final, NoReturn

import polars as pl

from judgebias.errors import InputError
from judgebias.replies import FailureKind
from judgebias.verdicts import Order, Slot, Winner

REQUIRED: Final = ("pair_id", "judge", "order", "verdict")
IDS: Final = ("pair_id", "task", "judge", "model_a", "model_b", "cluster")
"""Names of things: text, and a number keeps the form it has in the file."""
WORDS: Final = {
    "order": tuple(map(str, Order)),
    "verdict": tuple(map(str, Slot)),
    "gold": tuple(map(str, Winner)),
    "failure": tuple(map(str, FailureKind)),
}
WHOLE: Final = {"repeat": 1, "len_a": 0, "len_b": 0}
"""Whole numbers, with the least each may be."""
SHARES: Final = ("p_first", "p_second", "p_tie")
QUESTION: Final = "question"
KNOWN: Final = (*IDS, *WORDS, *WHOLE, *SHARES, QUESTION)

DIGEST_BYTES: Final = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A file of records, and what is to be read from it."""

    path: Path
    number: int
    """Its place among the files read together."""
    cluster: str | None = None
    """A column beyond `KNOWN` whose values name the clusters."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The columns read as names."""
        return (*IDS, self.cluster) if self.cluster else IDS

    @property
    def unit(self) -> str:
        """How a place in this file is counted."""
        text = any(suffix in {".jsonl", ".ndjson"} for suffix in self.path.suffixes[-2:])
        return "line" if text else "row"

    def refuse(self, row: int, given: str, *, expected: str, do: str = "") -> NoReturn:
        """Refuse a record, its place named."""
        raise InputError(f"{self.path}, {self.unit} {row}: {given}", expected=expected, do=do)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunk:
    """Some records of a file in the common form."""

    frame: pl.DataFrame
    """All columns of `schema`, with `file` and `row`."""
    unused: frozenset[str]
    """Columns of the file that are not records' columns."""


def schema(source: Source) -> dict[str, pl.DataType]:
    """Name the columns of the common form and their types; a question is kept as its digest."""
    text = pl.String()
    return {
        **dict.fromkeys((*source.ids, *WORDS, QUESTION), text),
        **dict.fromkeys(WHOLE, pl.Int64()),
        **dict.fromkeys(SHARES, pl.Float64()),
    }


def question_digests(questions: pl.Series) -> pl.Series:
    """Replace questions by their digests, which name the clusters: blake2b, 16 bytes, in hex."""
    texts = questions.unique().drop_nulls()
    digests = [blake2b(text.encode(), digest_size=DIGEST_BYTES).hexdigest() for text in texts]
    return questions.replace_strict(texts, digests, default=None, return_dtype=pl.String)
