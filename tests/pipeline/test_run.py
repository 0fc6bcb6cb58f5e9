"""The whole job on a local Ray: pairs in, both orders asked, tables out."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from judgebias.cli import run_app
from tests.pipeline.run_files import run_file, same_tables, write_pairs

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]

FIRST = {"name": "first", "provider": "simulated", "quality": 0, "noise": 0, "offset": 1}
LENGTH = {"name": "length", "provider": "simulated", "quality": 0, "noise": 0, "length_weight": 1}
NOISY = {"name": "noisy", "provider": "simulated", "offset": 0.5, "tie_width": 0.3}


def summary_of(out: Path, judge: str) -> dict[str, object]:
    rows = json.loads((out / "summary.json").read_text())
    return next(row for row in rows if row["judge"] == judge and row["task"] == "ALL")


def run(folder: Path, name: str, **settings: object) -> Path:
    file = run_file(folder / f"{name}.toml", out=name, **settings)
    assert run_app(["run", str(file)]) == 0
    return folder / name


def test_planted_judges_are_found_and_swapping_the_input_changes_no_position_figure(tmp_path):
    judges = [FIRST, LENGTH, NOISY]
    pairs = write_pairs(tmp_path / "pairs.jsonl", 300)
    out = run(tmp_path, "out", pairs=pairs, judges=judges)
    first, length = summary_of(out, "first"), summary_of(out, "length")
    assert (first["stuck_first"], first["n_complete"]) == (300, 300)
    assert (first["consistency"], first["position_bias"]) == (0.0, "first")
    assert length["consistency"] == 1.0
    noisy = summary_of(out, "noisy")

    exchanged = write_pairs(tmp_path / "swapped.jsonl", 300, swapped=True)
    other = summary_of(run(tmp_path, "swapped", pairs=exchanged, judges=[NOISY]), "noisy")
    position = ("consistency", "lean_first", "lean_second", "p_position", "offset", "swing")
    assert [noisy[name] for name in position] == [other[name] for name in position]
    assert (noisy["wins_a"], noisy["wins_b"]) == (other["wins_b"], other["wins_a"])


def test_repeats_and_workers_and_blocks_change_no_byte(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.jsonl", 200)
    outs = [
        run(
            tmp_path,
            f"out{workers}-{block}",
            pairs=pairs,
            judges=[NOISY],
            repeats=2,
            engine_workers=workers,
            engine_pairs_per_block=block,
        )
        for workers, block in ((1, 64), (2, 16))
    ]
    same_tables(*outs)
    assert (outs[0] / "tables" / "repeats.csv").read_text().count("\n") == 1 + 2 * 4


def test_an_extension_asks_only_what_is_new_and_a_changed_judge_is_refused(tmp_path, capsys):
    pairs = write_pairs(tmp_path / "pairs.jsonl", 60)
    run(tmp_path, "out", pairs=pairs, judges=[NOISY])
    write_pairs(pairs, 80)
    run(tmp_path, "out", pairs=pairs, judges=[NOISY, LENGTH])
    said = capsys.readouterr().err
    assert "20 rows were added to the input" in said
    assert "200 calls to ask of 2 judges, 120 are on disk" in said

    changed = {**NOISY, "offset": 0.9}
    file = run_file(tmp_path / "out.toml", pairs=pairs, judges=[changed], out="out")
    assert run_app(["run", str(file)]) == 2
    assert "offset: 0.5 -> 0.9" in capsys.readouterr().err


def test_a_function_judge_lies_beside_the_run_file(tmp_path):
    code = (
        "def verdict(question, first, second):\n    return 1 if len(first) > len(second) else 2\n"
    )
    (tmp_path / "beside_run_file.py").write_text(code)
    judge = {"name": "mine", "provider": "function", "call": "beside_run_file:verdict"}
    pairs = write_pairs(tmp_path / "pairs.jsonl", 40)
    row = summary_of(run(tmp_path, "out", pairs=pairs, judges=[judge]), "mine")
    assert (row["consistency"], row["n_failed"]) == (1.0, 0)


def test_a_smaller_sample_is_part_of_a_larger_one(tmp_path, capsys):
    pairs = write_pairs(tmp_path / "pairs.jsonl", 200)
    file = run_file(tmp_path / "run.toml", pairs=pairs, judges=[NOISY], out="out")
    assert run_app(["run", str(file), "--limit", "30"]) == 0
    assert summary_of(tmp_path / "out", "noisy")["n_pairs"] == 30
    assert run_app(["run", str(file), "--limit", "50"]) == 0
    assert "40 calls to ask of 1 judge, 60 are on disk" in capsys.readouterr().err
    assert summary_of(tmp_path / "out", "noisy")["n_pairs"] == 50


def test_failures_are_rows_with_a_kind_and_totals_add_up(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.jsonl", 100)
    flaky = {**NOISY, "failure_rate": 0.2}
    file = run_file(tmp_path / "run.toml", pairs=pairs, judges=[flaky], out="out")
    assert run_app(["run", str(file)]) == 3
    row = summary_of(tmp_path / "out", "noisy")
    ended = row["n_first"] + row["n_second"] + row["n_tie"] + row["n_failed"]
    assert row["n_calls"] == 200 == ended
    assert row["n_pairs"] == row["n_complete"] + row["n_one_failed"] + row["n_both_failed"]
    assert row["n_failed"] > 0
    calls = pl.read_parquet(tmp_path / "out" / "calls.parquet")
    assert set(calls.filter(pl.col("slot").is_null())["failure"]) == {"server"}


REPLAYED = [
    ("faireval", 1, 64),
    ("llmbar", 2, 2048),
    ("autoj", 1, 2048),
    ("prd_vicuna80", 2, 64),
    ("judgebench", 2, 2048),
]


@pytest.mark.parametrize(("name", "workers", "block"), REPLAYED, ids=[s[0] for s in REPLAYED])
def test_replay_through_ray_gives_the_bytes_of_summarize(tmp_path, shared, name, workers, block):
    source = shared / "data" / name
    records = source / "verdicts.jsonl"
    names = sorted(pl.read_ndjson(records, schema={"judge": pl.String})["judge"].unique())
    judges = [{"name": judge, "provider": "replay", "path": str(records)} for judge in names]
    file = run_file(
        tmp_path / "run.toml",
        pairs=source / "pairs.jsonl",
        judges=judges,
        out="run",
        cluster="pair",
        engine_workers=workers,
        engine_pairs_per_block=block,
    )
    assert run_app(["run", str(file)]) in (0, 3)
    recorded = ["summarize", str(records), "--cluster", "pair", "--out", str(tmp_path / "sum")]
    assert run_app(recorded) == 0
    for kind in ("csv", "json", "parquet", "md"):
        summary = f"summary.{kind}"
        assert (tmp_path / "run" / summary).read_bytes() == (
            tmp_path / "sum" / summary
        ).read_bytes()
