from __future__ import annotations

import polars as pl

from judgebias.summary.lengths import MEAN_LENGTHS, with_mean_lengths

SUMMARY = pl.DataFrame({"judge": ["a", "a", "b"], "task": ["t", "ALL", "ALL"], "n": [1, 2, 3]})
LENGTH = pl.DataFrame(
    {
        "judge": ["a", "b", "a"],
        "task": ["ALL", "ALL", "t"],
        "mean_len_a": [10.5, 7.0, None],
        "mean_len_b": [20.25, 8.0, None],
    }
)


def test_judges_that_were_asked_have_their_means_beside_their_rows() -> None:
    found = with_mean_lengths(SUMMARY, LENGTH, {"a"})
    assert found.columns == [*SUMMARY.columns, *MEAN_LENGTHS]
    assert found.rows() == [
        ("a", "t", 1, None, None),
        ("a", "ALL", 2, 10.5, 20.25),
        ("b", "ALL", 3, None, None),
    ]


def test_tables_without_rows_keep_their_types() -> None:
    found = with_mean_lengths(SUMMARY.clear(), LENGTH.clear(), set())
    assert dict(found.select(*MEAN_LENGTHS).schema) == MEAN_LENGTHS
    empty = pl.DataFrame({name: [] for name in LENGTH.columns})
    whole = with_mean_lengths(SUMMARY, empty.cast({"judge": pl.String, "task": pl.String}), {"a"})
    assert whole["mean_len_a"].to_list() == [None] * 3
