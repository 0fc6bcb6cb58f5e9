"""The index: one row a pair with everything but its texts."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from struct import Struct

import polars as pl

from judgebias.calls import KEY_BYTES
from judgebias.leaks import LEAK_COLUMNS
from judgebias.pairs.spec import PairsSpec
from judgebias.tone import DENSITY_COLUMNS, pair_densities

INDEX = {
    "task": pl.String,
    "pair_id": pl.String,
    "digest": pl.Binary,
    "block": pl.Int32,
    "model_a": pl.String,
    "model_b": pl.String,
    "gold": pl.String,
    "cluster": pl.String,
    "question_id": pl.String,
    "text_id_a": pl.UInt64,
    "text_id_b": pl.UInt64,
    "len_a": pl.Int64,
    "len_b": pl.Int64,
    "identical": pl.Boolean,
    "n_bytes": pl.Int64,
    **dict.fromkeys(DENSITY_COLUMNS, pl.Float32),
    **dict.fromkeys(LEAK_COLUMNS, pl.String),
}
"""Columns of `Survey.index`."""
PRIVATE = {"key": pl.UInt64, "rest": pl.UInt64}
"""Columns that only the search for repeated rows needs: hashes of the pair's key, and of all that
the digest does not cover."""

_length = Struct("<Q").pack


def to_index(frame: pl.DataFrame, spec: PairsSpec) -> pl.DataFrame:
    """Reduce accepted rows, with their leaks, to rows of the index that lack their `block`."""
    texts = ("question", "answer_a", "answer_b")
    digests, questions = _hash(frame)
    cluster = {"question": pl.col("question_id"), "pair": pl.lit(None, pl.String)}
    rest = ["model_a", "model_b", "gold", "cluster", "quality_a", "quality_b"]
    return (
        frame.with_columns(
            digests,
            questions,
            frame.select("task", "pair_id").hash_rows().alias("key"),
            frame.select(rest).hash_rows().alias("rest"),
            pl.col("answer_a").str.len_chars().cast(pl.Int64).alias("len_a"),
            pl.col("answer_b").str.len_chars().cast(pl.Int64).alias("len_b"),
            # Equal texts have equal ids within one survey; what must last has its digest.
            pl.col("answer_a").hash().alias("text_id_a"),
            pl.col("answer_b").hash().alias("text_id_b"),
            (pl.col("answer_a") == pl.col("answer_b")).alias("identical"),
            *_densities(frame),
            pl.sum_horizontal(pl.col(texts).str.len_bytes().cast(pl.Int64)).alias("n_bytes"),
        )
        .with_columns(cluster.get(spec.cluster, pl.col("cluster")).alias("cluster"))
        .select(*(name for name in INDEX if name != "block"), *PRIVATE)
    )


def _densities(frame: pl.DataFrame) -> list[pl.Series]:
    # Lazily: what the densities have in common is then made once.
    densities = pair_densities(pl.col("answer_a"), pl.col("answer_b"))
    found = frame.lazy().select(density.cast(pl.Float32) for density in densities)
    return found.collect().get_columns()


def _hash(frame: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Hash each pair as `Pair.digest` does, and each question, from bytes that Polars holds."""
    digests: list[bytes] = []
    questions: list[str] = []
    length = _length
    for task, pair_id, question, answer_a, answer_b, reference in _byte_rows(frame):
        hasher = blake2b(
            b"".join(
                (
                    length(len(task)), task, length(len(pair_id)), pair_id,
                    length(len(question)), question, length(len(answer_a)), answer_a,
                    length(len(answer_b)), answer_b,
                    b"\0" if reference is None else b"\1" + reference,
                )
            ),
            digest_size=KEY_BYTES,
        )  # fmt: skip
        digests.append(hasher.digest())
        questions.append(blake2b(question, digest_size=KEY_BYTES).hexdigest())
    return (
        pl.Series("digest", digests, dtype=pl.Binary),
        pl.Series("question_id", questions, dtype=pl.String),
    )


def _byte_rows(
    frame: pl.DataFrame,
) -> Iterator[tuple[bytes, bytes, bytes, bytes, bytes, bytes | None]]:
    names = ("task", "pair_id", "question", "answer_a", "answer_b", "reference")
    columns = [frame[name].cast(pl.Binary).to_list() for name in names]
    return zip(*columns, strict=True)
