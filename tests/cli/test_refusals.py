"""What cannot work is refused before anything is asked: one block, code 2, nothing left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judgebias.cli import run_app
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
    ({"out": "s3://bucket/out"}, "is a URI"),
    ({"out": LONG}, "`out`: a path has at most"),
    ({"out": "a\0b"}, "`out`: a path cannot hold the character U+0000"),
    ({"pairs": f"{LONG}/*.jsonl"}, "`pairs`: a path has at most"),
    ({"repeats": 10**9}, "`repeats`"),
    ({"orders": "random"}, 'orders = "random"'),
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
