from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from judgebias.cli import run_app
from judgebias.cli.status import _pace, read_status
from judgebias.rundir import RunDir
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, write_pairs

JUDGES = [
    {"name": "calm", "provider": "simulated"},
    {"name": "flaky", "provider": "simulated", "failure_rate": 0.5},
]
Read = pytest.CaptureFixture[str]


@pytest.fixture
def out(tmp_path: Path, asking: Asking, capsys: Read) -> Path:
    """A run that stopped after 70 of 80 calls."""
    pairs = write_pairs(tmp_path / "pairs.jsonl", 20)
    file = run_file(tmp_path / "run.toml", pairs=pairs, judges=JUDGES, out="out")
    asking.most = 70
    assert run_app(["run", str(file)]) == 4
    capsys.readouterr()
    return tmp_path / "out"


def test_expected_is_verdicts_and_failed_and_pending(out: Path) -> None:
    calm, flaky = read_status(RunDir(out)).judges
    assert (calm.judge, calm.expected, calm.verdicts, calm.failed) == ("calm", 40, 40, 0)
    assert (flaky.judge, flaky.expected, flaky.pending) == ("flaky", 40, 10)
    assert flaky.verdicts + flaky.failed == 30
    assert flaky.failures == {"server": flaky.failed}
    assert flaky.failed > 0
    # No price is known, and unknown is not 0.
    assert (calm.cost_usd, flaky.cost_usd) == (None, None)


NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def replies(*seconds_ago: float) -> pl.Series:
    times = [NOW - timedelta(seconds=ago) for ago in seconds_ago]
    return pl.Series("time", times, pl.Datetime("us", "UTC"))


@pytest.mark.parametrize(
    ("times", "start", "rate"),
    [
        # The first reply starts the clock: four more in ten seconds.
        (replies(10, 8, 6, 4, 2), 30, 4 / 10),
        (replies(2, 10, 4, 8, 6), 30, 4 / 10),
        # An old start: the last minute alone.
        (replies(300, 200, 100, 50, 20, 10), 400, 3 / 60),
        # Replies of an earlier start a moment ago are not this start's.
        (replies(50, 45, 40, 10, 5), 20, 1 / 10),
        # It has stood still for longer than a minute.
        (replies(300, 200), 400, 0.0),
        (replies(10), 30, 0.0),
        # Too early to tell.
        (replies(), 30, None),
        (replies(300, 200), 30, None),
        (replies(0.5, 0.4, 0.1), 30, None),
    ],
)
def test_a_rate_is_of_this_start_and_of_the_time_it_covers(
    times: pl.Series, start: float, rate: float | None
) -> None:
    started = (NOW - timedelta(seconds=start)).isoformat()
    assert _pace(times, started, NOW) == rate


def clocked(monkeypatch: pytest.MonkeyPatch, *, step_s: float) -> None:
    """Let replies arrive one after the other, the last of 70 just now."""
    now = datetime.now(UTC).timestamp()
    times = iter(round((now + (number - 69) * step_s) * 1e6) for number in range(70))
    monkeypatch.setattr("judgebias.journal.rows.now_us", lambda: next(times))


def started(out: Path, *, seconds_ago: float) -> None:
    run = RunDir(out)
    at = (datetime.now(UTC) - timedelta(seconds=seconds_ago)).isoformat(timespec="seconds")
    run.write_manifest(run.manifest().model_copy(update={"started": at}))


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The same run, with a reply each 0.2 s."""
    clocked(monkeypatch, step_s=0.2)
    out = request.getfixturevalue("out")
    started(out, seconds_ago=3600)
    return out


def test_a_young_run_has_the_rate_of_its_own_time(paced: Path, capsys: Read) -> None:
    last = pl.read_parquet(paced / "calls.parquet")["time"].max()
    assert isinstance(last, datetime)
    with RunDir(paced).owned():
        status = read_status(RunDir(paced), now=last)
        assert run_app(["status", str(paced)]) == 0
    assert status.calls_per_s == pytest.approx(5, rel=1e-3)
    assert status.seconds_left == pytest.approx(10 / 5, rel=1e-3)
    assert " calls/s, " in capsys.readouterr().out


def test_a_stopped_run_has_no_rate(paced: Path, capsys: Read) -> None:
    status = read_status(RunDir(paced))
    assert (status.running, status.calls_per_s) == ("", None)
    assert status.seconds_left == pytest.approx(2, rel=1e-3)
    assert run_app(["status", str(paced)]) == 0
    said = capsys.readouterr().out
    assert "calls/s" not in said
    assert said.endswith("at the rate before it stopped, what is pending takes 2 s\n")


def test_the_lines_and_the_json_say_the_same(out: Path, capsys: Read) -> None:
    assert run_app(["status", str(out)]) == 0
    first, calm, flaky = capsys.readouterr().out.splitlines()
    assert first == f"{out}: not running"
    assert calm == "calm: 40 calls = 40 verdicts + 0 failed + 0 pending; cost unknown"
    judges = read_status(RunDir(out)).judges
    n = judges[1].failed
    assert flaky.startswith(f"flaky: 40 calls = {30 - n} verdicts + {n} failed ({n} server) + 10")
    assert run_app(["status", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["judges"] == [asdict(judge) for judge in judges]


def test_status_changes_nothing(out: Path) -> None:
    def files() -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in out.rglob("*") if p.is_file()}

    before = files()
    assert run_app(["status", str(out)]) == 0
    assert files() == before


def test_a_run_that_is_held_says_by_whom(out: Path) -> None:
    with RunDir(out).owned():
        assert read_status(RunDir(out)).running.startswith("host ")


def test_what_is_used_of_a_budget_is_told(tmp_path: Path, asking: Asking, capsys: Read) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 20)
    free = {**JUDGES[0], "price": {"input": 0.0, "output": 0.0}}
    file = run_file(tmp_path / "run.toml", pairs=pairs, judges=[free], out="out")
    file.write_text(f"{file.read_text()}[budget]\nmax_usd = 2.0\nmax_calls = 100\n")
    asking.most = 30
    assert run_app(["run", str(file)]) == 4
    capsys.readouterr()
    assert run_app(["status", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    # A price of nothing is known, and is no unknown price.
    assert "10 pending; cost 0.0000 USD, 0.0000 at the end" in said
    assert "budget: 30 of 100 requests are used, 0.0000 of 2.00 USD are spent\n" in said
