"""Tables above a million calls: folders that read as the one file would."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgebias.divided import write_divided
from judgebias.publish import publish, publish_text

SCHEMA = pa.schema([("judge", pa.string()), ("task", pa.string()), ("n", pa.int64())])
ROWS = [
    ("a", "007", 1),
    ("a", "../up", 2),
    ("a", "../up", 3),
    ("b/c", "007", 4),
    ("b/c", "é" * 200, 5),
    ("b/c", "é" * 200 + "x", 6),
]


def parts(size: int) -> list[pa.Table]:
    columns = dict(zip(SCHEMA.names, map(list, zip(*ROWS, strict=True)), strict=True))
    table = pa.table(columns, SCHEMA)
    return [table.slice(start, size) for start in range(0, len(ROWS), size)]


@pytest.mark.parametrize("size", [1, 2, 4, 10])
def test_a_file_per_judge_and_task_sorts_and_reads_as_the_whole(tmp_path: Path, size: int) -> None:
    folder = tmp_path / "table.parquet"
    write_divided(folder, SCHEMA, parts(size))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) == 5
    assert all(path.parent.parent == folder for path in files)
    assert [row for path in files for row in pl.read_parquet(path, glob=False).rows()] == ROWS
    assert pl.read_parquet(folder).rows() == ROWS
    assert pq.read_table(folder).schema.equals(SCHEMA)
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*"))} == {0}


def test_a_table_without_rows_is_an_empty_folder(tmp_path: Path) -> None:
    write_divided(tmp_path / "table", SCHEMA, [])
    assert list((tmp_path / "table").iterdir()) == []


def test_a_folder_follows_a_file_and_a_file_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    publish_text(path, "old")
    for size in (2, 4):
        publish(path, lambda beside, size=size: write_divided(beside, SCHEMA, parts(size)))
        assert pl.read_parquet(path).rows() == ROWS
    publish_text(path, "new")
    assert path.read_text(encoding="utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_finished_leaves_the_old_table(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    publish(path, lambda beside: write_divided(beside, SCHEMA, parts(10)))

    def fail(beside: Path) -> None:
        write_divided(beside, SCHEMA, parts(10)[:1])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        publish(path, fail)
    assert list(tmp_path.iterdir()) == [path]
    assert pl.read_parquet(path).rows() == ROWS
