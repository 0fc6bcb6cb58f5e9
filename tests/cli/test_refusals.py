"""What cannot work is refused before anything is asked: one block, code 2, nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgebias.cli import run_app
from judgebias.outputs import OUTPUTS
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, write_pairs

JUDGE = {"name": "j", "provider": "simulated"}
LONG = "x" * 300
Read = pytest.CaptureFixture[str]


def refusal(arguments: list[str], capsys: Read) -> str:
    """Run a command that is refused, and give its one block."""
    assert run_app(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert "\n\n" not in err
    return err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", LONG],
        ["plan", LONG],
        ["run", "run.toml", "--out", LONG],
        ["run", "run.toml", "--out", "a\nb"],
        ["run", "run.toml", "--out", "a\udce9"],
        ["run", "run.toml", "--pairs", LONG],
        ["status", LONG],
        ["reparse", LONG],
        ["summarize", LONG],
        ["summarize", LONG, "--out", "o"],
        ["summarize", f"{LONG}*", "--out", "o"],
        ["summarize", "pairs.jsonl", "--out", LONG],
        ["summarize", "verdicts.jsonl", "--out", LONG],
        ["summarize", "verdicts.jsonl", "--out", "o", "--pairs", LONG],
        ["demo", "--out", LONG],
    ],
)
def test_a_name_that_no_file_can_have_is_one_block(
    arguments: list[str],
    tmp_path: Path,
    asking: Asking,
    capsys: Read,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 3)
    run_file(tmp_path / "run.toml", pairs=pairs, judges=[JUDGE], out="out")
    record = {"pair_id": "1", "judge": "j", "order": "ab", "verdict": "first"}
    (tmp_path / "verdicts.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    assert refusal(arguments, capsys).count("\n") >= 2
    assert asking.asked == []
    assert sorted(tmp_path.rglob("*")) == before


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"pairs": "*.jsonl", "out": "."}, "would read what the run writes"),
    ({"pairs": "sub", "out": "sub"}, "would read what the run writes"),
    ({"pairs": "**/*.jsonl"}, "would read what the run writes"),
    ({"out": "pairs.jsonl"}, "cannot write to the run directory"),
    ({"out": "pairs.jsonl/out"}, "cannot write to the run directory"),
    ({"out": "dangling"}, "cannot write to the run directory"),
    ({"out": "half"}, "cannot write to the run directory"),
    ({"out": "/proc/self/out"}, "cannot write to the run directory"),
    ({"out": "gs://bucket/out"}, "cannot hold a run"),
    ({"out": LONG}, "`out`: a path has at most"),
    ({"out": "a\0b"}, "`out`: a path cannot hold the character U+0000"),
    ({"pairs": f"{LONG}/*.jsonl"}, "`pairs`: a path has at most"),
    ({"repeats": 10**9}, "`repeats`"),
    ({"judges": [{"name": LONG, "provider": "simulated"}]}, "at most 200 characters"),
    ({"judges": [{**JUDGE, "provider": "function", "call": "exits:f"}]}, "SystemExit: 3"),
    ({"judges": [{**JUDGE, "provider": "replay", "path": "."}]}, "would read what the run writes"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_a_plan_refuses_what_a_run_refuses_in_the_same_words(
    given: dict[str, Any], said: str, tmp_path: Path, asking: Asking, capsys: Read
) -> None:
    write_pairs(tmp_path / "pairs.jsonl", 3)
    (tmp_path / "sub").mkdir()
    write_pairs(tmp_path / "sub" / "pairs.jsonl", 3)
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "journal").touch()
    run = {"pairs": "pairs.jsonl", "out": "out", "judges": [JUDGE], **given}
    file = run_file(tmp_path / "run.toml", **run)
    before = sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)
    planned = refusal(["plan", str(file)], capsys)
    assert said in planned
    assert refusal(["run", str(file)], capsys) == planned
    assert asking.asked == []
    after = sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)
    assert after == before


def test_every_file_that_a_run_puts_beside_its_tables_is_known(
    tmp_path: Path, asking: Asking, capsys: Read
) -> None:
    write_pairs(tmp_path / "pairs.jsonl", 3)
    file = run_file(tmp_path / "run.toml", pairs=tmp_path / "pairs.jsonl", judges=[JUDGE], out="o")
    assert run_app(["run", str(file)]) == 0
    assert asking.asked
    out = tmp_path / "o"
    files = [path for folder in (out, out / "journal") for path in folder.iterdir()]
    written = {str(path.relative_to(out)) for path in files if path.is_file()}
    read = {name for name in written if Path(name).suffix in {".csv", ".jsonl", ".parquet"}}
    assert read >= {"summary.csv", "rejects.jsonl", "journal/pairs.parquet"}
    assert read <= set(OUTPUTS)
    capsys.readouterr()
    # The same pairs in the same folder would be read together with them the next time.
    (tmp_path / "o" / "pairs.jsonl").write_bytes((tmp_path / "pairs.jsonl").read_bytes())
    file = run_file(tmp_path / "run.toml", pairs=out, judges=[JUDGE], out="o")
    assert "would read what the run writes" in refusal(["run", str(file)], capsys)


@pytest.mark.parametrize(
    ("environment", "engine", "said"),
    [
        ("nonsense", {}, "RAY_ADDRESS = 'nonsense' is no address of Ray"),
        ("http://127.0.0.1:8265", {}, "RAY_ADDRESS = 'http://127.0.0.1:8265' is no address of Ray"),
        ("", {"engine_address": "ray://h:1"}, "engine.address = 'ray://h:1' is no address of Ray"),
        ("local", {"engine_workers": 9999}, "engine.workers = 9999 on this machine alone"),
    ],
)
def test_where_no_ray_can_be_is_found_before_anything_is_read(
    environment: str,
    engine: dict[str, object],
    said: str,
    tmp_path: Path,
    asking: Asking,
    capsys: Read,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", environment)
    absent = tmp_path / "absent.jsonl"
    file = run_file(tmp_path / "run.toml", pairs=absent, judges=[JUDGE], out="out", **engine)
    for command in ("plan", "run"):
        assert said in refusal([command, str(file)], capsys)
    assert asking.asked == []
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]
