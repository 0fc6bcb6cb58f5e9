"""The stop rule on a local Ray: a judge that is known well enough is asked no further."""

from __future__ import annotations

import polars as pl
import pytest

from judgebias.cli import run_app
from tests.pipeline.run_files import run_file, write_pairs

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]

SLOW = {"provider": "simulated", "latency_s": 0.05, "max_in_flight": 16}


def test_a_run_stops_buying_judge_by_judge_and_then_goes_on_without_the_rule(tmp_path, capsys):
    judges = [
        {**SLOW, "name": "leaning", "offset": 1.5},
        {**SLOW, "name": "quick", "latency_s": 0.0, "noise": 1.0},
    ]
    pairs = write_pairs(tmp_path / "pairs.jsonl", 1200)
    settings = {"pairs": pairs, "judges": judges, "cluster": "pair", "out": "out"}
    run = run_file(tmp_path / "run.toml", **settings)
    text = run.read_text(encoding="utf-8")
    run.write_text(text.replace("[engine]", "[stop]\ndecided = true\n[engine]"), encoding="utf-8")
    assert run_app(["run", str(run)]) == 0
    said = capsys.readouterr().err
    assert "leaning was not asked further: it leans to the first slot" in said
    assert "pending" not in said
    rows = pl.read_csv(tmp_path / "out" / "tables" / "stopping.csv")
    leaning, quick = rows.iter_rows(named=True)
    assert 0 < leaning["n_calls"] < 2400
    assert leaning["n_calls_saved"] == 2400 - leaning["n_calls"]
    assert leaning["p_anytime"] <= leaning["alpha"] == 0.025
    assert (quick["n_calls"], quick["n_calls_saved"]) == (2400, 0)

    run_file(run, **settings)
    assert run_app(["run", str(run)]) == 0
    assert f"{leaning['n_calls_saved']:,} calls to ask" in capsys.readouterr().err
    summary = pl.read_parquet(tmp_path / "out" / "summary.parquet").filter(pl.col("task") == "ALL")
    assert summary["n_complete"].to_list() == [1200, 1200]
