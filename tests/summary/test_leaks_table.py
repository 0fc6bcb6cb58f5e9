"""Leaks are counted by judge and task, and what was left out stands beside."""

from __future__ import annotations

import polars as pl

from judgebias.leaks import LEAK_COLUMNS
from judgebias.summary.leaks import LEAK_TABLE, leak_rows, leak_words, leaks_table

PAIRS = pl.DataFrame(
    [
        ("x", "self chatgpt; name openai", None),
        ("x", None, "model tuned-7b"),
        ("x", None, None),
        ("y", "name claude 3", "name openai"),
        ("y", None, None),
    ],
    dict.fromkeys(("task", *LEAK_COLUMNS), pl.String),
    orient="row",
)


def test_counts_by_task_and_over_all() -> None:
    table = leaks_table(
        [
            *leak_rows("o", "gpt", PAIRS, {"x": 2, "z": 1}),
            *leak_rows("c", "claude", PAIRS),
        ]
    )
    assert table.columns == list(LEAK_TABLE)
    counts = [name for name in LEAK_TABLE if name.startswith("n_")]
    rows = {(row["judge"], row["task"]): row for row in table.iter_rows(named=True)}
    assert list(rows) == [
        ("c", "x"), ("c", "y"), ("c", "ALL"), ("o", "x"), ("o", "y"), ("o", "z"), ("o", "ALL"),
    ]  # fmt: skip
    assert [rows["o", "x"][name] for name in counts] == [3, 2, 1, 1, 1, 1, 1, 1, 2]
    assert [rows["o", "y"][name] for name in counts] == [2, 1, 1, 1, 0, 1, 0, 1, 0]
    assert [rows["o", "z"][name] for name in counts] == [0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert [rows["o", "ALL"][name] for name in counts] == [5, 3, 2, 2, 1, 2, 1, 2, 3]
    assert [rows["c", "ALL"][name] for name in counts] == [5, 3, 2, 2, 1, 2, 1, 1, 0]
    assert rows["o", "ALL"]["names"] == "openai 2, chatgpt 1, claude 3 1, tuned-7b 1"


def test_words_say_what_was_found_and_nothing_where_there_is_nothing() -> None:
    rows = [*leak_rows("o", "gpt", PAIRS), *leak_rows("m", "mistral", PAIRS)]
    assert leak_words(rows) == [
        "identity leaks: in 3 of 5 pairs an answer tells who wrote it (openai 2, chatgpt 1, "
        'claude 3 1, tuned-7b 1): see tables/leaks.csv; on_leak = "skip" would leave them out',
        "identity leaks: 2 pairs tell judge o of its own family",
    ]
    assert leak_words(leak_rows("o", "gpt", PAIRS[[2, 4]], {"x": 3})) == []
