"""A run never reads, or writes over, its own input."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgebias.errors import ConfigError
from judgebias.outputs import OUTPUTS, refuse_own_outputs


def taken(folder: Path, source: str, out: str, *, deep: bool = False) -> str:
    """Name the output that an input would take in, "" for none."""
    try:
        refuse_own_outputs("pairs", source, base=folder, out=folder / out, deep=deep)
    except ConfigError as error:
        return error.given.partition("what the run writes: ")[2]
    return ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pairs" / "more").mkdir(parents=True)
    (tmp_path / "pairs" / "a.jsonl").touch()
    (tmp_path / "divided" / "calls.parquet").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "pairs")
    return tmp_path


@pytest.mark.parametrize(
    ("source", "out", "named"),
    [
        ("pairs", "pairs", "pairs/summary.csv"),
        ("divided/calls.parquet", "divided", "divided/calls.parquet"),
        ("pairs", "link", "link/summary.csv"),
        ("link", "pairs", "pairs/summary.csv"),
        ("pairs/", "pairs/more/..", "pairs/more/../summary.csv"),
        ("pairs/*", "pairs", "pairs/summary.csv"),
        ("pairs/*.parquet", "pairs", "pairs/summary.parquet"),
        ("pairs/*.jsonl", "pairs", "pairs/rejects.jsonl"),
        ("link/*.jsonl", "pairs", "pairs/rejects.jsonl"),
        ("*/*.jsonl", "pairs", "pairs/rejects.jsonl"),
        ("pairs/**/*.parquet", "pairs/more/run", "pairs/more/run/summary.parquet"),
        ("**/*.jsonl", "runs/first", "runs/first/rejects.jsonl"),
        ("**", "runs/first", "runs/first/summary.csv"),
        ("runs/*/tables/*.csv", "runs/first", "runs/first/tables/repeats.csv"),
        ("pairs", "pairs/../pairs", "pairs/../pairs/summary.csv"),
        # A single file is written over rather than read.
        ("runs/first/rejects.jsonl", "runs/first", "runs/first/rejects.jsonl"),
        ("file://{base}/pairs", "pairs", "pairs/summary.csv"),
    ],
)
def test_an_out_within_reach_of_the_input_is_refused(
    folder: Path, source: str, out: str, named: str
) -> None:
    assert taken(folder, source.format(base=folder), out) == str(folder / named)


@pytest.mark.parametrize(
    ("source", "out"),
    [
        ("pairs", "out"),
        ("pairs", "pairs/run"),  # a folder stands for the files in it
        ("pairs/a.jsonl", "pairs"),
        ("pairs/a*.jsonl", "pairs"),
        ("pairs/*.jsonl.gz", "pairs"),
        ("pairs/*.jsonl", "pairs/run"),
        ("pairs/**/*.jsonl", "out"),
        ("pairs/**/*.jsonl", ".runs/first"),
        ("**/*.jsonl", ".runs/first"),  # a glob finds nothing that is hidden
        ("s3://pairs", "pairs"),
        ("absent", "absent"),
        ("x" * 300, "out"),
    ],
)
def test_an_out_that_is_never_read_is_fine(folder: Path, source: str, out: str) -> None:
    assert taken(folder, source, out) == ""


def test_records_are_looked_for_below_their_folder(folder: Path) -> None:
    assert taken(folder, "pairs", "pairs/run", deep=True) == str(folder / "pairs/run/summary.csv")
    assert taken(folder, "pairs", "runs", deep=True) == ""


def test_what_a_glob_finds_is_what_is_refused(tmp_path: Path) -> None:
    """The matching agrees with the file system, for every output and many patterns."""
    out = tmp_path / "a" / "run"
    for name in OUTPUTS:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).touch()
    patterns = (
        *("*", "**", "*/*", "**/*", "a/**", "a/*/*.csv", "**/run/*.json*", "a/**/tables/*"),
        *("**/[s-v]*.parquet", "*/*/*/p*", "a/run/summary.???", "b/**", "a/run/.*"),
    )
    for pattern in patterns:
        found = any(path.is_file() for path in tmp_path.glob(pattern)) or (
            pattern.endswith("**") and any(p.is_file() for p in tmp_path.glob(f"{pattern}/*"))
        )
        assert bool(taken(tmp_path, pattern, "a/run")) == found, pattern
