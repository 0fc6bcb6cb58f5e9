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
