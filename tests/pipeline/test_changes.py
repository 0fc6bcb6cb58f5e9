from __future__ import annotations

import polars as pl
import pytest

from judgebias.pipeline.changes import changes_of_input


def index(*rows: tuple[str, str]) -> pl.DataFrame:
    """Rows of (pair_id, content), all of one task."""
    return pl.DataFrame(
        {
            "task": ["t"] * len(rows),
            "pair_id": [name for name, _ in rows],
            "digest": [content.encode() for _, content in rows],
        },
        schema={"task": pl.String, "pair_id": pl.String, "digest": pl.Binary},
    )


OLD = index(("1", "a"), ("2", "b"), ("3", "c"))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (OLD, []),
        (OLD.reverse(), []),
        (index(("1", "a"), ("2", "b"), ("3", "c"), ("4", "d")), ["1 rows were added"]),
        (index(("1", "a")), ["2 rows left the input"]),
        (index(("1", "a"), ("2", "B"), ("3", "C")), ["2 rows were edited"]),
        (
            index(("1", "A"), ("2", "b"), ("4", "d"), ("5", "e")),
            ["2 rows were added", "1 rows left the input", "1 rows were edited"],
        ),
        (index(), ["3 rows left the input"]),
    ],
)
def test_rows_are_known_by_their_content(new: pl.DataFrame, said: list[str]) -> None:
    found = changes_of_input(OLD.lazy(), new.lazy())
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


def test_the_same_id_in_another_task_is_another_pair() -> None:
    moved = OLD.with_columns(task=pl.lit("u"))
    assert [line.split()[0] for line in changes_of_input(OLD.lazy(), moved.lazy())] == ["3", "3"]
