"""(b) Recorded calls of any number, and what it takes to summarise them."""

from __future__ import annotations

import subprocess
import sys
import time
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil

from scripts.benches.watched import high_water

MODELS = [f"model-{number}" for number in range(6)]
LOOK_S = 0.1
MIB = 2**20


def write_records(folder: Path, *, judges: int, tasks: int, pairs: int, seed: int = 1) -> Path:
    """Write verdict records of judges with a growing offset, a file per judge and task."""
    draw = np.random.default_rng(seed)
    for task in range(tasks):
        about, quality = _pairs(task, pairs, draw)
        for judge in range(judges):
            inside = folder / f"judge-{judge}"
            inside.mkdir(parents=True, exist_ok=True)
            lean = np.tile([1, -1], pairs) * quality + 0.1 * judge + draw.logistic(size=2 * pairs)
            words = np.select([abs(lean) < 0.2, lean > 0], ["tie", "first"], "second")
            failed = pl.Series(draw.random(2 * pairs) < 0.005)
            rows = about.with_columns(
                judge=pl.lit(f"judge-{judge}"),
                verdict=pl.when(~failed).then(pl.Series(words)),
                failure=pl.when(failed).then(pl.lit("timeout")),
            )
            rows.write_parquet(inside / f"{task:02d}.parquet")
    return folder


def _pairs(task: int, pairs: int, draw: np.random.Generator) -> tuple[pl.DataFrame, np.ndarray]:
    """Make what both records of each pair say of it, two pairs a question, and its quality."""
    a = draw.integers(0, len(MODELS), pairs)
    b = (a + draw.integers(1, len(MODELS), pairs)) % len(MODELS)
    names = np.array(MODELS)
    questions = [
        blake2b(f"{task}/{number // 2}".encode(), digest_size=16).hexdigest()
        for number in range(pairs)
    ]
    told = {
        "pair_id": [f"{task:02d}-{number:07d}" for number in range(pairs)],
        "model_a": names[a],
        "model_b": names[b],
        "gold": np.array(["A", "B", "tie"])[draw.integers(0, 3, pairs)],
        "cluster": np.array(questions),
        "len_a": draw.integers(200, 4000, pairs),
        "len_b": draw.integers(200, 4000, pairs),
    }
    rows = pl.DataFrame({name: np.repeat(values, 2) for name, values in told.items()})
    both = rows.with_columns(task=pl.lit(f"task-{task:02d}"), order=pl.Series(["ab", "ba"] * pairs))
    return both, np.repeat(draw.normal(size=pairs), 2)


def summarized(records: Path, out: Path, calls: int) -> dict[str, Any]:
    """Run the command, and note when which table was there."""
    began = time.monotonic()
    seen: dict[str, float] = {}
    awaited = {
        "s_summary": out / "summary.md",
        "s_every_table": out / "tables" / "tests.csv",
        "s_verdicts": out / "verdicts.parquet",
    }
    command = [sys.executable, "-m", "judgebias", "summarize", str(records), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    watched, peak, cpu_s = psutil.Process(process.pid), 0, 0.0
    while process.poll() is None:
        for name, path in awaited.items():
            if name not in seen and path.exists():
                seen[name] = round(time.monotonic() - began, 1)
        try:
            peak = max(peak, high_water(process.pid))
            cpu_s = sum(watched.cpu_times()[:2])
        except psutil.Error:
            break
        time.sleep(LOOK_S)
    if process.wait() != 0:
        msg = f"judgebias summarize ended with {process.returncode}"
        raise RuntimeError(msg)
    whole = round(time.monotonic() - began, 1)
    return {
        "figure": f"{calls:,} calls",
        **{name: seen.get(name, whole) for name in awaited},
        "s_whole": whole,
        "cpu_s": round(cpu_s, 1),
        "peak_mib": peak // MIB,
    }
