from __future__ import annotations

import json
import math
import re
from pathlib import Path

import polars as pl
import pytest

from judgebias.cli import run_app
from judgebias.cli.table import print_summary

Read = pytest.CaptureFixture[str]


@pytest.fixture
def summary(tmp_path: Path, capsys: Read) -> pl.DataFrame:
    """The summary of two judges, one of which never gives a verdict."""
    records = [
        {"pair_id": str(i), "task": f"t{i % 2}", "judge": j, "order": o, "verdict": v}
        for i in range(30)
        for j, v in (("firm", "first"), ("mute", None))
        for o in ("ab", "ba")
    ]
    source = tmp_path / "verdicts.jsonl"
    source.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    out = ["--out", str(tmp_path / "out"), "--cluster", "pair"]
    assert run_app(["summarize", str(source), *out]) == 0
    capsys.readouterr()
    return pl.read_parquet(tmp_path / "out" / "summary.parquet")


def test_a_line_per_judge_and_task_with_the_figures_that_decide(
    summary: pl.DataFrame, capsys: Read
) -> None:
    print_summary(summary, as_json=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    rows = [words[:3] for words in lines if words[0] in ("firm", "mute")]
    assert rows == [
        ["firm", "t0", "15"],
        ["firm", "t1", "15"],
        ["firm", "ALL", "30"],
        ["mute", "t0", "0"],
        ["mute", "t1", "0"],
        ["mute", "ALL", "0"],
    ]


def test_what_cannot_be_measured_is_shown_as_no_number(summary: pl.DataFrame, capsys: Read) -> None:
    print_summary(summary, as_json=False)
    lines = [re.split(r"\s{2,}", line.strip()) for line in capsys.readouterr().out.splitlines()]
    mute = next(words[2:] for words in lines if words[:1] == ["mute"])
    assert mute[0] == "0"
    assert set(mute[1:]) == {"not available", "too few"}


def test_json_is_strict_json(summary: pl.DataFrame, capsys: Read) -> None:
    print_summary(summary, as_json=True)

    def refuse(word: str) -> None:
        raise AssertionError(word)

    rows = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert [(row["judge"], row["task"]) for row in rows] == summary.select("judge", "task").rows()
    assert all(not isinstance(v, float) or math.isfinite(v) for row in rows for v in row.values())
