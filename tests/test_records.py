"""Verdict records: read whole or refused with the place."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import polars as pl
import pytest

from judgebias.errors import InputError
from judgebias.records import Records, join_pairs, read_records

CALL = {"pair_id": "1", "judge": "j", "order": "ab", "verdict": "first"}


def jsonl(folder: Path, *records: object, name: str = "v.jsonl") -> Path:
    path = folder / name
    lines = [r if isinstance(r, str) else json.dumps(r) for r in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def refusal(read: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        read()
    return str(caught.value)


def test_defaults_and_failures(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path,
        CALL,
        CALL | {"order": "ba", "verdict": None},
        CALL | {"pair_id": "2", "verdict": None, "failure": "refused", "task": "x", "repeat": 2},
    )
    calls = read_records([path]).calls.sort("pair_id", "order")
    assert calls.select("task", "pair_id", "repeat", "order", "slot", "failure").rows() == [
        ("default", "1", 1, "ab", "first", None),
        ("default", "1", 1, "ba", None, "recorded"),
        ("x", "2", 2, "ab", None, "refused"),
    ]


def test_ids_keep_the_form_they_have_in_the_file(tmp_path: Path) -> None:
    ids = ['"007"', "7", "7.0", "1e5", "123456789012345678901234567890", '" a "']
    lines = [
        f'{{"pair_id": {name}, "judge": "j", "order": "ab", "verdict": "tie"}}' for name in ids
    ]
    found = read_records([jsonl(tmp_path, *lines)]).calls["pair_id"].to_list()
    assert found == [name.strip('"') for name in ids]


def test_blank_lines_and_a_byte_order_mark_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "v.ndjson"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(CALL).encode() + b"\r\n\r\n  \n")
    assert read_records([path]).calls.height == 1


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (CALL | {"verdict": "A"}, 'verdict is "A"'),
        (CALL | {"verdict": 1}, "verdict is 1"),
        (CALL | {"order": None}, "order is null"),
        (CALL | {"order": "AB"}, 'order is "AB"'),
        (CALL | {"pair_id": None}, "pair_id is null"),
        (CALL | {"pair_id": ""}, 'pair_id is ""'),
        (CALL | {"pair_id": True}, "pair_id is True"),
        (CALL | {"pair_id": ["1"]}, "pair_id is ['1']"),
        (CALL | {"task": "ALL"}, 'task is "ALL"'),
        (CALL | {"gold": "first"}, 'gold is "first"'),
        (CALL | {"repeat": 0}, "repeat is 0"),
        (CALL | {"repeat": 1.5}, "repeat is 1.5"),
        (CALL | {"repeat": True}, "repeat is True"),
        (CALL | {"len_a": -1}, "len_a is -1"),
        (CALL | {"p_first": 1.5}, "p_first is 1.5"),
        (CALL | {"p_first": 10**400}, "p_first is 1000"),
        (CALL | {"p_first": -1}, "p_first is -1"),
        (CALL | {"repeat": 10**400}, "repeat is 1000"),
        (CALL | {"pair_id": float("nan")}, "not a JSON object"),
        (CALL | {"other": float("inf")}, "not a JSON object"),
        (CALL | {"question": 3}, "question is 3"),
        (CALL | {"verdict": None, "failure": "boom"}, 'failure is "boom"'),
        (CALL | {"failure": "timeout"}, 'failure is "timeout"'),
        ({"pair_id": "1", "judge": "j", "order": "ab"}, 'the record has no "verdict"'),
        ('{"pair_id": "1", "pair_id": "2"}', "not a JSON object"),
        ('{"pair_id": "1"', "not a JSON object"),
        ("[1]", "is not a JSON object"),
    ],
)
def test_bad_record_is_refused_with_its_line(tmp_path: Path, record: object, said: str) -> None:
    path = jsonl(tmp_path, CALL | {"pair_id": "0"}, "", record)
    message = refusal(lambda: read_records([path]))
    assert f"{path}, line 3: " in message
    assert said in message
    assert "expected: " in message


@pytest.mark.parametrize("line", [b'{"pair_id": "\xff"}', b'{"pair_id": "\\ud800"}'])
def test_text_that_is_no_text_is_refused(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "v.jsonl"
    path.write_bytes(line + b"\n")
    assert f"{path}, line 1: " in refusal(lambda: read_records([path]))


def test_kinds_of_file_read_alike(tmp_path: Path) -> None:
    rows = [
        CALL | {"pair_id": "007", "gold": "A", "repeat": 2, "len_a": 4, "p_first": 0.25},
        CALL | {"pair_id": "008", "verdict": None, "gold": None, "repeat": 1},
    ]
    first = jsonl(tmp_path, *rows)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    frame.write_csv(tmp_path / "v.csv")
    frame.with_columns(pl.col("verdict").cast(pl.Categorical)).write_parquet(tmp_path / "v.parquet")
    for name in ("v.jsonl", "v.csv", "v.parquet"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    expected = read_records([first])
    for name in ("v.csv", "v.parquet", "v.jsonl.gz", "v.csv.gz", "v.parquet.gz"):
        found = read_records([tmp_path / name])
        assert found.calls.equals(expected.calls, null_equal=True), name
        assert found.pairs.sort("pair_id").equals(expected.pairs.sort("pair_id"), null_equal=True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pair_id,judge,order,verdict\n1,j,ab,first\n2,j,ab,A\n", 'row 2: verdict is "A"'),
        ("pair_id,judge,order,verdict,repeat\n1,j,ab,tie,x\n", 'row 1: repeat is "x"'),
        ("pair_id,judge,order\n1,j,ab\n", "no column verdict"),
        ("pair_id,judge,order,verdict\n1,j,ab,tie,more\n", "cannot be read as CSV"),
    ],
)
def test_bad_csv_is_refused_with_its_row(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "v.csv"
    path.write_text(text, encoding="utf-8")
    message = refusal(lambda: read_records([path]))
    assert str(path) in message
    assert said in message


def test_parquet_ids_are_never_fractions(tmp_path: Path) -> None:
    path = tmp_path / "v.parquet"
    pl.DataFrame([CALL | {"pair_id": 7}]).write_parquet(path)
    assert read_records([path]).calls["pair_id"].to_list() == ["7"]
    pl.DataFrame([CALL | {"pair_id": 7.0}]).write_parquet(path)
    assert "pair_id holds Float64" in refusal(lambda: read_records([path]))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    whole = gzip.compress((json.dumps(CALL) + "\n").encode() * 5)
    for name, data in (("a.jsonl.gz", whole[:-12]), ("b.jsonl.gz", b"x"), ("c.parquet", b"x")):
        path = tmp_path / name
        path.write_bytes(data)
        assert str(path) in refusal(lambda path=path: read_records([path]))


def test_folders_and_globs_name_each_file_once(tmp_path: Path) -> None:
    first = jsonl(tmp_path, CALL, name="a.jsonl")
    jsonl(tmp_path, CALL | {"pair_id": "2"}, name="b.jsonl")
    (tmp_path / "notes.txt").write_text("no records")
    (tmp_path / "_temporary.jsonl").write_text("no records")
    sources = [tmp_path, str(tmp_path / "*.jsonl"), first]
    found = read_records(sources[:1])
    assert found.calls["pair_id"].to_list() == ["1", "2"]
    assert read_records([sources[0], first]).notices == ()
    assert read_records([str(tmp_path / "[ab].jsonl")]).calls.height == 2


@pytest.mark.parametrize("source", ["absent.jsonl", "none*.jsonl", ".", "notes.txt"])
def test_source_without_records_is_refused(tmp_path: Path, source: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert source in refusal(lambda: read_records([f"{tmp_path}/{source}"]))


def test_no_source_and_no_record_are_refused(tmp_path: Path) -> None:
    assert "no source" in refusal(lambda: read_records([]))
    empty = tmp_path / "v.jsonl"
    empty.write_text("")
    assert "no verdict records" in refusal(lambda: read_records([empty]))
    empty = tmp_path / "v.csv"
    empty.write_text("")
    assert "no verdict records" in refusal(lambda: read_records([empty]))


def test_same_call_with_equal_verdicts_counts_once_with_a_notice(tmp_path: Path) -> None:
    first = jsonl(tmp_path, CALL, CALL, name="a.jsonl")
    second = jsonl(tmp_path, CALL, name="b.jsonl")
    records = read_records([first, second])
    assert records.calls.height == 1
    assert any(notice.startswith("2 records repeat") for notice in records.notices)


@pytest.mark.parametrize("other", ["second", None])
def test_same_call_with_different_verdicts_is_refused(tmp_path: Path, other: str | None) -> None:
    first = jsonl(tmp_path, {**CALL, "pair_id": "0"}, CALL, name="a.jsonl")
    second = jsonl(tmp_path, CALL | {"verdict": other}, name="b.jsonl")
    message = refusal(lambda: read_records([first, second]))
    assert f"first in {first}, line 2" in message
    assert f"{other or 'null'} in {second}, line 1" in message


@pytest.mark.parametrize(
    ("name", "one", "two"), [("gold", "A", "B"), ("model_a", "x", "y"), ("len_b", 3, 4)]
)
def test_pair_that_contradicts_itself_is_refused(
    tmp_path: Path, name: str, one: object, two: object
) -> None:
    path = jsonl(tmp_path, CALL | {name: one}, CALL | {"order": "ba", name: two})
    message = refusal(lambda: read_records([path]))
    assert f"more than one {name}" in message
    assert f"{one} in {path}, line 1" in message
    assert f"{two} in {path}, line 2" in message


def test_what_one_record_leaves_out_another_may_say(tmp_path: Path) -> None:
    path = jsonl(tmp_path, CALL | {"gold": None}, CALL | {"order": "ba", "gold": "B"})
    assert read_records([path]).pairs["gold"].to_list() == ["B"]


def test_unknown_columns_are_said_once(tmp_path: Path) -> None:
    path = jsonl(tmp_path, CALL | {"raw": "x"}, CALL | {"order": "ba", "strength": {"a": 1}})
    assert read_records([path]).notices == ("columns that were not used: raw, strength",)


def cluster_of(records: Records) -> list[str | None]:
    return records.pairs.sort("task", "pair_id")["cluster"].to_list()


def test_cluster_rules(tmp_path: Path) -> None:
    about = {"question": "Why?", "cluster": "c", "topic": 7}
    path = jsonl(tmp_path, CALL | about, {**CALL, "pair_id": "2", "cluster": "d", "topic": 8})
    digest = blake2b(b"Why?", digest_size=16).hexdigest()
    assert cluster_of(read_records([path])) == [digest, "d"]
    assert cluster_of(read_records([path], cluster="pair")) == [None, None]
    assert cluster_of(read_records([path], cluster="cluster")) == ["c", "d"]
    assert cluster_of(read_records([path], cluster="topic")) == ["7", "8"]
    assert "cluster column x" in refusal(lambda: read_records([path], cluster="x"))
    bare = jsonl(tmp_path, CALL, name="bare.jsonl")
    assert cluster_of(read_records([bare])) == [None]
    assert "cluster column cluster" in refusal(lambda: read_records([bare], cluster="cluster"))


def pairs_file(**more: object) -> pl.DataFrame:
    row = {"task": "default", "pair_id": "1", "question_id": "q", "model_a": "x", "len_a": 3}
    return pl.DataFrame([row | {"identical": True} | more])


def test_join_attaches_what_the_pairs_say(tmp_path: Path) -> None:
    path = jsonl(tmp_path, CALL | {"gold": "A"}, {**CALL, "pair_id": "2"})
    joined = join_pairs(read_records([path]), pairs_file())
    assert joined.pairs.rows() == [("default", "1", "x", None, "A", "q", 3, None, True)]
    assert joined.calls["pair_id"].to_list() == ["1"]
    assert joined.notices == ("1 of 2 records speak of pairs that are not in the pairs file",)


def test_join_follows_the_cluster_rule(tmp_path: Path) -> None:
    records = read_records([jsonl(tmp_path, CALL | {"cluster": "c"})])
    assert cluster_of(join_pairs(records, pairs_file())) == ["q"]
    assert cluster_of(join_pairs(records, pairs_file(), cluster="pair")) == [None]
    assert cluster_of(join_pairs(records, pairs_file(topic="z"), cluster="topic")) == ["z"]
    assert "not in the pairs" in refusal(lambda: join_pairs(records, pairs_file(), cluster="topic"))


def test_join_refuses_contradictions_and_strangers(tmp_path: Path) -> None:
    records = read_records([jsonl(tmp_path, CALL | {"gold": "A"})])
    message = refusal(lambda: join_pairs(records, pairs_file(gold="B")))
    assert "gold A in the records and B in the pairs file" in message
    assert "no record speaks" in refusal(lambda: join_pairs(records, pairs_file(pair_id="9")))


def test_what_only_a_later_record_says_is_kept_and_compared(tmp_path: Path) -> None:
    first = jsonl(tmp_path, CALL, CALL | {"pair_id": "2"}, name="1.jsonl")
    later = CALL | {"order": "ba", "gold": "A", "len_a": 4}
    second = jsonl(tmp_path, later, CALL | {"pair_id": "3"}, name="2.jsonl")
    pairs = read_records([first, second]).pairs
    assert pairs.select("pair_id", "gold", "len_a").rows() == [
        ("1", "A", 4),
        ("2", None, None),
        ("3", None, None),
    ]
    third = jsonl(tmp_path, later | {"judge": "k", "gold": "B"}, name="3.jsonl")
    message = refusal(lambda: read_records([first, second, third]))
    assert "the pair 1 of task default has more than one gold" in message
    assert f"A in {second}, line 1" in message
    assert f"B in {third}, line 1" in message


def test_calls_name_their_pairs_in_sorted_order(tmp_path: Path) -> None:
    rows = [
        CALL | {"pair_id": "b", "task": "y"},
        CALL | {"pair_id": "b", "task": "x", "verdict": "tie"},
        CALL | {"pair_id": "a", "task": "y", "verdict": None},
    ]
    records = read_records([jsonl(tmp_path, *rows)])
    assert records.pairs.select("task", "pair_id").rows() == [("x", "b"), ("y", "a"), ("y", "b")]
    assert records.judges["j"].select("pair", "slot").rows() == [
        (2, "first"),
        (0, "tie"),
        (1, None),
    ]
    assert records.n_calls == 3
