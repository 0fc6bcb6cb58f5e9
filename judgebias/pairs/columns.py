"""Rows as columns: the same lists make the survey's frame and a worker's pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from judgebias.calls import Pair
from judgebias.pairs.spec import COLUMNS, SCHEMA

Columns = dict[str, "Sequence[str | None] | Sequence[float | None]"]

_NO_BLANK = ("task", "model_a", "model_b", "gold", "cluster")
"""Empty means missing here, since CSV cannot tell the two apart."""


def to_frame(columns: Mapping[str, Sequence[object]]) -> pl.DataFrame:
    """Make the frame that is checked."""
    return pl.DataFrame(columns, schema=SCHEMA, strict=True)


def fill_labels(frame: pl.DataFrame) -> pl.DataFrame:
    """Read an empty label as none, and no task as the default one."""
    empty = [pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in _NO_BLANK]
    return frame.with_columns(empty).with_columns(pl.col("task").fill_null("default"))


def to_pairs(columns: Mapping[str, Sequence[object]]) -> list[Pair]:
    """Make pairs of rows that the survey accepted; labels are read as in `fill_labels`."""
    lists = [
        [value or None for value in columns[name]] if name in _NO_BLANK else columns[name]
        for name in COLUMNS
    ]
    return [
        Pair(
            task=task or "default", pair_id=pair_id, question=question,
            answer_a=answer_a, answer_b=answer_b, model_a=model_a, model_b=model_b,
            gold=gold, cluster=cluster, reference=reference,
            quality_a=quality_a, quality_b=quality_b,
        )
        for (
            task, pair_id, question, answer_a, answer_b, model_a, model_b,
            gold, cluster, reference, quality_a, quality_b,
        ) in zip(*lists, strict=True)
    ]  # fmt: skip
