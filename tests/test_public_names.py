"""The public surface, and what importing it does not do; each in an interpreter of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import judgebias

_ROOT = Path(__file__).resolve().parents[1]
_LOADED = """
import importlib, json, sys
loaded = {}
for room in sys.argv[1:]:
    importlib.import_module(room)
    loaded[room] = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps(loaded))
"""
_TOUCHED = """
import json, os, sys

written, read, connected = [], [], []

def watch(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        written.append(str(arguments[0]))
    elif event in ("os.mkdir", "os.rename", "os.symlink", "shutil.copyfile"):
        written.append(f"{event} {arguments[0]}")
    elif event in ("socket.connect", "subprocess.Popen", "os.fork"):
        connected.append(event)

class Watched(type(os.environ)):
    def __getitem__(self, name):
        read.append(name)
        return super().__getitem__(name)

os.environ.__class__ = Watched
sys.addaudithook(watch)
import judgebias
print(json.dumps([written, read, connected]))
"""


def fresh(source: str, *arguments: str, folder: Path) -> Any:
    """Run a source in a fresh interpreter; what it printed as JSON comes back."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(_ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OPENAI_API_KEY": "not-to-be-read",
        "ANTHROPIC_API_KEY": "not-to-be-read",
    }
    command = [sys.executable, "-c", source, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_public_names_are_these_and_sorted() -> None:
    names = ["JudgebiasError", "RunConfig", "position_bias_report", "sign_test_p"]
    assert judgebias.__all__ == sorted(judgebias.__all__) == names
    assert all(hasattr(judgebias, name) for name in names)


def test_the_rooms_that_ask_nobody_load_no_ray_and_no_vendor(tmp_path: Path) -> None:
    rooms = ["judgebias.verdicts", "judgebias.stats", "judgebias.summary", "judgebias.cli"]
    loaded = fresh(_LOADED, *rooms, folder=tmp_path)
    assert loaded.keys() == set(rooms)
    heavy = {"ray", "openai", "anthropic", "aiohttp", "uvloop"}
    found = {room: sorted(heavy.intersection(names)) for room, names in loaded.items()}
    assert [room for room, names in found.items() if names] == []
    assert "polars" not in loaded["judgebias.stats"]


def test_importing_judgebias_writes_nothing_reads_no_key_and_connects_to_nobody(
    tmp_path: Path,
) -> None:
    written, read, connected = fresh(_TOUCHED, folder=tmp_path)
    assert written == []
    assert connected == []
    words = ("KEY", "TOKEN", "SECRET")
    secrets = [n for n in read if n.startswith("RAY_") or any(word in n for word in words)]
    assert secrets == []
    assert list(tmp_path.iterdir()) == []
