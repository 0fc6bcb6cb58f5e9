from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from judgebias.cli import run_app
from judgebias.cli.status import read_status
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


def test_the_rate_of_the_last_minute_gives_the_end(out: Path) -> None:
    status = read_status(RunDir(out))
    assert status.running == ""
    assert status.calls_per_s == 70 / 60
    assert status.seconds_left == pytest.approx(10 / (70 / 60))


def test_the_lines_and_the_json_say_the_same(out: Path, capsys: Read) -> None:
    assert run_app(["status", str(out)]) == 0
    first, calm, flaky, rate = capsys.readouterr().out.splitlines()
    assert first == f"{out}: not running"
    assert calm == "calm: 40 calls = 40 verdicts + 0 failed + 0 pending; cost unknown"
    judges = read_status(RunDir(out)).judges
    n = judges[1].failed
    assert flaky.startswith(f"flaky: 40 calls = {30 - n} verdicts + {n} failed ({n} server) + 10")
    assert rate == "1.2 calls/s, 9 s left"
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
