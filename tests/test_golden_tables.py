"""The command itself gives the known answers: agreement, panel, ranking and length of one set."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from judgebias.cli import run_app

SET = "prd_vicuna80"


@pytest.fixture(scope="module")
def tables(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out, data = tmp_path_factory.mktemp("tables"), shared / "data" / SET
    pairs, records = str(data / "pairs.jsonl"), str(data / "verdicts.jsonl")
    assert run_app(["summarize", records, "--pairs", pairs, "--out", str(out)]) == 0
    return out / "tables"


def known(shared: Path, name: str) -> dict[str, object]:
    return json.loads((shared / "golden" / f"{name}.json").read_text())


@pytest.mark.slow
def test_agreement_and_panel(shared: Path, tables: Path) -> None:
    golden = known(shared, "agreement")
    table = pl.read_csv(tables / "agreement.csv").filter(pl.col("comparison") == "judges")
    for case in golden["pairwise"]:
        a, b = case["judges"]
        row = table.row(
            by_predicate=(pl.col("rater_a") == a) & (pl.col("rater_b") == b), named=True
        )
        assert (row["n"], row["kappa"]) == (case["n"], pytest.approx(case["kappa"], abs=1e-9))
    panel = pl.read_csv(tables / "panel.csv").row(
        by_predicate=pl.col("panel") == "majority", named=True
    )
    wanted = golden["panel"]
    counts = [panel[name] for name in ("n_pairs", "wins_a", "wins_b", "ties", "n_gold")]
    assert counts == [wanted[name] for name in ("n", "A", "B", "tie", "n_gold")]
    assert panel["kappa"] == pytest.approx(wanted["kappa_gold"], abs=1e-9)
    verdicts = pl.read_parquet(tables.parent / "verdicts.parquet")
    assert verdicts.filter(pl.col("judge") == "panel")["final"].value_counts().sort("final")[
        "count"
    ].to_list() == [wanted["A"], wanted["B"], wanted["tie"]]


def test_ranking(shared: Path, tables: Path) -> None:
    table = pl.read_csv(tables / "ranking.csv")
    cases = [case for case in known(shared, "ranking")["cases"] if case["set"] == SET]
    assert cases
    for case in cases:
        rows = table.filter(pl.col("judge") == case["judge"])
        strength = dict(rows.select("model", "strength").iter_rows())
        assert strength == pytest.approx(case["strength"], abs=1e-6)
        assert rows["order_effect_attenuated"][0] == pytest.approx(case["offset"], abs=1e-6)


def test_length(shared: Path, tables: Path) -> None:
    table = pl.read_csv(tables / "length.csv").filter(pl.col("task") == "ALL")
    cases = [case for case in known(shared, "length")["cases"] if case["set"] == SET]
    assert cases
    for case in cases:
        row = table.row(by_predicate=pl.col("judge") == case["judge"], named=True)
        for name in ("slope", "mcfadden_r2", "lc_win_rate_a", "excess"):
            assert row[name] == pytest.approx(case[name], rel=1e-6)
