"""A dozen pairs before a real model: a weak judge that goes by the slot, and the table says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from judgebias.cli import run_app
from tests.pipeline.run_files import run_file
from tests.real.dozen import write_dozen

# It is asked by a whole run, so it needs Ray as well; --quick leaves it out.
pytestmark = [pytest.mark.real, pytest.mark.ray]


@pytest.fixture(scope="module")
def out(model_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of a dozen pairs, both orders, with probabilities."""
    folder = tmp_path_factory.mktemp("run")
    judge = {
        "name": "small",
        "provider": "openai",
        "model": "gemma-3-270m",
        "base_url": model_url,
        "verdict": "json_schema",
        "soft": True,
        "temperature": 0.0,
        "max_tokens": 200,
        "max_in_flight": 1,
        "price": {"input": 0.0, "output": 0.0},
    }
    pairs = write_dozen(folder / "pairs.jsonl")
    run = run_file(folder / "run.toml", pairs=pairs, judges=[judge], out="out", engine_workers=1)
    environment = {**os.environ, "RAY_ADDRESS": "local"}
    asked = subprocess.run(
        [sys.executable, "-m", "judgebias", "run", str(run)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=600,
    )
    # A reply that was cut off or rambles is a failure with its kind, and nothing to be hidden.
    assert asked.returncode in (0, 3), asked.stdout + asked.stderr
    return folder / "out"


def whole(out: Path) -> dict[str, object]:
    """The ALL row of the summary."""
    summary = pl.read_csv(out / "summary.csv").filter(pl.col("task") == "ALL")
    return summary.row(0, named=True)


def number(row: dict[str, object], name: str) -> float:
    """A figure of the row; one that is not available fails the test."""
    return float(str(row[name]))


def test_every_call_ends_and_most_in_a_verdict(out: Path) -> None:
    row = whole(out)
    assert (row["n_pairs"], row["n_calls"], row["n_pending"]) == (12, 24, 0)
    calls = pl.read_parquet(out / "calls.parquet")
    # The server holds replies to the schema; only the budget can cut one off.
    assert set(calls["failure"].drop_nulls()) <= {"truncated"}
    assert calls["slot"].null_count() <= 4
    assert calls["cost_usd"].to_list() == [0.0] * 24


def test_the_table_shows_a_strong_preference_for_the_first_slot(out: Path) -> None:
    row = whole(out)
    assert number(row, "consistency") < 0.5
    assert number(row, "first_position_rate") > 0.65
    assert number(row, "stuck_first") > 2 * number(row, "stuck_second")
    # Shown first, either answer wins far more often. Whether a dozen pairs make it certain depends
    # on a pair or two, and so on the machine's rounding.
    assert number(row, "swing") > 0.3
    assert not str(row["position_bias"]).startswith("second")


def test_soft_verdicts_lean_to_the_same_slot(out: Path) -> None:
    row = whole(out)
    # The word tie is hardly ever among the twenty likeliest: counted, and left out of the sum.
    assert number(row, "n_soft") >= 8
    assert number(row, "n_soft") + number(row, "n_soft_bounds") == number(row, "n_complete")
    assert number(row, "offset_soft_low") > 0.0
    assert 0.0 <= number(row, "win_rate_a_soft") <= 1.0


def test_a_stuck_pair_is_shown_with_both_replies(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = pl.read_parquet(out / "verdicts.parquet")
    stuck = verdicts.filter(pl.col("cell").str.starts_with("stuck"))
    pair, cell = stuck.select("pair_id", "cell").row(0)
    assert run_app(["show", str(out), pair]) == 0
    shown = capsys.readouterr().out
    calls = pl.read_parquet(out / "calls.parquet").filter(pl.col("pair_id") == pair)
    for raw in calls["raw"]:
        assert json.loads(raw)["verdict"] == cell.removeprefix("stuck_")
        assert raw in shown
    assert f"{cell}; final verdict: tie" in shown
    assert "probabilities: first " in shown
