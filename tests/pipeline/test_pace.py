"""Limits and budgets of whole runs on Ray, by what the server counts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import polars as pl
import pytest
import ray
from ray.util import list_named_actors

from judgebias.config.runfile import check_run
from judgebias.journal import read_journal
from judgebias.pipeline.prepare import prepared
from judgebias.pipeline.run import ask_missing
from judgebias.progress import Progress
from judgebias.rundir import RunDir
from tests.pipeline.run_files import (
    finish,
    run_file,
    start,
    wait_for_rows,
    write_pairs,
)
from tests.server import Limit, Rule, ServerProcess, Setup, faults

pytestmark = pytest.mark.ray


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "server").mkdir()
    return tmp_path


@pytest.fixture
def limited(folder: Path) -> Iterator[ServerProcess]:
    limits = {
        "slow": Limit(requests_per_minute=60, burst_s=2.0),
        "fast": Limit(requests_per_minute=6000),
    }
    with ServerProcess(folder / "server", Setup(limits=limits, latency_s=0.02)) as server:
        yield server


def judge(server: ServerProcess, name: str, **more: object) -> dict[str, object]:
    url = server.openai_url
    return {"name": name, "model": name, "provider": "openai", "base_url": url, **more}


def requests(server: ServerProcess) -> int:
    return cast("int", server.bill()["requests"])


def spent(out: Path) -> int:
    """Count what the next start will count."""
    rows = read_journal(out / "journal", columns=("attempts",)).table
    return int(rows["attempts"].sum()) + RunDir(out).manifest().unrecorded_requests


def busiest(journal: Path) -> int:
    """Find the process of the worker that has written most."""
    segment = max(journal.glob("*.seg"), key=lambda path: path.stat().st_size)
    return int(segment.stem.split("-")[2])


def kill_pacers() -> int:
    names = [name for name in list_named_actors() if name.startswith("judgebias-pacer-")]
    for name in names:
        ray.kill(ray.get_actor(name), no_restart=False)
    return len(names)


@pytest.mark.usefixtures("local_ray")
def test_each_judge_runs_at_its_own_limit_and_outlives_its_pacer(
    folder: Path, limited: ServerProcess
) -> None:
    write_pairs(folder / "pairs.jsonl", 10)
    judges = [
        judge(limited, "slow", requests_per_minute=60),
        judge(limited, "fast", requests_per_minute=6000),
    ]
    run = {"pairs": "pairs.jsonl", "out": "out", "judges": judges}
    run["engine"] = {"workers": 2, "pairs_per_block": 2}
    killed: list[int] = []

    def watch(progress: Progress) -> None:
        if progress.counters.get("slow", {}).get("verdicts", 0) >= 8 and not killed:
            killed.append(kill_pacers())

    with prepared(check_run(run, where="the test"), base=folder) as ready:
        end = ask_missing(ready, watch)
    assert (end.asked, end.pending, end.halted, killed) == (40, 0, {}, [2])
    bill = limited.bill()
    by_model, limits = bill["by_model"], bill["limits"]
    assert isinstance(by_model, dict)
    assert isinstance(limits, dict)
    assert [limits[name]["refused"] for name in ("slow", "fast")] == [0, 0]
    assert [by_model[name]["requests"] for name in ("slow", "fast")] == [20, 20]
    slow, fast = by_model["slow"], by_model["fast"]
    # Twenty calls at sixty a minute: the fast judge was not held by the slow one.
    assert slow["last_time"] - slow["first_time"] >= 19
    assert fast["last_time"] < slow["last_time"] - 5


@pytest.mark.parametrize("dies", [False, True])
def test_a_budget_holds_for_all_workers_and_a_larger_one_goes_on(folder: Path, dies: bool) -> None:
    latency_s = 0.4 if dies else 0.02
    setup = Setup(rules=(Rule(action=faults.SERVER_ERROR, probability=0.2),), latency_s=latency_s)
    pairs = write_pairs(folder / "pairs.jsonl", 100)
    with ServerProcess(folder / "server", setup) as server:
        settings = {"pairs": pairs, "judges": [judge(server, "j", max_in_flight=16)], "out": "out"}
        run = run_file(folder / "run.toml", **settings, engine_workers=2, engine_pairs_per_block=16)
        whole = run.read_text()
        run.write_text(f"{whole}[budget]\nmax_calls = 100\n")
        process = start(run, "--yes")
        if dies:
            wait_for_rows(folder / "out" / "journal", 10, process)
            os.kill(busiest(folder / "out" / "journal"), signal.SIGKILL)
        code, said = finish(process)
        assert code == 4, said
        assert "the report is partial" in said
        assert ("a worker process died" in said) == dies
        # Of what a dead worker had cleared, a few requests may not have been sent.
        assert (85 if dies else 98) <= requests(server) <= 100
        assert requests(server) <= spent(folder / "out") <= 100
        row = pl.read_csv(folder / "out" / "summary.csv").filter(pl.col("task") == "ALL")
        assert row["n_complete"].item() + row["n_one_failed"].item() >= 30
        assert row["n_pairs"].item() == 100

        run.write_text(f"{whole}[budget]\nmax_calls = 1000\n")
        code, said = finish(start(run, "--yes"))
        assert code in (0, 3), said
        bill = server.bill()
        assert bill["distinct"] == 200
        # Answers that a dead worker had received and not written down are bought again.
        assert cast("int", bill["duplicates_after_answer"]) <= (32 if dies else 0)


def test_dollars_without_a_price_are_refused_before_anything_is_asked(folder: Path) -> None:
    pairs = write_pairs(folder / "pairs.jsonl", 4)
    with ServerProcess(folder / "server") as server:
        run = run_file(folder / "run.toml", pairs=pairs, judges=[judge(server, "j")], out="out")
        run.write_text(run.read_text() + "[budget]\nmax_usd = 1.0\n")
        code, said = finish(start(run, "--yes"))
        assert code == 2, said
        assert "the price of j is unknown" in said
        assert server.bill()["requests"] == 0
