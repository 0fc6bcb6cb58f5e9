"""A run with a stop rule, with the asking done in this process."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from judgebias.cli import run_app
from judgebias.config import load_run_file
from judgebias.pipeline.prepare import examined
from judgebias.pipeline.stopping import StopWatch
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, write_pairs

LEANING = {"name": "leaning", "provider": "simulated", "offset": 2.0, "tie_width": 0.3}
STEADY = {"name": "steady", "provider": "simulated", "quality": 6.0}
Read = pytest.CaptureFixture[str]
Row = dict[str, str]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "pairs.jsonl", 600)


def stopping_run(folder: Path, pairs: Path, *judges: dict[str, object], stop: str = "") -> Path:
    file = run_file(folder / "run.toml", pairs=pairs, judges=judges, out="out")
    text = file.read_text(encoding="utf-8")
    if stop:
        file.write_text(text.replace("[engine]", f"[stop]\n{stop}\n[engine]"), encoding="utf-8")
    return file


def table(folder: Path) -> list[Row]:
    with (folder / "out" / "tables" / "stopping.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_stopped_run_asks_no_more_and_goes_on_when_the_rule_is_taken_out(
    pairs: Path, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    run = stopping_run(tmp_path, pairs, LEANING, stop="decided = true")
    asking.most = 240
    asking.end.interrupted = True
    assert run_app(["run", str(run)]) == 4
    stopped = table(tmp_path)[0]
    assert stopped["reason"] == "it leans to the first slot"
    assert int(stopped["n_calls_saved"]) == 960

    # The bounds allow it already: the same command asks nobody and is done.
    asking.asked.clear()
    capsys.readouterr()
    assert run_app(["run", str(run)]) == 0
    said = capsys.readouterr().err
    assert asking.asked == []
    assert "leaning is not asked: it leans to the first slot" in said
    assert "the stop rule holds for every judge: nothing to ask" in said
    assert table(tmp_path)[0] == stopped
    report = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert "stopped, since it leans to the first slot; 240 of 1,200 calls were asked" in report
    assert "960 (80.0%) were saved" in report

    stopping_run(tmp_path, pairs, LEANING)
    asking.most, asking.end.interrupted = None, False
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 960
    assert not (tmp_path / "out" / "tables" / "stopping.csv").exists()


def test_a_run_to_the_end_prints_anytime_figures_and_that_nothing_was_saved(
    pairs: Path, asking: Asking, tmp_path: Path
) -> None:
    run = stopping_run(tmp_path, pairs, STEADY, stop="decided = true")
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 1200
    row = table(tmp_path)[0]
    assert (row["reason"], row["n_calls_saved"]) == ("", "0")
    assert int(row["n_settled_pairs"]) == 600
    assert float(row["swing_low"]) <= float(row["swing"]) <= float(row["swing_high"])
    report = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert "steady: the bounds did not allow to stop; nothing was saved" in report


@pytest.mark.slow
def test_the_error_is_shared_and_one_judge_stops_without_the_other(
    pairs: Path, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    run = stopping_run(tmp_path, pairs, LEANING, STEADY, stop="decided = true")
    asking.most = 480
    asking.end.interrupted = True
    assert run_app(["run", str(run)]) == 4
    # The judges take turns, so both have had the first waves.
    assert {row["alpha"] for row in table(tmp_path)} == {"0.025"}
    asking.asked.clear()
    asking.most, asking.end.interrupted = None, False
    capsys.readouterr()
    assert run_app(["run", str(run)]) == 0
    assert set(asking.asked) == {"steady"}
    assert "calls are pending" not in capsys.readouterr().err
    saved = {row["judge"]: int(row["n_calls_saved"]) for row in table(tmp_path)}
    assert saved["leaning"] > 0
    assert saved["steady"] == 0


def test_a_watch_concludes_each_judge_once_by_what_is_on_disk(
    pairs: Path, asking: Asking, tmp_path: Path
) -> None:
    run = stopping_run(tmp_path, pairs, LEANING, STEADY, stop="swing_half_width = 0.2")
    ready = examined(load_run_file(run), base=tmp_path)
    told: list[str] = []
    nothing = StopWatch(ready.plan, ready.survey, ready.missing, told.append)
    nothing.look()
    assert told == []
    asking.most = 900
    asking.end.interrupted = True
    run_app(["run", str(run)])
    ready = examined(load_run_file(run), base=tmp_path)
    watch = StopWatch(ready.plan, ready.survey, ready.expected, told.append)
    watch.look()
    watch.look()
    assert sorted(told) == sorted(watch.concluded) == sorted(ready.concluded)
    assert "steady" in told
    assert set(watch.concluded.values()) == {"its swing is known to 0.2 either way"}
    assert all(ready.missing[judge] == 0 for judge in told)


def test_every_call_is_in_one_wave_and_waves_go_out_in_order(pairs: Path, tmp_path: Path) -> None:
    run = stopping_run(tmp_path, pairs, LEANING, STEADY, stop="decided = true")
    ready = examined(load_run_file(run), base=tmp_path)
    assert sum(block.n_calls for block in ready.blocks) == 2400
    waves = [block.wave for block in ready.blocks]
    assert None not in waves
    assert waves == sorted(waves, key=lambda wave: -1 if wave is None else wave)
    assert len(set(waves)) > 5
    without = examined(load_run_file(stopping_run(tmp_path, pairs, LEANING)), base=tmp_path)
    assert {block.wave for block in without.blocks} == {None}
