from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgebias.config.runfile import check_run
from judgebias.errors import ConfigError, InputError, UsageError
from judgebias.manifest import FORMAT, Manifest, check_same
from judgebias.publish import publish_text
from judgebias.rundir import RunDir

_HOLD = """
import sys
from pathlib import Path
from judgebias.rundir import RunDir
with RunDir(Path(sys.argv[1])).owned():
    print("held", flush=True)
    sys.stdin.read()
"""


def manifest(**fields: Any) -> Manifest:
    judge = {"name": "j", "provider": "simulated", "offset": 0.5}
    config = check_run({"pairs": "p", "out": "o", "judges": [judge]}, where="here")
    values: dict[str, Any] = {
        "version": "0",
        "versions": {"polars": "2"},
        "config": config,
        "identities": {"j": {"offset": 0.5, "quality": 1.0}},
        "fingerprints": {"j": "00" * 16},
        "input_fingerprint": "ab",
        "n_pairs": 3,
        "n_rejects": 1,
        "pairs_below": 2**64,
        "epoch": 1,
        "started": "2026-01-01T00:00:00+00:00",
    }
    return Manifest.model_validate({**values, **fields})


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    made = RunDir(tmp_path / "deep" / "run")
    made.prepare()
    return made


def test_the_manifest_reads_back_as_itself(run: RunDir) -> None:
    assert not run.exists
    run.write_manifest(manifest())
    assert run.exists
    assert run.manifest() == manifest()
    written = json.loads((run.path / "run.json").read_text(encoding="utf-8"))
    assert written["format"] == FORMAT
    # Defaults are written out: the file says what was run, whatever later defaults are.
    assert written["config"]["repeats"] == 1


def test_the_index_reads_back_and_nothing_temporary_stays(run: RunDir) -> None:
    index = pl.DataFrame({"pair_id": ["1"], "digest": [b"0" * 16]})
    run.write_index(index)
    run.write_manifest(manifest())
    assert run.scan_index().collect().equals(index)
    names = sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*"))
    assert names == ["journal", "journal/pairs.parquet", "run.json"]


def test_the_journal_is_for_its_owner_alone(run: RunDir) -> None:
    assert run.journal.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "is not a run directory"),
        ("{", "is not JSON"),
        ("[]", f"has format None, this judgebias reads {FORMAT}"),
        ("{}", f"has format None, this judgebias reads {FORMAT}"),
        (
            json.dumps({"format": FORMAT + 1, "what": "later"}),
            f"has format {FORMAT + 1}, this judgebias reads {FORMAT}",
        ),
        (json.dumps({"format": FORMAT}), "does not fit this judgebias"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_refused(
    run: RunDir, content: str | None, expected: str
) -> None:
    if content is not None:
        (run.path / "run.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as error:
        run.manifest()
    assert expected in str(error.value)
    assert str(run.path) in str(error.value)


def test_a_file_is_no_run_directory(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.touch()
    assert not RunDir(file).exists
    with pytest.raises(InputError, match="is not a run directory"):
        RunDir(file).manifest()


def test_a_directory_that_cannot_be_made_is_refused_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot write to the run directory") as error:
        RunDir(tmp_path / "file" / "run").prepare()
    assert "choose another" in error.value.do
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system without files")
def test_a_directory_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot write to the run directory"):
        RunDir(Path("/proc/self/run")).prepare()


def test_a_directory_that_another_process_holds_is_refused(run: RunDir) -> None:
    command = [sys.executable, "-c", _HOLD, str(run.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match=f"is in use: host .*, process {holder.pid}, since"):
            run.owned().__enter__()
        assert f"process {holder.pid}" in run.owner()
        holder.kill()
    # The death of the holder frees the directory, whatever its lock file says.
    assert run.owner() == ""
    with run.owned():
        assert f"process {os.getpid()}" in run.owner()
    assert run.owner() == ""


def test_a_lock_that_another_host_left_is_only_taken_over_when_told(run: RunDir) -> None:
    lock = run.path / "owner.lock"
    left = "host elsewhere, process 7, since 2026-01-02T03:04:05+00:00"
    lock.write_text(left, encoding="utf-8")
    with pytest.raises(UsageError, match=f"was left by {re.escape(left)}") as error:
        run.owned().__enter__()
    assert "--take-over" in error.value.do
    assert lock.read_text(encoding="utf-8") == left
    with run.owned(take_over=True):
        assert f"process {os.getpid()}" in run.owner()
    # An owner that ends by itself, with an error too, leaves a lock that any host may take.
    with pytest.raises(KeyError), run.owned():
        raise KeyError
    assert lock.read_text(encoding="utf-8") == ""


def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(fcntl, "flock", lambda _file, _how: None)
    with pytest.raises(UsageError, match="does not keep locks"):
        RunDir(tmp_path / "run").prepare()


def test_nobody_holds_a_directory_that_was_never_run(tmp_path: Path) -> None:
    assert RunDir(tmp_path).owner() == ""


def test_a_judge_that_changed_under_its_name_is_refused_with_the_difference() -> None:
    now = {"j": {"offset": 0.9, "quality": 1.0, "seed": 3}, "k": {"offset": 1.0}}
    with pytest.raises(ConfigError) as error:
        check_same(manifest(), now)
    assert error.value.given == (
        "the judge 'j' of this run directory was another one: offset: 0.5 -> 0.9; seed: None -> 3"
    )


@pytest.mark.parametrize("now", [{}, {"j": {"offset": 0.5, "quality": 1.0}}, {"k": {"offset": 2}}])
def test_the_same_judge_a_new_one_or_none_may_be_asked(now: dict[str, dict[str, Any]]) -> None:
    check_same(manifest(), now)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    target = tmp_path / "file"
    publish_text(target, "old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(UsageError, match="No space"):
            publish_text(target, "new")
    assert target.read_bytes() == b"old"
