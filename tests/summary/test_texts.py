"""Texts that stand in several pairs of a question."""

from __future__ import annotations

import polars as pl
import pytest

from judgebias.summary.texts import repeated_texts

Row = tuple[str | None, str | None, str | None]


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ([], (0, 0, 0, 0)),
        ([("q", "x", "y"), ("q", "z", "w")], (2, 0, 0, 0)),
        ([("q", "x", "y"), ("q", "z", "x"), ("q", "u", "v")], (3, 2, 1, 1)),
        ([("q", "x", "y"), ("r", "x", "y")], (2, 0, 0, 0)),
        ([("q", "x", "x")], (1, 0, 0, 0)),
        ([(None, "x", "y"), (None, "x", "y"), ("q", None, "y"), ("q", None, "z")], (4, 0, 0, 0)),
        ([(q, a, b) for q in "qr" for a, b in ("xy", "xz", "yz")], (6, 6, 6, 2)),
    ],
)
def test_counts(rows: list[Row], counts: tuple[int, int, int, int]) -> None:
    schema = dict.fromkeys(("question_id", "text_id_a", "text_id_b"), pl.String)
    found = repeated_texts(pl.LazyFrame(rows, schema, orient="row"))
    assert (found.n_pairs, found.n_pairs_sharing, found.n_texts, found.n_questions) == counts
    assert (found.warning is None) == (counts[2] == 0)
    if found.warning:
        assert found.warning.startswith(f"{counts[1]} of {counts[0]} pairs share a text")
