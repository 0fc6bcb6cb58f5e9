"""One way of the statistics in a process of its own, on data that are in memory when it starts.

Run as `python -m scripts.benches.peers.numbers WAY FOLDER`, it prints one line of JSON. A sign test
reads how many of how many from the folder, which is then `K/N`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
from scipy import stats

from judgebias.stats.binomial import sign_test_p
from scripts.benches.peers.textbook import (
    Table,
    binomial_sum,
    by_loop,
    by_pandas,
    by_summary,
)

Work = Callable[[], object]
COLUMNS = ["task", "pair_id", "order", "slot"]


def loop(given: str) -> Work:
    """Have the calls as a list of tuples."""
    columns = pq.read_table(Path(given) / "calls.parquet", columns=COLUMNS).to_pydict()
    calls = list(zip(*(columns[name] for name in COLUMNS), strict=True))
    return lambda: _plain(by_loop(calls))


def pandas(given: str) -> Work:
    """Have the calls as a pandas frame."""
    frame = import_module("pandas").read_parquet(Path(given) / "calls.parquet", columns=COLUMNS)
    return lambda: _plain(by_pandas(frame))


def summary(given: str) -> Work:
    """Have the calls and pairs as Polars frames."""
    calls, pairs = (pl.read_parquet(Path(given) / f"{name}.parquet") for name in ("calls", "pairs"))
    return lambda: _plain(by_summary(calls, pairs))


def sign_test(given: str, p_value: Callable[[int, int], float]) -> Work:
    """Have the numbers."""
    k, n = (int(part) for part in given.split("/"))
    return lambda: p_value(k, n)


WAYS: dict[str, Callable[[str], Work]] = {
    "loop": loop,
    "pandas": pandas,
    "summary": summary,
    "comb": lambda given: sign_test(given, binomial_sum),
    "binomtest": lambda given: sign_test(
        given, lambda k, n: float(stats.binomtest(k, n, 0.5).pvalue)
    ),
    "ours": lambda given: sign_test(given, sign_test_p),
}


def peak_mib() -> float:
    """Read the most memory this process has had; unlike rusage, without its parent's."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    """Prepare, compute once, tell."""
    way, given = sys.argv[1:]
    work = WAYS[way](given)
    before = peak_mib()
    started = time.perf_counter()
    found = work()
    seconds = time.perf_counter() - started
    told = {"seconds": seconds, "before_mib": before, "peak_mib": peak_mib(), "found": found}
    print(json.dumps(told))


def _plain(table: Table) -> dict[str, dict[str, int]]:
    return {task: asdict(counts) for task, counts in sorted(table.items())}


if __name__ == "__main__":
    main()
