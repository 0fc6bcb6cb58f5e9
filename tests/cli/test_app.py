"""Wrong usage, configuration and input: one block, the right exit code, nothing asked."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from judgebias.cli import main, run_app
from judgebias.errors import Stopped
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, write_pairs

JUDGE = {"name": "j", "provider": "simulated"}
Read = pytest.CaptureFixture[str]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "pairs.jsonl", 10)


def refused(arguments: list[str], asking: Asking, capsys: Read) -> str:
    """Run a command that cannot be used; its block comes back."""
    assert run_app(arguments) == 2
    assert asking.asked == []
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.endswith("\n")
    assert "\n\n" not in err
    return err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["run"], "Missing argument 'RUN.toml'"),
        (["run", "a.toml", "--limt", "3"], "No such option"),
        (["run", "a.toml", "--limit", "-1"], "--limit"),
        (["run", "a.toml", "--limit", "many"], "--limit"),
        (["run", "absent.toml"], "cannot read the run file absent.toml"),
        (["status"], "Missing argument 'DIR'"),
        (["status", "absent"], "absent is not a run directory"),
        (["summarize"], "Missing argument 'SOURCE...'"),
        (["summarize", "absent.jsonl"], "--out is missing"),
        (["summarize", "absent.jsonl", "--out", "tables"], "absent.jsonl"),
    ],
)
def test_wrong_usage_is_one_block_and_code_2(
    arguments: list[str],
    said: str,
    asking: Asking,
    capsys: Read,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(arguments, asking, capsys)
    assert list(tmp_path.iterdir()) == []


def content(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


ROW = {"pair_id": "1", "question": "?", "answer_a": "a", "answer_b": "b"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"pair_id": "1", "question": "?", "answer_a": "a"}], "answer_b"),
        ([ROW, {**ROW, "answer_a": "other"}], "pair_id"),
    ],
)
def test_input_that_cannot_be_used_is_refused(
    rows: list[dict[str, Any]], said: str, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    source = content(tmp_path / "pairs.jsonl", *rows)
    file = run_file(tmp_path / "run.toml", pairs=source, judges=[JUDGE], out="out")
    assert said in refused(["run", str(file)], asking, capsys)
    assert not (tmp_path / "out" / "run.json").exists()


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ({"seeds": 1}, "unknown key `seeds`, did you mean `seed`?"),
        ({"engine_worker": 1}, "did you mean `workers`?"),
        ({"repeats": 0}, "`repeats`"),
        ({"out": "pairs.jsonl/out"}, "cannot write to the run directory"),
        ({"out": "pairs.jsonl"}, "cannot write to the run directory"),
        ({"out": "/proc/self/out"}, "cannot write to the run directory"),
        ({"out": "gs://bucket/out"}, "cannot hold a run"),
    ],
)
def test_a_run_file_that_cannot_be_used_is_refused(
    run: dict[str, Any], said: str, asking: Asking, capsys: Read, pairs: Path, tmp_path: Path
) -> None:
    file = run_file(tmp_path / "run.toml", **{"pairs": pairs, "judges": [JUDGE], "out": "o", **run})
    assert said in refused(["run", str(file)], asking, capsys)


def test_no_pairs_at_all_is_refused(asking: Asking, capsys: Read, tmp_path: Path) -> None:
    absent = tmp_path / "absent.jsonl"
    file = run_file(tmp_path / "run.toml", pairs=absent, judges=[JUDGE], out="out")
    assert "absent.jsonl" in refused(["run", str(file)], asking, capsys)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_records_of_a_judge_named_panel_are_refused(
    order: str, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    record = {"pair_id": "1", "judge": "j", "order": "ab", "verdict": "first"}
    rows = [record, {**record, "judge": "panel", "order": order}]
    source = content(tmp_path / "verdicts.jsonl", *rows)
    out = tmp_path / "out"
    said = refused(["summarize", str(source), "--out", str(out)], asking, capsys)
    assert "a judge named 'panel', which is the name of the panel's own rows" in said
    assert "give that judge another name" in said
    assert not out.exists()
    # A name that only looks like it is a judge's own.
    source = content(tmp_path / "verdicts.jsonl", record, {**record, "judge": "Panel"})
    assert run_app(["summarize", str(source), "--out", str(out)]) == 0


def test_a_judge_that_is_not_in_the_run_file_is_refused(
    asking: Asking, capsys: Read, pairs: Path, tmp_path: Path
) -> None:
    file = run_file(tmp_path / "run.toml", pairs=pairs, judges=[JUDGE], out="out")
    said = refused(["run", str(file), "--judge", "k"], asking, capsys)
    assert "no judge is named 'k'" in said
    assert "one of: j" in said
    assert not (tmp_path / "out").exists()


def test_help_is_no_fault(capsys: Read) -> None:
    assert run_app(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("demo", "run", "summarize", "status"))
    assert run_app(["run", "--help"]) == 0


def test_help_names_no_key_option(capsys: Read) -> None:
    """A key on a command line is in the shell's history and in every list of processes."""
    assert run_app(["run", "--help"]) == 0
    assert "key" not in capsys.readouterr().out.lower()


def test_the_version_is_that_of_the_package(capsys: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"judgebias-batch": "1.2.3"}.__getitem__)
    assert run_app(["--version"]) == 0
    assert capsys.readouterr() == ("judgebias 1.2.3\n", "")

    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert run_app(["--version"]) == 0
    assert capsys.readouterr().out == "judgebias unknown: the package is not installed\n"


def put(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    # The name of the module is also the name of the Typer app in it.
    monkeypatch.setattr(sys.modules[run_app.__module__], "print_status", failing)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Stopped("the budget is used up", do="raise it"), 4, "the budget is used up\n  do: raise"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Abort(), 130, ""),
        (typer.Exit(3), 3, ""),
        (RuntimeError("odd\nsecond line"), 70, "a fault of judgebias: RuntimeError: odd\n  do: "),
    ],
)
@pytest.mark.slow
def test_every_end_has_its_code(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: Read
) -> None:
    put(monkeypatch, error)
    assert run_app(["status", "x"]) == code
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert "second line" not in err


@pytest.mark.parametrize("error", [RuntimeError("odd"), Stopped("full")])
@pytest.mark.parametrize(
    "place", [lambda words: ["--debug", *words], lambda words: [*words, "--debug"]]
)
def test_a_traceback_comes_only_when_asked_for(
    error: Exception,
    place: Callable[[list[str]], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Read,
) -> None:
    put(monkeypatch, error)
    code = run_app(["status", "x"])
    assert "Traceback" not in capsys.readouterr().err
    assert run_app(place(["status", "x"])) == code
    assert "Traceback" in capsys.readouterr().err


def test_the_command_exits_with_the_code(monkeypatch: pytest.MonkeyPatch, capsys: Read) -> None:
    monkeypatch.setattr(sys, "argv", ["judgebias", "bogus"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "bogus" in capsys.readouterr().err


def test_an_interrupt_while_the_command_is_read_shows_no_traceback() -> None:
    program = """
import sys
class Interrupted:
    def find_spec(self, name, *_):
        if name == "judgebias.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from judgebias.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "interrupted: nothing was begun\n")
