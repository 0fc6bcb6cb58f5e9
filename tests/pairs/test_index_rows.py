"""An index in a file says what the same index in memory says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from judgebias.errors import InputError, UsageError
from judgebias.pairs import PairsSpec, index_rows, survey_pairs
from judgebias.pairs.index import INDEX
from judgebias.pairs.index_rows import IndexWriter
from tests.pairs.sample_pairs import row, survey, write_rows

REPEATED = [row(f"p{i % 17}", task=f"t{i % 17 % 3}", model_a="m") for i in range(23)]


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_rows, "GROUP_ROWS", 4)


@pytest.mark.parametrize("named", [False, True])
def test_a_large_index_is_the_same_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, named: bool
) -> None:
    path = write_rows(tmp_path / "in.jsonl", [*REPEATED, row("no", gold="?")])
    held = survey(path, pairs_per_block=5)
    assert held.rows.file is None
    monkeypatch.setattr(index_rows, "GROUP_ROWS", 4)
    file = tmp_path / "index" if named else None
    spec = PairsSpec(source=str(path), pairs_per_block=5)
    filed = survey_pairs(spec, index_file=file)
    assert filed.rows.file is not None
    assert (filed.rows.file == file) == named
    assert_frame_equal(filed.index, held.index)
    assert filed.index.schema == pl.Schema(INDEX)
    assert filed.n_pairs == held.n_pairs == 17
    assert filed.digests().tobytes() == b"".join(held.index["digest"])
    assert filed.blocks == held.blocks
    assert filed.block_of.tolist() == held.index["block"].to_list()
    assert (filed.notices, filed.fingerprint) == (held.notices, held.fingerprint)
    left = sorted(child.name for child in tmp_path.iterdir())
    assert left == (["in.jsonl", "index"] if named else ["in.jsonl"])


@pytest.mark.usefixtures("small_groups")
def test_rows_are_read_in_parts_and_by_place(tmp_path: Path) -> None:
    rows = [row(f"p{i}") for i in range(11)]
    found = survey(write_rows(tmp_path / "in.csv", rows)).rows
    parts = [part["pair_id"].to_list() for part in found.parts("pair_id")]
    assert [len(part) for part in parts] == [4, 4, 3]
    assert [name for part in parts for name in part] == [f"p{i}" for i in range(11)]
    some = found.gather(np.array([0, 3, 4, 10]), "pair_id")
    assert some["pair_id"].to_list() == ["p0", "p3", "p4", "p10"]


@pytest.mark.usefixtures("small_groups")
def test_a_refused_input_leaves_no_index(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "in.jsonl", [row(f"p{i % 9}", answer_a=str(i)) for i in range(12)])
    with pytest.raises(InputError, match="3 rows repeat a key") as error:
        survey_pairs(PairsSpec(source=str(path)), index_file=tmp_path / "index")
    assert f"pair_id 'p2': {path} row 3 and {path} row 12" in str(error.value)
    assert [child.name for child in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="cannot be written"),
        IndexWriter(tmp_path / "no" / "x") as w,
    ):
        w.close()
