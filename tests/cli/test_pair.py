"""Outputs of models become pairs, and what does not match is said and counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judgebias.cli import run_app
from judgebias.pairs import PairsSpec, read_block, survey_pairs
from tests.pairs.sample_pairs import write_rows

Read = pytest.CaptureFixture[str]


def outputs(folder: Path, name: str, ids: Sequence[Any], **more: Any) -> Path:
    stem = name.partition(".")[0]
    rows = [{"id": i, "prompt": f"q{i}?", "output": f"{stem} says {i}", **more} for i in ids]
    return write_rows(folder / name, rows)


def pairs_of(path: Path) -> list[Any]:
    spec = PairsSpec(source=str(path))
    return [pair for block in survey_pairs(spec).blocks for pair in read_block(block, spec)]


@pytest.mark.parametrize("out", ["pairs.parquet", "pairs.jsonl", "pairs.csv"])
@pytest.mark.parametrize("given", ["csv", "jsonl", "parquet", "jsonl.gz"])
def test_two_files(tmp_path: Path, capsys: Read, given: str, out: str) -> None:
    one = outputs(tmp_path, f"one.{given}", ["007", "8", 'é,"\n'])
    two = outputs(tmp_path, f"two.{given}", ["8", "007", "9"])
    assert run_app(["pair", str(one), str(two), "--on", "id", "--out", str(tmp_path / out)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "A = one, B = two: 2 pairs",
        '  1 only in one: é,"',
        "",
        "  1 only in two: 9",
        f"2 pairs are in {tmp_path / out}",
    ]
    pairs = pairs_of(tmp_path / out)
    assert [(p.pair_id, p.question, p.answer_a, p.answer_b) for p in pairs] == [
        ("007:one:two", "q007?", "one says 007", "two says 007"),
        ("8:one:two", "q8?", "one says 8", "two says 8"),
    ]
    assert {(p.model_a, p.model_b, p.task) for p in pairs} == {("one", "two", "default")}


def three(folder: Path) -> list[str]:
    files = [outputs(folder, f"{name}.jsonl", [1, 2], model=name.upper()) for name in "xyz"]
    return [str(path) for path in files]


@pytest.mark.parametrize(
    ("options", "contests"),
    [
        ([], [("X", "Y"), ("X", "Z"), ("Y", "Z")]),
        (["--baseline", "Y"], [("X", "Y"), ("Z", "Y")]),
    ],
)
def test_all_against_all_or_against_a_baseline(
    tmp_path: Path, capsys: Read, options: list[str], contests: list[tuple[str, str]]
) -> None:
    out = str(tmp_path / "pairs.parquet")
    assert run_app(["pair", *three(tmp_path), "--on", "id", "--out", out, *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(c["model_a"], c["model_b"], c["n_pairs"]) for c in told] == [
        (a, b, 2) for a, b in contests
    ]
    pairs = pairs_of(tmp_path / "pairs.parquet")
    assert [pair.pair_id for pair in pairs] == [f"{n}:{a}:{b}" for a, b in contests for n in (1, 2)]


def test_a_model_added_later_renames_no_pair(tmp_path: Path) -> None:
    files = three(tmp_path)
    few, many = tmp_path / "few.jsonl", tmp_path / "many.jsonl"
    assert run_app(["pair", *files[:2], "--on", "id", "--out", str(few)]) == 0
    assert run_app(["pair", *files, "--on", "id", "--out", str(many)]) == 0
    digests = [{pair.digest() for pair in pairs_of(path)} for path in (few, many)]
    assert digests[0] < digests[1]


def test_what_does_not_match_is_left_out_and_said(tmp_path: Path, capsys: Read) -> None:
    good = {"id": "1", "question": "same?", "answer": "a", "reference": "r", "task": "t"}
    rows = [
        good,
        {**good, "id": "2"},
        {**good, "id": "3", "answer": None},
        {**good, "id": "4"},
        {**good, "id": "5"},
    ]
    one = write_rows(tmp_path / "one.jsonl", rows)
    other = [
        {**good, "answer": "b", "reference": None},
        {**good, "id": "2", "question": "another?"},
        {**good, "id": "3"},
        {**good, "id": "4", "task": "u"},
        {**good, "id": "5", "answer": "b", "reference": "R"},
    ]
    two = write_rows(tmp_path / "two.jsonl", other)
    out = tmp_path / "pairs.jsonl"
    assert run_app(["pair", str(one), str(two), "--on", "id", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "A = one, B = two: 1 pairs",
        "  1 only in one: t/4",
        "  2 only in two: t/3, u/4",
        "  2 left out: one id, but different questions or references: t/2, t/5",
        f"1 pairs are in {out}",
    ]
    assert "left out, row 3: answer_a: missing or null" in said.err
    (pair,) = pairs_of(out)
    assert (pair.task, pair.pair_id, pair.reference) == ("t", "1:one:two", "r")


def test_a_question_that_one_file_has_is_enough(tmp_path: Path, capsys: Read) -> None:
    one = write_rows(tmp_path / "one.csv", [{"id": "1", "text": "a"}, {"id": "2", "text": "b"}])
    two = outputs(tmp_path, "two.jsonl", ["1"])
    three = write_rows(tmp_path / "three.csv", [{"id": "2", "text": "a"}])
    out = tmp_path / "pairs.csv"
    files = [str(one), str(two), str(three)]
    assert run_app(["pair", *files, "--on", "id", "--out", str(out)]) == 0
    assert "1 left out: no question in any file: 2" in capsys.readouterr().out
    assert [pair.question for pair in pairs_of(out)] == ["q1?"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["one.jsonl", "two.jsonl", "--on", "key"], "one.jsonl has no column 'key'; it has id,"),
        (["one.jsonl", "two.jsonl", "--on", "id", "--answer", "x"], "has no column 'x'"),
        (["one.jsonl", "--on", "id"], "pair was given one file"),
        (["one.jsonl", "one.jsonl", "--on", "id"], "are both of the model 'one'"),
        (
            ["one.jsonl", "two.jsonl", "--on", "id", "--baseline", "b"],
            "no file is of the model 'b'",
        ),
        (["one.jsonl", "far.jsonl", "--on", "id"], "no item of one file matches"),
        (["one.jsonl", "many.jsonl", "--on", "id"], "holds the outputs of 2 models: p, q"),
        (["one.jsonl", "twice.jsonl", "--on", "id"], "repeat a key with different content"),
        (["one.jsonl", "bare.jsonl", "--on", "id"], "no column for the answer; it has id, prompt"),
        (["one.jsonl", "absent.jsonl", "--on", "id"], "absent.jsonl"),
    ],
)
def test_what_cannot_be_paired_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: Read, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outputs(tmp_path, "one.jsonl", [1, 2])
    outputs(tmp_path, "two.jsonl", [1, 2])
    outputs(tmp_path, "far.jsonl", [8, 9])
    rows = [{"id": n, "prompt": "?", "output": "o", "model": m} for n, m in ((1, "p"), (2, "q"))]
    write_rows(tmp_path / "many.jsonl", rows)
    twice = [{"id": 1, "prompt": "?", "output": text} for text in ("o", "p")]
    write_rows(tmp_path / "twice.jsonl", twice)
    write_rows(tmp_path / "bare.jsonl", [{"id": 1, "prompt": "?"}])
    assert run_app(["pair", *options, "--out", "pairs.jsonl"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "pairs.jsonl").exists()


@pytest.mark.parametrize(
    ("out", "said"), [("pairs.xlsx", "unknown ending"), ("one.jsonl", "one of the files")]
)
def test_a_place_that_cannot_be_written_to_is_refused(
    tmp_path: Path, capsys: Read, out: str, said: str
) -> None:
    files = [str(outputs(tmp_path, f"{name}.jsonl", [1])) for name in ("one", "two")]
    before = (tmp_path / "one.jsonl").read_bytes()
    assert run_app(["pair", *files, "--on", "id", "--out", str(tmp_path / out)]) == 2
    assert said in capsys.readouterr().err
    assert (tmp_path / "one.jsonl").read_bytes() == before
