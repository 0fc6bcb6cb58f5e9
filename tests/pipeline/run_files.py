"""Run files and pairs for the tests of whole runs, and the processes that run them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import psutil

from judgebias.journal import read_journal

TABLES = ("summary.csv", "summary.json", "summary.parquet", "summary.md", "verdicts.parquet")


def write_pairs(path: Path, n: int, *, tasks: int = 3, swapped: bool = False) -> Path:
    """Write n pairs of our own making; `swapped` exchanges A and B."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(n):
            # Never of equal length, and longer in either column.
            a = f"answer A {number} " * (1 + number % 7)
            b = f"answer B {number}. " * (1 + number % 5)
            row = {
                "pair_id": f"{number:05d}",
                "task": f"task{number % tasks}",
                "question": f"question {number // 2}?",
                "answer_a": b if swapped else a,
                "answer_b": a if swapped else b,
            }
            file.write(json.dumps(row) + "\n")
    return path


def run_file(
    path: Path, *, pairs: Path | str, judges: Iterable[Mapping[str, object]], **run: object
) -> Path:
    """Write a run file; `engine_*` keywords go to [engine]."""
    engine = {key[7:]: value for key, value in run.items() if key.startswith("engine_")}
    top = {key: value for key, value in run.items() if not key.startswith("engine_")}
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"pairs": str(pairs), **top}.items()]
    for judge in judges:
        lines += ["[[judges]]", *(f"{key} = {_toml(value)}" for key, value in judge.items())]
    lines += ["[engine]", *(f"{key} = {json.dumps(value)}" for key, value in engine.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + " }"
    return json.dumps(value)


def start(run: Path, *options: str, **environ: str) -> subprocess.Popen[str]:
    """Start `judgebias run` as a process of its own, in a group of its own."""
    # A fresh local Ray, whatever Ray the tests themselves are connected to.
    environment = {**os.environ, "RAY_ADDRESS": "local", **environ}
    return subprocess.Popen(
        [sys.executable, "-m", "judgebias", "run", str(run), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str], *, timeout: float = 120) -> tuple[int, str]:
    """Wait for the process; returns its exit code and what it said."""
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out + err


def wait_for_rows(journal: Path, rows: int, process: subprocess.Popen[str]) -> int:
    """Wait until the journal holds so many rows."""
    return wait_until(lambda: rows_of(journal), lambda found: found >= rows, process)


def wait_until(
    look: Callable[[], int], enough: Callable[[int], bool], process: subprocess.Popen[str]
) -> int:
    """Look every 50 ms until it is enough, for two minutes at most."""
    for _ in range(2400):
        found = look()
        if enough(found):
            return found
        assert process.poll() is None, finish(process)
        time.sleep(0.05)
    raise AssertionError(f"waited two minutes, and saw {found}")


def rows_of(journal: Path) -> int:
    """Count the committed rows of a journal that may be growing."""
    if not journal.exists():
        return 0
    return read_journal(journal, columns=("judge",)).report.rows


def kill(process: subprocess.Popen[str]) -> None:
    """Kill -9 the driver alone: its workers live on as orphans until their lease lapses."""
    process.send_signal(signal.SIGKILL)
    process.communicate()


def ray_process(process: subprocess.Popen[str], name: str) -> psutil.Process:
    """Find one of the processes that a run's own Ray consists of."""
    children = psutil.Process(process.pid).children(recursive=True)
    return next(child for child in children if name in " ".join(child.cmdline()[:1]))


def same_tables(one: Path, other: Path, *, but: tuple[str, ...] = ()) -> None:
    """Compare every table that must be byte-equal."""
    names = [*TABLES, *(f"tables/{path.name}" for path in (one / "tables").iterdir())]
    names = [name for name in names if name not in but]
    different = [n for n in names if (one / n).read_bytes() != (other / n).read_bytes()]
    assert not different
