"""How long a big journal keeps the first new call waiting.

Makes pairs and a journal in which every call of the first N pairs is recorded, adds a few pairs,
and starts the ordinary command. Prints the seconds from the start of the command until it knows
what is missing (reading pairs and journal), and from there to the first new call (Ray's own start
and that of its workers).

    python scripts/bench_resume.py --pairs 1000000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from judgebias.journal import Row, Segment, now_us, read_journal
from judgebias.pairs import PairsSpec, survey_pairs
from judgebias.replies import Reply
from judgebias.rundir import RunDir
from judgebias.verdicts import Order, Slot

NEW = 200
WORDS = ("answer", "because", "which", "table", "river", "seven", "often", "green", "of", "the")


def main() -> None:
    """Measure one resume and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    n = parser.parse_args().pairs
    with tempfile.TemporaryDirectory(prefix="jb") as folder:
        base = Path(folder)
        run = _run_file(base)
        _pairs(NEW).write_parquet(base / "pairs" / "0.parquet")
        _start(run)
        _pairs(n, first=NEW).write_parquet(base / "pairs" / "1.parquet", row_group_size=50_000)
        _record(base)
        _pairs(NEW, first=n + NEW).write_parquet(base / "pairs" / "2.parquet")
        known, asked = _resume(run, base / "out")
    result = {"calls_in_journal": 2 * (n + NEW), "s_until_known": known, "s_from_there": asked}
    print(json.dumps(result))


def _run_file(base: Path) -> Path:
    (base / "pairs").mkdir()
    run = base / "run.toml"
    run.write_text(
        'pairs = "pairs/*.parquet"\nout = "out"\n'
        '[[judges]]\nname = "j"\nprovider = "simulated"\ntie_width = 0.3\n',
        encoding="utf-8",
    )
    return run


def _pairs(n: int, first: int = 0) -> pl.DataFrame:
    random.seed(first)
    texts = [" ".join(random.choices(WORDS, k=random.randrange(40, 160))) for _ in range(997)]
    ids = range(first, first + n)
    return pl.DataFrame(
        {
            "pair_id": [f"{number:08d}" for number in ids],
            "task": [f"task{number % 20}" for number in ids],
            "question": [f"{number // 2} {texts[number % 991]}" for number in ids],
            "answer_a": [texts[number % 997] for number in ids],
            "answer_b": [f"{texts[number % 983]}." for number in ids],
        }
    )


def _start(run: Path) -> None:
    subprocess.run(_command(run), check=True, capture_output=True)


def _command(run: Path) -> list[str]:
    return [sys.executable, "-m", "judgebias", "run", str(run)]


def _record(base: Path) -> None:
    """Write a verdict for both orders of every pair, as a worker would have."""
    fingerprint = RunDir(base / "out").manifest().fingerprints["j"]
    survey = _survey(base)
    segment = Segment.create(base / "out" / "journal", epoch=1, worker="bench")
    reply = Reply(slot=Slot.FIRST, latency_ms=1.0)
    for pair_id, task, digest in survey.select("pair_id", "task", "digest").iter_rows():
        for order in Order:
            row = Row(digest, "j", fingerprint, task, pair_id, 1, order, now_us(), reply)
            segment.append(row)
        if segment.buffered >= 4096:
            segment.flush()
    segment.close()


def _survey(base: Path) -> pl.DataFrame:
    return survey_pairs(PairsSpec(source=str(base / "pairs" / "1.parquet"), base=base)).index


def _resume(run: Path, out: Path) -> tuple[float, float]:
    started = time.time()
    environment = {**os.environ, "RAY_ADDRESS": "local"}
    with subprocess.Popen(
        _command(run), stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        known = next(time.time() for line in process.stderr if "calls to ask" in line)
        process.stderr.read()
    assert process.returncode == 0
    times = read_journal(out / "journal", columns=("time",)).table["time"]
    first = times.dt.epoch("us").filter(times.dt.epoch("us") > int(known * 1e6)).min()
    return round(known - started, 1), round(int(str(first)) / 1e6 - known, 1)


if __name__ == "__main__":
    main()
