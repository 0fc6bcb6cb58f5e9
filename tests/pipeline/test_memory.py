"""What a run holds does not grow with its pairs, but for some bytes of each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import psutil
import pytest

from tests.pipeline.run_files import finish, run_file, start

MIB = 2**20
DRIVER_MIB = 900
WORKER_MIB = 700
PAIRS = 100_000

PREPARE = """
import sys
from pathlib import Path
import psutil
from judgebias.config.runfile import check_run
from judgebias.pipeline.prepare import prepared

def held(pairs):
    judges = [{"name": "j", "provider": "simulated"}]
    run = {"pairs": f"{pairs}.parquet", "out": pairs, "judges": judges}
    with prepared(check_run(run, where="here"), base=Path(sys.argv[1])) as ready:
        assert ready.missing["j"] == 2 * ready.survey.n_pairs
        return psutil.Process().memory_info().rss

held("few")
few = held("few")
print(held("many") - few)
"""


def write_many(path: Path, count: int) -> Path:
    """Write short pairs, all different."""
    number = pl.int_range(count, eager=True).cast(pl.String)
    columns = {
        "pair_id": number.str.zfill(8),
        "task": "task" + number.str.tail(1),
        "question": "Which is " + number + "?",
        "answer_a": "It is " + number,
        "answer_b": number + " it is",
        "model_a": "one",
        "model_b": "two",
    }
    pl.DataFrame(columns).write_parquet(path, row_group_size=25_000)
    return path


@pytest.mark.slow
def test_before_anything_is_asked_a_pair_takes_some_bytes_of_the_driver(tmp_path: Path) -> None:
    few, many = 50_000, 300_000
    write_many(tmp_path / "few.parquet", few)
    write_many(tmp_path / "many.parquet", many)
    done = subprocess.run(
        [sys.executable, "-c", PREPARE, str(tmp_path)], capture_output=True, text=True, check=True
    )
    # Its digest takes 16 bytes, and what Polars keeps for later some 100; the index held whole took
    # more than 400.
    assert int(done.stdout) / (many - few) < 300


@pytest.mark.ray
@pytest.mark.slow
def test_a_run_of_many_pairs_stays_within_its_memory(tmp_path: Path) -> None:
    pairs = write_many(tmp_path / "pairs.parquet", PAIRS)
    judge = {"name": "j", "provider": "simulated", "tie_width": 0.3}
    file = run_file(tmp_path / "run.toml", pairs=pairs, out="out", judges=[judge], keep_raw=False)
    process = start(file)
    peaks: dict[str, float] = {}
    while process.poll() is None:
        watch(process.pid, peaks)
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            continue
    code, said = finish(process)
    assert code == 0, said
    assert f"{2 * PAIRS:,} calls to ask" in said
    assert peaks["driver"] < DRIVER_MIB
    assert peaks["worker"] < WORKER_MIB


def watch(pid: int, peaks: dict[str, float]) -> None:
    """Note what the driver and the largest worker hold now, in MiB."""
    try:
        driver = psutil.Process(pid)
        family = {"driver": [driver], "worker": driver.children(recursive=True)}
        for kind, processes in family.items():
            for process in processes:
                if kind == "driver" or "Worker" in "".join(process.cmdline()[:1]):
                    size = process.memory_info().rss / MIB
                    peaks[kind] = max(size, peaks.get(kind, 0.0))
    except psutil.Error:
        # Processes come and go while they are looked at.
        return
