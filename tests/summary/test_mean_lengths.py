from __future__ import annotations

import polars as pl

from judgebias.summary.lengths import MEAN_LENGTHS, mean_lengths, with_mean_lengths

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
    found = with_mean_lengths(SUMMARY, [LENGTH.head(1), LENGTH.tail(2)], {"a"})
    assert found.columns == [*SUMMARY.columns, *MEAN_LENGTHS]
    assert found.rows() == [
        ("a", "t", 1, None, None),
        ("a", "ALL", 2, 10.5, 20.25),
        ("b", "ALL", 3, None, None),
    ]


def test_tables_without_rows_keep_their_types() -> None:
    found = with_mean_lengths(SUMMARY.clear(), [LENGTH.clear()], set())
    assert dict(found.select(*MEAN_LENGTHS).schema) == MEAN_LENGTHS
    assert with_mean_lengths(SUMMARY, [], {"a"})["mean_len_a"].to_list() == [None] * 3


def test_means_are_those_of_complete_pairs_with_known_lengths() -> None:
    verdicts = pl.DataFrame(
        {
            "judge": ["j"] * 5,
            "task": ["s", "s", "s", "t", "u"],
            "state_ab": [2, 3, 2, 4, 2],
            "state_ba": [2, 4, 5, 2, 3],
            "len_a": [10, 20, 1000, 3, None],
            "len_b": [1, 2, 1000, 4, 7],
        }
    )
    found = mean_lengths(verdicts.lazy()).sort("task")
    assert found.rows() == [
        ("j", "ALL", 11.0, 7 / 3),
        ("j", "s", 15.0, 1.5),
        ("j", "t", 3.0, 4.0),
    ]
