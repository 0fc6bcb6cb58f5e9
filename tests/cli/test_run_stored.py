"""The commands on a run at s3://, with the asking done in this process."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import polars as pl
import pytest

from judgebias.cli import run_app
from judgebias.objects import ObjectStore
from judgebias.stored import StoredRunDir, open_rundir
from tests.bucket import some_id
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, same_tables, write_pairs

CALM = {"name": "calm", "provider": "simulated", "tie_width": 0.3}
FLAKY = {**CALM, "name": "flaky", "failure_rate": 0.3}
JOBS = Path(__file__).resolve().parents[2] / "jobs"
Read = pytest.CaptureFixture[str]


@pytest.fixture
def place(s3: str) -> str:
    return f"{s3}/{some_id()}/run"


@pytest.fixture
def stored(s3: str, tmp_path: Path, place: str) -> Path:
    """A run file whose pairs and run directory are on the store."""
    pairs = write_pairs(tmp_path / "pairs.jsonl", 40)
    ObjectStore(f"{s3}/input").write("pairs.jsonl", pairs)
    return run_file(
        tmp_path / "s.toml", pairs=f"{s3}/input/pairs.jsonl", judges=[CALM, FLAKY], out=place
    )


def fetched(place: str, folder: Path) -> Path:
    store = ObjectStore(place)
    for found in store.list():
        path = folder / found.name
        path.parent.mkdir(parents=True, exist_ok=True)
        store.fetch(found.name, path)
    return folder


@pytest.mark.slow
def test_a_run_there_has_the_bytes_of_a_run_here(
    stored: Path, place: str, asking: Asking, tmp_path: Path, capsys: Read
) -> None:
    here = run_file(
        tmp_path / "h.toml", pairs=tmp_path / "pairs.jsonl", judges=[CALM, FLAKY], out="here"
    )
    assert run_app(["run", str(here)]) == 3
    asking.most = 50
    assert run_app(["run", str(stored)]) == 4
    asking.most = None
    capsys.readouterr()
    assert run_app(["run", str(stored)]) == 3
    said = capsys.readouterr().err
    assert f"tables are in {place}" in said
    assert f"see {place}/tables/failures.csv" in said
    assert tmp_path.parent.name not in said
    there = fetched(place, tmp_path / "there")
    same_tables(tmp_path / "here", there)
    assert {p.name for p in there.iterdir()} >= {"run.json", "rejects.jsonl", "calls.parquet"}
    assert json.loads((there / "run.json").read_text())["epoch"] == 2


@pytest.mark.usefixtures("asking")
@pytest.mark.slow
def test_the_other_commands_read_it_too(
    stored: Path, place: str, tmp_path: Path, capsys: Read
) -> None:
    assert run_app(["run", str(stored)]) == 3
    capsys.readouterr()
    assert run_app(["status", place]) == 0
    assert f"{place}: not running" in capsys.readouterr().out
    assert run_app(["summarize", place, "--out", str(tmp_path / "tables")]) == 0
    assert (tmp_path / "tables" / "summary.csv").exists()
    before = ObjectStore(place).read("summary.csv")
    assert run_app(["summarize", place]) == 0
    assert ObjectStore(place).read("summary.csv") == before
    assert run_app(["salvage", place]) == 0
    assert "no damage" in capsys.readouterr().err
    assert run_app(["reparse", place]) == 0


@pytest.mark.usefixtures("asking")
@pytest.mark.slow
def test_tables_that_a_start_does_not_have_are_not_left_of_an_earlier_one(
    stored: Path, place: str, tmp_path: Path
) -> None:
    store = ObjectStore(place)
    assert run_app(["run", str(stored)]) == 3
    both = {found.name for found in store.list("tables/")}
    assert "tables/agreement.csv" in both
    pairs = tmp_path / "pairs.jsonl"
    assert run_app(["run", str(run_file(stored, pairs=pairs, judges=[CALM], out=place))]) == 0
    alone = {found.name for found in store.list("tables/")}
    assert alone < both
    assert "tables/agreement.csv" not in alone


@pytest.mark.usefixtures("asking")
@pytest.mark.slow
def test_a_pair_is_shown_from_the_run_file_and_from_the_run_itself(
    stored: Path, place: str, capsys: Read
) -> None:
    assert run_app(["show", str(stored), "00007"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("not asked yet") == 4
    assert not ObjectStore(place).list(), "looking leaves nothing behind"
    assert run_app(["run", str(stored)]) == 3
    capsys.readouterr()
    after: list[str] = []
    for source in (str(stored), place):
        assert run_app(["show", source, "00007", "--judge", "calm"]) == 0
        after.append(capsys.readouterr().out)
    assert after[0] == after[1]
    assert "pair 00007 of task task1" in after[0]
    assert after[0].count("\n-> ") == 2
    assert "final verdict: " in after[0]


def test_what_is_no_run_there_cannot_be_shown(s3: str, capsys: Read) -> None:
    assert run_app(["show", f"{s3}/{some_id()}", "00007"]) == 2
    assert "is not a run directory: it has no run.json" in capsys.readouterr().err


@pytest.mark.slow
def test_the_probe_there_has_the_bytes_of_a_probe_here(
    stored: Path, place: str, asking: Asking, tmp_path: Path
) -> None:
    here = run_file(
        tmp_path / "h.toml", pairs=tmp_path / "pairs.jsonl", judges=[CALM, FLAKY], out="here"
    )
    assert run_app(["probe", str(here), "--items", "12"]) == 3
    asking.asked.clear()
    asking.most = 9
    assert run_app(["probe", str(stored), "--items", "12"]) == 4
    asking.most = None
    assert run_app(["probe", str(stored), "--items", "12"]) == 3
    # A failed call is asked again by the next start.
    assert 24 <= len(asking.asked) < 33
    there = fetched(place, tmp_path / "there")
    tables = ("tables/self_pair.csv", "tables/failures.csv")
    for name in tables:
        assert (there / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    calls = [pl.read_parquet(out / "self_pair_calls.parquet") for out in (tmp_path / "here", there)]
    assert calls[0].height == calls[1].height == 24


@pytest.mark.usefixtures("asking")
@pytest.mark.slow
def test_the_jobs_reach_it_too(
    stored: Path, place: str, capsys: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job, arguments, code in (
        ("probe_self_pairs", [str(stored), "--items", "12", "--yes"], 3),
        ("judge_pairs", [str(stored), "--yes"], 3),
        ("summarize", [place], 0),
    ):
        monkeypatch.setattr(sys, "argv", [job, *arguments])
        with pytest.raises(SystemExit) as left:
            runpy.run_path(str(JOBS / f"{job}.py"), run_name="__main__")
        assert left.value.code == code
        assert capsys.readouterr().err.splitlines()[-1] == f"judgebias exit code {code}"


@pytest.mark.usefixtures("asking")
def test_tables_of_a_folder_can_go_there(tmp_path: Path, place: str) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 10)
    here = run_file(tmp_path / "h.toml", pairs=pairs, judges=[CALM], out="here")
    assert run_app(["run", str(here)]) == 0
    assert run_app(["summarize", str(tmp_path / "here"), "--out", place]) == 0
    assert (
        ObjectStore(place).read("summary.csv") == (tmp_path / "here" / "summary.csv").read_bytes()
    )


def test_a_second_run_is_refused_and_reads_nothing(
    stored: Path, place: str, asking: Asking
) -> None:
    run = open_rundir(place)
    run.prepare()
    with run.owned():
        assert run.owner()
        assert run_app(["run", str(stored)]) == 2
    assert asking.asked == []


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("s3://no-such-bucket-here/run", "cannot be used"),
        ("s3://only-a-bucket", "s3://BUCKET/PREFIX"),
        ("ftp://host/x", "s3://BUCKET/PREFIX"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_first(
    stored: Path, asking: Asking, capsys: Read, out: str, says: str
) -> None:
    assert run_app(["run", str(stored), "--out", out]) == 2
    assert says in capsys.readouterr().err
    assert asking.asked == []


def test_a_table_that_becomes_a_folder_leaves_nothing_of_the_file(place: str) -> None:
    store = ObjectStore(place)
    table = Path("verdicts.parquet")
    for number, files in enumerate(([table], [table / "1", table / "2"], [table / "2"], [table])):
        run = StoredRunDir(place)
        for path in files:
            (run.path / path).parent.mkdir(parents=True, exist_ok=True)
            (run.path / path).write_text(f"{number}")
        run.push()
        assert sorted(found.name for found in store.list()) == sorted(map(str, files))
    # A start that made no table yet removes none.
    StoredRunDir(place).push()
    assert [found.name for found in store.list()] == [str(table)]
