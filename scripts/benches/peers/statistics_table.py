"""(d) The statistics: the textbook's ways against ours, on the same calls."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scripts.benches.peers.calls import write_calls
from scripts.benches.peers.layout import Row, median

SIZES = (10_000, 1_000_000)
LONGEST_S = 60.0
LOADING_S = 15.0
"""What a process may take before its clock starts."""
COUNTING = {
    "loop": "a dictionary and a loop: 4 counts a task",
    "pandas": "pandas pivot and groupby: 4 counts a task",
    "summary": "settle_calls and rows_of: every figure, interval and test a task",
}
SIGN_TESTS = {
    "comb": "sum of math.comb",
    "binomtest": "scipy.stats.binomtest",
    "ours": "judgebias sign_test_p",
}
AGREES_WITHIN = 1e-9
Told = Mapping[str, Any]


def statistics_rows(sizes: tuple[int, ...], rounds: int) -> Iterator[tuple[str, list[Row]]]:
    """Give two tables: counting, and the sign test of the calls that were counted."""
    counted: list[Row] = []
    tested: list[Row] = []
    for pairs in sizes:
        with TemporaryDirectory() as name:
            folder = write_calls(Path(name), pairs)
            told = {way: _told(way, str(folder), rounds) for way in COUNTING}
        ours = told["summary"][-1]["found"]
        counted += [_counting_row(way, pairs, told[way], ours) for way in COUNTING]
        k, n = ours["ALL"]["firsts"], ours["ALL"]["decisive"]
        tests = {way: _told(way, f"{k}/{n}", rounds) for way in SIGN_TESTS}
        p = tests["ours"][-1]["found"]
        tested += [_test_row(way, pairs, n, tests[way], p) for way in SIGN_TESTS]
    yield "counting both orders of every pair", counted
    yield "two-sided exact sign test of the first slot", tested


def _told(way: str, given: str, rounds: int) -> list[Told]:
    """Run a way several times; nothing where it is not installed or takes too long."""
    if way == "pandas" and find_spec("pandas") is None:
        return [{"note": "pandas is not installed"}]
    command = [sys.executable, "-m", "scripts.benches.peers.numbers", way, given]
    told: list[Told] = []
    for _ in range(rounds):
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, timeout=LONGEST_S + LOADING_S
            )
        except subprocess.TimeoutExpired:
            return [{"note": f"> {LONGEST_S:.0f} s"}]
        told.append(json.loads(done.stdout.splitlines()[-1]))
    return told


def _row(way: str, pairs: int, told: list[Told]) -> Row:
    note = told[-1].get("note")
    return {
        "way": way,
        "pairs": pairs,
        "seconds": note or median(told, "seconds"),
        "data_mib": median(told, "before_mib"),
        "peak_mib": median(told, "peak_mib"),
    }


def _counting_row(way: str, pairs: int, told: list[Told], ours: object) -> Row:
    found = told[-1].get("found")
    return {
        **_row(COUNTING[way], pairs, told),
        "same_counts": None if found is None else found == ours,
    }


def _test_row(way: str, pairs: int, n: int, told: list[Told], p: float) -> Row:
    found = told[-1].get("found")
    same = None if found is None else math.isclose(found, p, rel_tol=AGREES_WITHIN)
    shown = None if found is None else f"{found:.10g}"
    row = _row(SIGN_TESTS[way], pairs, told)
    row.pop("data_mib")
    return {**row, "verdicts": n, "p": shown, "same_p": same}
