"""Inputs that are wrong, numbered as in the list of faults (I-01 to I-30)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgebias.errors import ConfigError, InputError
from judgebias.pairs import PairsSpec, Reject, survey_pairs
from judgebias.pairs import lines as lines_module
from tests.pairs.sample_pairs import row, survey, survey_and_read, write_bytes, write_rows

FORMATS = ("parquet", "jsonl", "csv")
WITH_NULLS = ("parquet", "jsonl")
GOOD = json.dumps(row("good")).encode() + b"\n"

# number, formats, the faulty row, the field named, a part of the reason
ROW_FAULTS: list[tuple[str, tuple[str, ...], dict[str, Any], str | None, str]] = [
    ("I-04", WITH_NULLS, row(answer_a=None), "answer_a", "missing or null"),
    ("I-04", WITH_NULLS, row(question=None), "question", "missing or null"),
    ("I-13", FORMATS, row(answer_b="a\0b"), "answer_b", "NUL"),
    ("I-13", FORMATS, row("a\0b"), "pair_id", "NUL"),
    ("I-14", ("jsonl",), row(answer_a=7), "answer_a", "expected a text, found a number"),
    ("I-14", ("jsonl",), row(answer_a=["x"]), "answer_a", "expected a text, found a list"),
    ("I-14", ("jsonl",), row(question={"x": 1}), "question", "found an object"),
    ("I-14", ("jsonl",), row({"x": 1}), "pair_id", "found an object"),
    ("I-14", ("jsonl",), row(gold=True), "gold", "found true or false"),
    ("I-14", ("jsonl",), row(quality_a="3"), "quality_a", "expected a number, found a text"),
    ("I-14", ("jsonl",), row(quality_a=[3]), "quality_a", "expected a number, found a list"),
    ("I-14", ("csv",), row(quality_a="high"), "quality_a", "expected a number, found 'high'"),
    ("I-16", WITH_NULLS, row(None), "pair_id", "missing or null"),
    ("I-16", FORMATS, row("  "), "pair_id", "blank"),
    ("I-16", ("jsonl",), row(answer_a=float("nan")), "answer_a", "NaN is not a finite number; use"),
    (
        "I-16",
        ("jsonl",),
        row(float("nan")),
        "pair_id",
        "not valid JSON: NaN is not a finite number",
    ),
    ("I-16", ("jsonl",), row(float("-inf")), "pair_id", "-Infinity is not a finite number"),
    ("I-16", ("jsonl",), row(task=float("inf")), "task", "Infinity is not a finite number"),
    (
        "I-16",
        ("jsonl",),
        row(gold=float("nan"), question="NaN or Infinity?"),
        "gold",
        ": NaN is not a finite number",
    ),
    ("I-16", ("jsonl",), row(other=float("nan")), None, "NaN is not a finite number in 'other'"),
    (
        "I-16",
        ("jsonl",),
        row(other=[float("nan")]),
        None,
        "NaN or Infinity is not a finite number; use null",
    ),
    ("I-14", ("jsonl",), row(10**4000), "pair_id", "found a number of thousands of digits"),
    ("I-14", ("jsonl",), row(quality_a=10**400), "quality_a", "not a finite number"),
    ("task", FORMATS, row(task="ALL"), "task", "ALL"),
    ("gold", FORMATS, row(gold="a"), "gold", "not one of A, B, tie"),
    ("quality", FORMATS, row(quality_b=float("inf")), "quality_b", "not a finite number"),
    ("quality", FORMATS, row(quality_b=float("nan")), "quality_b", "not a finite number"),
]


@pytest.mark.parametrize(
    ("format_", "bad", "field", "reason"),
    [
        pytest.param(format_, bad, field, reason, id=f"{number}-{format_}-{field}-{reason[:20]}")
        for number, formats, bad, field, reason in ROW_FAULTS
        for format_ in formats
    ],
)
def test_a_faulty_row_is_rejected_by_name_and_the_others_go_on(
    tmp_path: Path, format_: str, bad: dict[str, Any], field: str, reason: str
) -> None:
    path = write_rows(tmp_path / f"in.{format_}", [row("good"), bad, row("last")])
    found, pairs = survey_and_read(path)
    assert [pair.pair_id for pair in pairs] == ["good", "last"]
    (reject,) = found.rejects
    assert (reject.file, reject.row, reject.field) == (str(path), 2, field)
    assert reason in reject.reason
    assert found.n_rejects == 1


JSON_LINES = [
    pytest.param(b'{"pair_id": "x", \n', None, "not valid JSON", id="broken"),
    pytest.param(b"[1, 2]\n", None, "not a JSON object", id="not an object"),
    pytest.param(
        GOOD.replace(b'"question"', b'"answer_a": "y", "question"'),
        "answer_a",
        "there twice",
        id="I-23 duplicate key",
    ),
    pytest.param(
        GOOD.replace(b"Because", b"\\ud800"), None, "lone surrogate", id="I-13 lone surrogate"
    ),
    pytest.param(GOOD.replace(b"So", b"\\udc00"), None, "lone surrogate", id="I-13 low surrogate"),
    pytest.param(GOOD.replace(b"So", b"\0"), None, "control character", id="I-13 raw NUL"),
]


@pytest.mark.parametrize(("line", "field", "reason"), JSON_LINES)
def test_a_line_that_cannot_be_read_is_a_reject(
    tmp_path: Path, line: bytes, field: str | None, reason: str
) -> None:
    path = write_bytes(tmp_path / "in.jsonl", GOOD + line + GOOD.replace(b"good", b"last"))
    found, pairs = survey_and_read(path)
    assert [pair.pair_id for pair in pairs] == ["good", "last"]
    (reject,) = found.rejects
    assert (reject.row, reject.field) == (2, field)
    assert reason in reject.reason


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_i22_a_last_row_that_is_cut_off_is_named(tmp_path: Path, suffix: str) -> None:
    path = write_rows(tmp_path / f"in.{suffix}", [row("p1"), row("p2"), row("p3")])
    path.write_bytes(path.read_bytes()[:-8])
    found, pairs = survey_and_read(path)
    assert [pair.pair_id for pair in pairs] == ["p1", "p2"]
    (reject,) = found.rejects
    assert reject.row == 3
    assert "cut off" in reject.reason


def test_i22_a_whole_last_line_needs_no_line_end(tmp_path: Path) -> None:
    path = write_bytes(tmp_path / "in.jsonl", GOOD.rstrip(b"\n"))
    assert len(survey_and_read(path)[1]) == 1


@pytest.mark.parametrize("width", [3, 5])
def test_a_csv_record_of_another_width_is_a_reject(tmp_path: Path, width: int) -> None:
    text = "pair_id,question,answer_a,answer_b\n1,q,a,b\n" + ",".join("abcde"[:width]) + "\n2,q,a,b"
    path = write_bytes(tmp_path / "in.csv", text.encode())
    found, pairs = survey_and_read(path)
    assert [pair.pair_id for pair in pairs] == ["1", "2"]
    assert found.rejects[0].reason == f"{width} fields where the header has 4"


def test_a_csv_record_with_broken_quotes_is_a_reject(tmp_path: Path) -> None:
    text = 'pair_id,question,answer_a,answer_b\n1,q,"a" b,b\n2,q,a,b\n'
    found, pairs = survey_and_read(write_bytes(tmp_path / "in.csv", text.encode()))
    assert [pair.pair_id for pair in pairs] == ["2"]
    assert "not valid CSV" in found.rejects[0].reason


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_i05_blank_answers_follow_the_policy(tmp_path: Path, format_: str, blank: str) -> None:
    path = write_rows(tmp_path / f"in.{format_}", [row("p1"), row("p2", answer_b=blank)])
    _, judged = survey_and_read(path)
    assert [pair.answer_b for pair in judged] == ["So.", blank]
    found, kept = survey_and_read(path, empty="reject")
    assert [pair.pair_id for pair in kept] == ["p1"]
    assert (found.rejects[0].field, found.rejects[0].pair_id) == ("answer_b", "p2")


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.slow
def test_i21_a_row_beyond_the_limit_is_rejected_and_the_next_is_read(
    tmp_path: Path, format_: str
) -> None:
    bomb = ('x"' * 1000 + "\n") * 9000
    path = write_rows(
        tmp_path / f"in.{format_}.gz", [row("p1"), row("p2", answer_a=bomb), row("p3")]
    )
    found, pairs = survey_and_read(path)
    assert [pair.pair_id for pair in pairs] == ["p1", "p3"]
    assert "longer than 16777216 bytes" in found.rejects[0].reason


def test_i21_a_long_line_is_never_held_whole(tmp_path: Path) -> None:
    path = write_bytes(tmp_path / "long", b"x" * 5000 + b"\nnext\n")
    with path.open("rb") as stream:
        assert lines_module.read_line(stream, limit=10) == (None, 5001)
        assert lines_module.read_line(stream, limit=10) == (b"next\n", 5)
        assert lines_module.read_line(stream, limit=10) == (b"", 0)


# ---------------------------------------------------------------- files that stop the run


def _broken_text(tmp_path: Path) -> Path:
    bad = pa.array([b"So \xff."], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, bad.buffers())
    table = pa.table({"pair_id": ["1"], "question": ["q"], "answer_a": ["a"], "answer_b": text})
    path = tmp_path / "in.parquet"
    pq.write_table(table, path)
    return path


def _parquet(tmp_path: Path, **columns: Any) -> Path:
    names = {name: pa.array([value, value]) for name, value in row().items()}
    names["pair_id"] = pa.array(["1", "2"])
    path = tmp_path / "in.parquet"
    pq.write_table(pa.table(names | columns), path)
    return path


ZIPPED = gzip.compress(GOOD)
HEADER = b"pair_id,question,answer_a,answer_b\n"
ZIPPED_CSV = gzip.compress(HEADER + b"1,q,a,b\n")
FILE_FAULTS = [
    pytest.param("in.jsonl", GOOD + GOOD[:-5] + b"\xe9", f"byte {2 * len(GOOD) - 5}", id="I-10"),
    pytest.param("in.csv", HEADER + b"1,q,\xff,b\n", f"byte {len(HEADER) + 4}", id="I-10-csv"),
    pytest.param("in.csv", "pair_id".encode("utf-16"), "looks like UTF-16", id="I-10-utf16"),
    pytest.param("in.jsonl", b"\x28\xb5\x2f\xfd....", "looks like zstd", id="I-18-zstd"),
    pytest.param("in.jsonl.gz", GOOD, "is not gzip", id="I-18-not-gzip"),
    pytest.param("in.jsonl.gz", ZIPPED[:-9], "truncated", id="I-18-truncated"),
    pytest.param("in.csv.gz", ZIPPED_CSV[:-9], "truncated", id="I-18-truncated-csv"),
    pytest.param("in.jsonl.gz", ZIPPED[:20] + b"!!" + ZIPPED[22:], "gzip", id="I-18-damaged"),
    pytest.param("in.parquet", b"PARE" + bytes(24) + b"\x08\0\0\0PARE", "read", id="encrypted"),
    pytest.param("in.parquet", b"PAR1 no footer", "cannot be read", id="I-19-footer"),
    pytest.param("in.csv", b"pair_id,question,answer_a\n1,q,a\n", "no column answer_b", id="I-03"),
    pytest.param("in.csv", HEADER[:-1] + b",pair_id\n", "more than once", id="twin"),
    pytest.param("in.csv", b"pair_id;question;answer_a;answer_b\n", "no column pair_id", id=";"),
    pytest.param("in.jsonl", b'{"pair_id": "1", "Question": "q"}', "no column question", id="I-03"),
    pytest.param("in.txt", GOOD, "unknown ending", id="ending"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "message"), FILE_FAULTS)
def test_a_file_that_cannot_be_read_stops_the_run(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    path = write_bytes(tmp_path / name, data)
    with pytest.raises(InputError) as error:
        survey(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert error.value.expected


def test_i03_both_sides_are_listed_and_the_nearest_name_is_offered(tmp_path: Path) -> None:
    path = _parquet(tmp_path)
    frame = pl.read_parquet(path).rename({"answer_b": "answerB"})
    frame.write_parquet(path)
    with pytest.raises(InputError) as error:
        survey(path)
    text = str(error.value)
    assert "it has answerB, answer_a, pair_id, question" in text
    assert "expected: the columns pair_id, question, answer_a, answer_b" in text
    assert 'columns = { answer_b = "answerB" }' in text


def test_i03_a_key_missing_in_one_row_is_a_reject_in_all_first_rows_a_column(
    tmp_path: Path,
) -> None:
    without = {key: value for key, value in row("p0").items() if key != "answer_b"}
    path = write_rows(tmp_path / "in.jsonl", [without, row("p1")])
    assert survey(path).rejects[0].field == "answer_b"
    rows = [without] * 1000 + [row("p1")]
    with pytest.raises(InputError, match="no column answer_b"):
        survey(write_rows(path, rows))


def test_i10_bytes_that_are_not_text_inside_parquet(tmp_path: Path) -> None:
    path = _broken_text(tmp_path)
    with pytest.raises(InputError, match="answer_b holds bytes that are not UTF-8"):
        survey(path)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("answer_a", pa.array([1, 2])),
        ("answer_a", pa.array([["a"], ["b"]])),
        ("question", pa.array([b"a", b"b"])),
        ("pair_id", pa.array([{"x": 1}, {"x": 2}])),
        ("quality_a", pa.array(["1", "2"])),
    ],
)
def test_i19_a_column_of_another_type_is_refused(
    tmp_path: Path, column: str, values: pa.Array
) -> None:
    with pytest.raises(InputError, match=f"the column {column} is"):
        survey(_parquet(tmp_path, **{column: values}))


def test_a_mapping_to_an_unknown_column_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="write question = 'x'"):
        PairsSpec(source="x", columns={"qestion": "x"})


@pytest.mark.parametrize("spec", [{"columns": {"model_a": "left"}}, {"cluster": "topic"}])
@pytest.mark.parametrize("format_", FORMATS)
def test_a_column_that_was_asked_for_must_exist(
    tmp_path: Path, format_: str, spec: dict[str, Any]
) -> None:
    path = write_rows(tmp_path / f"in.{format_}", [row()])
    with pytest.raises(InputError, match="no row of the input has the column"):
        survey(path, **spec)


@pytest.mark.parametrize("source", ["absent.jsonl", "*.jsonl", "."])
def test_i20_nothing_to_read_is_an_error(tmp_path: Path, source: str) -> None:
    with pytest.raises(InputError, match="pairs = "):
        survey_pairs(PairsSpec(source=source, base=tmp_path))


def test_every_reject_goes_to_the_caller_and_the_survey_keeps_a_thousand(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "in.jsonl", [row(" ") for _ in range(1500)])
    told: list[Reject] = []
    found = survey_pairs(PairsSpec(source=str(path)), on_reject=told.append)
    assert (len(told), found.n_rejects, len(found.rejects)) == (1500, 1500, 1000)
    assert [reject.row for reject in told] == list(range(1, 1501))
