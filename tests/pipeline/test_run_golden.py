"""Recorded judges through the whole run, questions as clusters: the known answers by question."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from judgebias.cli import run_app
from tests.pipeline.run_files import run_file
from tests.test_golden_summaries import BY_QUESTION, compare, known

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("local_ray")]


@pytest.mark.parametrize("folder", BY_QUESTION)
def test_replay_through_ray_has_every_known_figure_and_the_bytes_of_summarize(
    tmp_path: Path, shared: Path, folder: str
) -> None:
    data = shared / "data" / folder
    records = data / "verdicts.jsonl"
    names = sorted(pl.read_ndjson(records, schema={"judge": pl.String})["judge"].unique())
    judges = [{"name": judge, "provider": "replay", "path": str(records)} for judge in names]
    pairs = data / "pairs.jsonl"
    file = run_file(tmp_path / "run.toml", pairs=pairs, judges=judges, out="run")
    assert run_app(["run", str(file)]) in (0, 3)
    golden = shared / "golden/summaries_by_question.jsonl"
    expected = known(golden, folder, records.name, repeated=False)
    compare(pl.read_parquet(tmp_path / "run" / "summary.parquet"), expected, "judge", "task")
    recorded = ["summarize", str(records), "--pairs", str(pairs), "--out", str(tmp_path / "sum")]
    assert run_app(recorded) == 0
    for kind in ("csv", "json", "parquet", "md"):
        one, other = (tmp_path / name / f"summary.{kind}" for name in ("run", "sum"))
        assert one.read_bytes() == other.read_bytes()
