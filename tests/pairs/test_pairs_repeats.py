"""Rows that name the same pair, or nearly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgebias.errors import InputError
from judgebias.pairs import PairsSpec, survey_pairs
from tests.pairs.sample_pairs import row, survey, survey_and_read, write_rows

FORMATS = ("parquet", "jsonl", "csv")


@pytest.mark.parametrize("format_", FORMATS)
def test_i01_equal_rows_are_judged_once(tmp_path: Path, format_: str) -> None:
    rows = [row("p1", gold="A"), row("p2"), row("p1", gold="A"), row("p3"), row("p1", gold="A")]
    path = write_rows(tmp_path / f"in.{format_}", rows)
    found, pairs = survey_and_read(path, pairs_per_block=2)
    assert [pair.pair_id for pair in pairs] == ["p1", "p2", "p3"]
    assert "2 rows repeat an earlier row and are judged once" in found.notices
    assert found.blocks[0].skip == ()
    assert found.n_rejects == 0


@pytest.mark.parametrize(
    "other",
    [{"answer_a": "No."}, {"gold": "B"}, {"model_a": "m"}, {"cluster": "c"}, {"quality_a": 1.0}],
    ids=lambda value: next(iter(value)),
)
@pytest.mark.parametrize("format_", FORMATS)
def test_i02_different_rows_of_one_key_are_refused_with_both_places(
    tmp_path: Path, format_: str, other: dict[str, Any]
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    # The first row has the column too, so that both files have the same ones.
    plain = row("p1", **{name: row().get(name) for name in other})
    first = write_rows(folder / f"1.{format_}", [row("p0", **other), plain])
    second = write_rows(folder / f"2.{format_}", [row("p2", **other), row("p1", **other)])
    with pytest.raises(InputError) as error:
        survey(folder)
    assert f"pair_id 'p1': {first} row 2 and {second} row 2" in str(error.value)


def test_i02_no_more_than_five_examples(tmp_path: Path) -> None:
    rows = [row(f"p{i}", answer_a=text) for text in "xy" for i in range(9)]
    with pytest.raises(InputError) as error:
        survey(write_rows(tmp_path / "in.jsonl", rows))
    assert str(error.value).startswith("9 rows repeat a key")
    assert str(error.value).count("pair_id 'p") == 5


def test_one_id_in_two_tasks_names_two_pairs(tmp_path: Path) -> None:
    rows = [row("p1", task="x"), row("p1", task="y"), row("p1")]
    _, pairs = survey_and_read(write_rows(tmp_path / "in.csv", rows))
    assert [pair.task for pair in pairs] == ["x", "y", "default"]


@pytest.mark.parametrize("format_", FORMATS)
def test_i06_i07_identical_answers_are_flagged_and_swapped_rows_kept_apart(
    tmp_path: Path, format_: str
) -> None:
    rows = [
        row("same", answer_a="x", answer_b="x"),
        row("p1", answer_a="x", answer_b="yy"),
        row("p2", answer_a="yy", answer_b="x"),
        row("p3", answer_a="x", answer_b="yy"),
    ]
    found, _ = survey_and_read(write_rows(tmp_path / f"in.{format_}", rows))
    assert found.index["identical"].to_list() == [True, False, False, False]
    assert found.index["digest"].n_unique() == 4


@pytest.mark.parametrize("format_", FORMATS)
def test_i15_ids_keep_their_zeros(tmp_path: Path, format_: str) -> None:
    path = write_rows(tmp_path / f"in.{format_}", [row("007"), row("7"), row("7.0")])
    assert survey(path).index["pair_id"].to_list() == ["007", "7", "7.0"]


def test_i28_ids_are_not_normalised_and_look_alikes_are_told(tmp_path: Path) -> None:
    rows = [row("caf\u00e9"), row("cafe\u0301"), row("x"), row("x ")]
    found, pairs = survey_and_read(write_rows(tmp_path / "in.jsonl", rows))
    assert len(pairs) == 4
    assert any(notice.startswith("2 ids differ") for notice in found.notices)


def test_i30_order_and_files_do_not_change_the_name_of_the_input(tmp_path: Path) -> None:
    rows = [row(f"p{i}") for i in range(20)]
    one = survey(write_rows(tmp_path / "one.jsonl", rows))
    folder = tmp_path / "many"
    folder.mkdir()
    write_rows(folder / "a.csv", rows[:4:-1])
    write_rows(folder / "b.parquet", [*rows[:5], rows[2]])
    many = survey_pairs(PairsSpec(source="many", base=tmp_path))
    assert many.fingerprint == one.fingerprint
    assert set(many.index["digest"]) == set(one.index["digest"])
    assert survey(write_rows(tmp_path / "less.jsonl", rows[1:])).fingerprint != one.fingerprint
