"""One run of the ordinary command over many pairs: how long each stage takes and what it holds."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import psutil

from judgebias.journal import JournalReader
from scripts.benches.watched import DRIVER, Watched, watched

Row = dict[str, Any]
RUN = """pairs = "{pairs}/*.parquet"
out = "{out}"
keep_raw = false
[[judges]]
name = "simulated"
provider = "simulated"
noise = 1.0
offset = 0.2
tie_width = 0.3
"""
_POLL_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Stages:
    """The moments between the stages of a run that ended."""

    started: float
    known: float
    """When it was known what is missing: pairs surveyed, journal read."""
    first: float
    """The first call; Ray and its workers have started before."""
    last: float
    tables: float
    """When Ray was gone and the tables began."""
    ended: float


def run_file(folder: Path, pairs: Path) -> Path:
    """Write a run file with one simulated judge beside its run directory."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "run.toml"
    path.write_text(RUN.format(pairs=pairs, out=folder / "out"), encoding="utf-8")
    return path


def whole_run(run: Path, pairs: int) -> Row:
    """(a) and (d): the whole command, from nothing to its tables."""
    with watched(run) as (_, found):
        pass
    _check(found)
    out = run.parent / "out"
    calls = calls_after(out, found.started)
    if calls.height != 2 * pairs:
        raise RuntimeError(f"expected {2 * pairs} calls, the journal has {calls.height}")
    stages = _stages(found, calls)
    return {"pairs": pairs, **_row(found, stages, calls.height), "run_dir_mb": _size_mb(out)}


def half_run(run: Path, pairs: int) -> int:
    """Run until half of the calls are on disk, and kill the driver; returns the calls on disk."""
    journal = run.parent / "out" / "journal"
    with watched(run) as (process, _):
        while _rows(journal) < pairs and process.poll() is None:
            time.sleep(_POLL_S)
        family = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, signal.SIGKILL)
    psutil.wait_procs(family, timeout=60)
    return _rows(journal)


def resumed_run(run: Path, pairs: int) -> Row:
    """(c) The same command again: how long the first new call waits, and the rest."""
    with watched(run, files=True) as (_, found):
        pass
    _check(found)
    out = run.parent / "out"
    calls = calls_after(out, found.started)
    stages = _stages(found, calls)
    opened = found.journal_opened or found.started
    return {
        "pairs": pairs,
        "calls_on_disk": 2 * pairs - calls.height,
        "s_from_journal_to_first_call": round(stages.first - opened, 1),
        **_row(found, stages, calls.height),
    }


def calls_after(out: Path, moment: float) -> pl.DataFrame:
    """Give the times of the calls that the journal got after a moment."""
    with JournalReader(out / "journal") as journal:
        parts = [frame.filter(pl.col("time").dt.epoch("us") > int(moment * 1e6))
                 for frame in journal.frames(["time"])]  # fmt: skip
    return pl.concat(parts)


def slopes(rows: Sequence[Row]) -> list[Row]:
    """(d) Fit how each figure grows with the pairs: seconds a million, and MiB a million."""
    pairs = np.array([row["pairs"] for row in rows], dtype=np.float64) / 1e6
    found: list[Row] = []
    for name in ("s_survey", "s_judging", "s_tables", *(key for key in rows[0] if "mib" in key)):
        values = np.array([row[name] or np.nan for row in rows], dtype=np.float64)
        slope, start = np.polyfit(pairs, values, 1)
        smallest, largest = values[0], values[-1]
        found.append(
            {
                "figure": name,
                "at_zero": round(float(start), 1),
                "per_million_pairs": round(float(slope), 1),
                "largest_to_smallest": round(float(largest / smallest), 2),
            }
        )
    return found


def _check(found: Watched) -> None:
    if found.code != 0:
        said = "\n".join(line for _, line in found.lines[-20:])
        raise RuntimeError(f"the run ended with {found.code}:\n{said}")


def _stages(found: Watched, calls: pl.DataFrame) -> Stages:
    first, last = (calls["time"].dt.epoch("us").min(), calls["time"].dt.epoch("us").max())
    return Stages(
        started=found.started,
        known=found.said("calls to ask"),
        first=int(str(first)) / 1e6,
        last=int(str(last)) / 1e6,
        tables=found.ray_gone(),
        ended=found.ended,
    )


def _row(found: Watched, at: Stages, calls: int) -> Row:
    judging, ray = at.last - at.first, at.first - at.known
    spans = {
        "survey": (at.started, at.known), "judging": (at.first, at.last),
        "tables": (at.tables, at.ended),
    }  # fmt: skip
    return {
        "calls": calls,
        "s_whole": round(at.ended - at.started, 1),
        "s_survey": round(at.known - at.started, 1),
        "s_ray_start": round(ray, 1),
        "s_judging": round(judging, 1),
        "s_ray_end": round(at.tables - at.last, 1),
        "s_tables": round(at.ended - at.tables, 1),
        "calls_per_s_judging": round(calls / judging),
        "calls_per_s_after_ray": round(calls / (at.ended - at.started - ray)),
        **{
            f"driver_mib_{name}": _whole(found.seen_mib(DRIVER, *span))
            for name, span in spans.items()
        },
        "driver_mib_peak": _whole(found.peak_mib(DRIVER)),
        "worker_mib_peak": _whole(found.peak_mib("worker")),
        "owner_mib_peak": _whole(found.peak_mib("owner")),
        "cpu_s_driver_survey": round(found.cpu_s(DRIVER, at.started, at.known), 1),
        "cpu_s_driver_tables": round(found.cpu_s(DRIVER, at.tables, at.ended), 1),
        "cpu_s_driver_judging": round(found.cpu_s(DRIVER, at.first, at.last), 1),
        "cpu_s_workers_judging": round(found.cpu_s("worker", at.first, at.last), 1),
        "cpu_s_others_judging": round(_others(found, at.first, at.last), 1),
    }


def _whole(mib: float | None) -> int | None:
    return None if mib is None else round(mib)


def _others(found: Watched, *span: float) -> float:
    kinds = {one.kind for one in found.seen} - {DRIVER, "worker"}
    return sum(found.cpu_s(kind, *span) for kind in kinds)


def _rows(journal: Path) -> int:
    if not journal.is_dir():
        return 0
    with JournalReader(journal) as reader:
        return sum(reader.count().values())


def _size_mb(folder: Path) -> int:
    done = subprocess.run(["du", "-sb", str(folder)], capture_output=True, text=True, check=True)
    return round(int(done.stdout.split()[0]) / 1e6)
