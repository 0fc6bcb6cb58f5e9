"""Streams that are closed change no exit code: what was done was done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from judgebias.cli.screen import Screen


def test_a_process_without_stderr_has_nobody_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    screen = Screen()
    screen.say("nobody hears this")
    screen.start({"j": 1})
    screen.finish()
    assert sys.stderr is None


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_failure(tmp_path: Path) -> None:
    rows = [
        {"pair_id": "1", "judge": "j", "order": order, "verdict": "first"} for order in ("ab", "ba")
    ]
    records = tmp_path / "records.jsonl"
    records.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "judgebias", "summarize", str(records)]
    command += ["--out", str(tmp_path / "tables")]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tables" / "summary.csv").exists()
