"""Every figure of the known answers, from the recorded verdicts they were made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from math import isclose
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgebias.cli import run_app
from judgebias.records import Records, join_pairs, read_records
from judgebias.summary import repeats_table, settle_calls, summarize
from judgebias.summary.figures import one_order_only

TOLERANCE = 1e-9
ABOUT = {"set", "file", "judge", "task", "repeat"}
TWO_ORDERS = [
    ("arena_hard", "verdicts.jsonl"),
    ("autoj", "verdicts.jsonl"),
    ("faireval", "verdicts.jsonl"),
    ("fastchat_pair", "verdicts.jsonl"),
    ("judgebench", "verdicts.jsonl"),
    ("llmbar", "verdicts.jsonl"),
    ("position_bias_analyzer", "verdicts_devbench.jsonl"),
    ("position_bias_analyzer", "verdicts_devbench_repeats.jsonl"),
    ("position_bias_analyzer", "verdicts_mtbench.jsonl"),
    ("position_bias_analyzer", "verdicts_mtbench_repeats.jsonl"),
    ("prd_vicuna80", "verdicts.jsonl"),
]
REPEATED = [case for case in TWO_ORDERS if "repeats" in case[1]]
BY_QUESTION = ["autoj", "llmbar", "prd_vicuna80"]

Row = dict[str, Any]


def settled(records: Records) -> pl.LazyFrame:
    return settle_calls(records.calls.lazy(), records.pairs.lazy())


def known(path: Path, folder: str, file: str, *, repeated: bool) -> list[Row]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        row
        for row in rows
        if (row["set"], row["file"]) == (folder, file) and (row["repeat"] is not None) == repeated
    ]


def differences(found: Row, expected: Row) -> Iterator[str]:
    for name in expected.keys() - ABOUT:
        ours, theirs = found[name], expected[name]
        same = (
            isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
            if isinstance(ours, float) and isinstance(theirs, float)
            else ours == theirs and (ours is None) == (theirs is None)
        )
        if not same:
            yield f"{expected['judge']}, {expected['task']}, {name}: {ours} for {theirs}"


def compare(found: pl.DataFrame, expected: list[Row], *keys: str) -> None:
    ours = {tuple(row[key] for key in keys): row for row in found.iter_rows(named=True)}
    assert ours.keys() == {tuple(row[key] for key in keys) for row in expected}
    faults = [
        fault
        for row in expected
        for fault in differences(ours[tuple(row[key] for key in keys)], row)
    ]
    assert not faults, "\n".join(faults[:20])


@pytest.mark.parametrize(("folder", "file"), TWO_ORDERS)
@pytest.mark.slow
def test_summary_has_every_known_figure(shared: Path, folder: str, file: str) -> None:
    records = read_records([shared / "data" / folder / file], cluster="pair")
    expected = known(shared / "golden/summaries.jsonl", folder, file, repeated=False)
    compare(summarize(settled(records)), expected, "judge", "task")


@pytest.mark.parametrize(("folder", "file"), REPEATED)
def test_repeats_have_every_known_figure(shared: Path, folder: str, file: str) -> None:
    records = read_records([shared / "data" / folder / file], cluster="pair")
    expected = known(shared / "golden/summaries.jsonl", folder, file, repeated=True)
    compare(repeats_table(settled(records)), expected, "judge", "task", "repeat")


def question_pairs(path: Path) -> pl.DataFrame:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kept = ("task", "pair_id", "model_a", "model_b", "gold")
    return pl.DataFrame(
        [
            {name: row.get(name) for name in kept}
            | {
                "question_id": blake2b(row["question"].encode(), digest_size=16).hexdigest(),
                "len_a": len(row["answer_a"]),
                "len_b": len(row["answer_b"]),
                "identical": row["answer_a"] == row["answer_b"],
            }
            for row in rows
        ],
        schema_overrides={"gold": pl.String},
        infer_schema_length=None,
    )


@pytest.mark.parametrize("folder", BY_QUESTION)
@pytest.mark.slow
def test_summary_by_question_has_every_known_figure(shared: Path, folder: str) -> None:
    data = shared / "data" / folder
    records = join_pairs(
        read_records([data / "verdicts.jsonl"]), question_pairs(data / "pairs.jsonl")
    )
    golden = shared / "golden/summaries_by_question.jsonl"
    expected = known(golden, folder, "verdicts.jsonl", repeated=False)
    assert len(expected) > 1
    compare(summarize(settled(records)), expected, "judge", "task")


@pytest.mark.parametrize("folder", ["autoj", "prd_vicuna80"])
@pytest.mark.slow
def test_the_command_with_pairs_has_every_known_figure(
    shared: Path, folder: str, tmp_path: Path
) -> None:
    data = shared / "data" / folder
    pairs, records = str(data / "pairs.jsonl"), str(data / "verdicts.jsonl")
    assert run_app(["summarize", records, "--pairs", pairs, "--out", str(tmp_path)]) == 0
    golden = shared / "golden/summaries_by_question.jsonl"
    expected = known(golden, folder, "verdicts.jsonl", repeated=False)
    compare(pl.read_parquet(tmp_path / "summary.parquet"), expected, "judge", "task")


def test_no_known_row_is_left_out(shared: Path) -> None:
    lines = (shared / "golden/summaries.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert {(row["set"], row["file"]) for row in rows} == set(TWO_ORDERS)
    lines = (shared / "golden/summaries_by_question.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["set"] for line in lines} == set(BY_QUESTION)


def test_one_order_gives_counts_and_nulls(shared: Path) -> None:
    path = shared / "data/pandalm/verdicts.jsonl"
    summary = summarize(settled(read_records([path])))
    calls = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for row in summary.filter(pl.col("task") == "ALL").iter_rows(named=True):
        said = [call["verdict"] for call in calls if call["judge"] == row["judge"]]
        assert one_order_only(row)
        assert row["n_pairs"] == row["n_single"] == row["n_calls"] == len(said)
        for slot in ("first", "second", "tie"):
            assert row[f"n_{slot}"] == said.count(slot)
        assert row["n_failed"] == said.count(None)
        decisive = row["n_first"] + row["n_second"]
        assert row["first_position_rate"] == row["n_first"] / decisive
        for name in ("consistency", "lean_rate", "offset", "swing", "win_rate_a", "kappa"):
            assert row[name] is row[f"{name}_low"] is row[f"{name}_high"] is None
