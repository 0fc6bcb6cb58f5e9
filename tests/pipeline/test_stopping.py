"""A run that is killed or interrupted goes on with the same command and ends in the same bytes."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from judgebias.journal import first_wins, read_journal
from judgebias.rundir import RunDir
from tests.pipeline.run_files import (
    finish,
    kill,
    ray_process,
    rows_of,
    run_file,
    same_tables,
    start,
    wait_for_rows,
    write_pairs,
)

pytestmark = pytest.mark.ray

SLOW = {"provider": "simulated", "latency_s": 0.05, "max_in_flight": 10, "tie_width": 0.3}
JUDGES = [{**SLOW, "name": "one"}, {**SLOW, "name": "two", "offset": 0.5, "failure_rate": 0.02}]


@pytest.fixture
def runs(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.jsonl", 900)
    settings = {"pairs": pairs, "judges": JUDGES, "engine_pairs_per_block": 128}
    return [run_file(tmp_path / f"{n}.toml", out=n, **settings) for n in ("calm", "cut")]


def until_complete(run):
    """Run until no call is left without a verdict: each start asks the failed ones again."""
    for _ in range(4):
        code, said = finish(start(run))
        if code == 0:
            return
        assert code == 3, said
    raise AssertionError(said)


def test_kill_and_interrupt_and_the_same_command_end_in_the_same_bytes(runs, tmp_path):
    calm, cut = runs
    until_complete(calm)
    out = tmp_path / "cut"

    process = start(cut)
    wait_for_rows(out / "journal", 300, process)
    kill(process)
    held = len(first_wins(read_journal(out / "journal").table)[0])
    assert 300 <= held < 3600

    process = start(cut)
    wait_for_rows(out / "journal", held + 300, process)
    assert RunDir(out).owner().startswith("host ")
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert code == 4, said
    assert "interrupted" in said
    assert "calls are pending; the same command goes on from here" in said

    process = start(cut)
    wait_for_rows(out / "journal", rows_of(out / "journal") + 100, process)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    code, said = finish(process)
    assert code == 130, said

    process = start(cut)
    wait_for_rows(out / "journal", rows_of(out / "journal") + 100, process)
    ray_process(process, "raylet").kill()
    code, said = finish(process)
    assert code == 4, said
    assert "Ray was lost: the raylet of this machine has ended" in said

    until_complete(cut)
    same_tables(tmp_path / "calm", out)
    # No verdict was asked for twice, but for what was in flight at each of three
    # violent ends: ten of each judge.
    _, extra = first_wins(read_journal(out / "journal").table)
    assert extra.filter(extra["slot"].is_not_null()).height <= 60


def test_a_closed_terminal_and_a_killed_worker_leave_the_run_complete(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.jsonl", 900)
    settings = {"pairs": pairs, "judges": JUDGES[:1], "engine_pairs_per_block": 128}
    run = run_file(tmp_path / "run.toml", out="out", **settings)
    process = start(run)
    wait_for_rows(tmp_path / "out" / "journal", 200, process)
    # A closed terminal on the way stops nothing.
    process.send_signal(signal.SIGHUP)
    ray_process(process, "MapWorker").kill()
    code, said = finish(process)
    assert code == 0, said
    assert "a worker process died (1 so far); another takes its blocks" in said
    assert "pending" not in said
    calls, extra = first_wins(read_journal(tmp_path / "out" / "journal").table)
    assert calls.height == 1800
    # Ten calls were in flight at most when the worker was killed.
    assert extra.height <= 10


LETHAL = """
import os

def judge(first, second):
    if "answer A 11 " in first:
        os._exit(9)
    return "first"
"""


def test_a_call_that_kills_its_worker_each_time_ends_as_a_failure(tmp_path):
    pairs = write_pairs(tmp_path / "pairs.jsonl", 60)
    (tmp_path / "lethal.py").write_text(LETHAL, encoding="utf-8")
    judge = {"provider": "function", "name": "f", "call": "lethal:judge", "max_tries_total": 2}
    settings = {"pairs": pairs, "judges": [judge], "engine_workers": 2}
    run = run_file(tmp_path / "run.toml", out="out", **settings)
    code, said = finish(start(run), timeout=300)
    assert code == 3, said
    assert "1 call ended without a verdict" in said
    calls, _ = first_wins(read_journal(tmp_path / "out" / "journal").table)
    assert calls.height == 120
    failed = calls.filter(calls["slot"].is_null()).row(0, named=True)
    assert (failed["pair_id"], failed["order"]) == ("00011", "ab")
    assert (failed["failure"], failed["attempts"]) == ("function_error", 2)
    # The user's stdout is the table's: what Ray says of dead workers is not on it.
    assert "raylet" not in said

    code, said = finish(start(run))
    assert code == 3, said
    assert "all 120 calls of 1 judge are on disk" in said


def test_a_signal_before_the_first_call_is_a_stop_as_any_other(runs):
    calm, _ = runs
    process = start(calm)
    said = next(line for line in process.stderr if "calls to ask" in line)
    process.send_signal(signal.SIGTERM)
    code, later = finish(process)
    assert code == 4, said + later
    assert "interrupted" in later
    assert "the same command goes on from here" in later
    assert "Traceback" not in later


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1.4 MB of its own: the index of the pairs takes 1.1."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1420k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("NOT CHECKED: this user may not mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_the_sending_and_loses_nothing_that_is_on_it(tmp_path, small_disk):
    pairs = write_pairs(tmp_path / "pairs.jsonl", 20_000)
    judge = {"provider": "simulated", "name": "quick", "tie_width": 0.3}
    settings = {"pairs": pairs, "judges": [judge], "engine_grace_s": 3}
    run = run_file(tmp_path / "run.toml", out=str(small_disk / "out"), **settings)
    code, said = finish(start(run))
    assert code == 4, said
    assert "No space left on device" in said
    held = rows_of(small_disk / "out" / "journal")
    assert 0 < held < 40_000

    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    code, said = finish(start(run))
    assert code == 0, said
    assert f"{40_000 - held:,} calls to ask" in said
    assert rows_of(small_disk / "out" / "journal") == 40_000


def test_a_second_run_on_the_same_directory_is_refused(runs, tmp_path):
    calm, _ = runs
    process = start(calm)
    wait_for_rows(tmp_path / "calm" / "journal", 1, process)
    code, said = finish(start(calm))
    assert code == 2
    assert "is in use: host" in said
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == 4
