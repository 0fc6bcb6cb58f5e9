"""Which pairs to read, and how their columns are named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import polars as pl

from judgebias.errors import ConfigError

REQUIRED = ("pair_id", "question", "answer_a", "answer_b")
TEXTS = ("question", "answer_a", "answer_b", "reference")
LABELS = ("task", "pair_id", "model_a", "model_b", "cluster")
"""Names rather than texts: a number is kept in its source form."""
CHOICES = ("gold",)
NUMBERS = ("quality_a", "quality_b")
COLUMNS = (
    "task", "pair_id", "question", "answer_a", "answer_b", "model_a", "model_b",
    "gold", "cluster", "reference", "quality_a", "quality_b",
)  # fmt: skip
SCHEMA: dict[str, type[pl.DataType]] = {
    name: pl.Float64 if name in NUMBERS else pl.String for name in COLUMNS
}
"""Declared, never inferred: the id 007 stays 007."""

BLOCK_PAIRS = 2048
ROW_BYTES = 16 * 1024 * 1024
"""A larger row is rejected unread."""
CHUNK_BYTES = 64 * 1024 * 1024
"""A block of long rows ends early, so that it fits in a worker's memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsSpec:
    """Where the pairs are and how they are to be read."""

    source: str
    """A path, glob, directory or URI; relative to `base`."""
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """Our column names to theirs."""
    pairs_per_block: int = 0
    """Rows in a block; 0 for up to 2048."""
    empty: Literal["judge", "reject"] = "judge"
    """What becomes of an empty or blank answer."""
    on_leak: Literal["warn", "skip"] = "warn"
    """What becomes of a pair with an answer that tells who wrote it."""
    cluster: str = "question"
    """`question`, `pair`, or the column that names a pair's cluster."""
    base: Path = Path()

    def __post_init__(self) -> None:
        """Refuse a mapping to a column that does not exist here."""
        for ours in self.columns:
            if ours not in COLUMNS:
                near = get_close_matches(ours, COLUMNS, n=1)
                raise ConfigError(
                    f"columns maps {ours!r}, which is not a column of pairs",
                    expected=f"one of {', '.join(COLUMNS)}",
                    do=f"write {near[0]} = {self.columns[ours]!r}" if near
                    else "write our name first, then theirs: question = \"prompt\"",
                )  # fmt: skip
        if self.pairs_per_block < 0:
            raise ConfigError(
                f"pairs_per_block is {self.pairs_per_block}", expected="0 or a positive number"
            )

    @property
    def block_rows(self) -> int:
        """Rows in a full block."""
        return self.pairs_per_block or BLOCK_PAIRS

    @property
    def chunk_rows(self) -> int:
        """Rows checked together: whole blocks, so that small blocks do not make a slow survey."""
        return self.block_rows * max(1, BLOCK_PAIRS // self.block_rows)

    @property
    def names(self) -> dict[str, str]:
        """Every column of ours with the name it has in the input."""
        names = {ours: self.columns.get(ours, ours) for ours in COLUMNS}
        if self.cluster not in ("question", "pair"):
            names["cluster"] = self.columns.get(self.cluster, self.cluster)
        return names

    @property
    def asked_for(self) -> dict[str, str]:
        """Columns that the run file names and that must therefore exist somewhere."""
        asked = {ours: theirs for ours, theirs in self.columns.items() if ours not in REQUIRED}
        if self.cluster not in ("question", "pair"):
            asked["cluster"] = self.names["cluster"]
        return asked
