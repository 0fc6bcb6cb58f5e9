"""Tables as files: the same bytes, the same numbers, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from judgebias.errors import UsageError
from judgebias.publish import publish, publish_text
from judgebias.report.tables import write_tables, write_verdicts
from judgebias.report.words import bias, cell, offset, p_value
from judgebias.summary import (
    VERDICT_COLUMNS,
    failures_table,
    repeats_table,
    settle_calls,
    several_models,
    summarize,
)
from tests.summary.verdict_frames import calls_of, judged, pairs_of
from tests.summary.verdict_oracle import Judged


def some_pairs() -> list[Judged]:
    ends = [("first", "first"), ("first", "second"), ("tie", "failed"), ("second", None)]
    return [judged(*ends[n % 4], n, task=f"t{n % 2}", gold="A") for n in range(40)]


def write(folder: Path, pairs: list[Judged], judge: str = "j") -> pl.DataFrame:
    calls = calls_of(pairs, judge).lazy()
    verdicts = settle_calls(calls, pairs_of(pairs).lazy())
    write_verdicts(folder / "verdicts.parquet", [verdicts.collect()])
    summary = summarize(verdicts)
    write_tables(
        folder,
        summary=summary,
        repeats=repeats_table(verdicts),
        failures=failures_table(calls, verdicts),
        several=several_models(verdicts),
        notices=["a notice"],
    )
    return summary


def content(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_same_calls_give_the_same_bytes_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "one", some_pairs())
    write(tmp_path / "two", some_pairs()[::-1])
    write(tmp_path / "two", some_pairs()[::-1])
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert list(content(tmp_path / "one")) == [
        *("summary.csv", "summary.json", "summary.md", "summary.parquet"),
        *("tables/failures.csv", "tables/repeats.csv", "verdicts.parquet"),
    ]


def test_every_file_holds_the_very_numbers(tmp_path: Path) -> None:
    summary = write(tmp_path, some_pairs())
    assert pl.read_parquet(tmp_path / "summary.parquet").equals(summary, null_equal=True)
    assert json.loads((tmp_path / "summary.json").read_text()) == summary.to_dicts()
    csv = pl.read_csv(tmp_path / "summary.csv", schema=summary.schema)
    assert csv.equals(summary, null_equal=True)


def test_verdicts_are_sorted_plain_words(tmp_path: Path) -> None:
    write(tmp_path, some_pairs())
    verdicts = pl.read_parquet(tmp_path / "verdicts.parquet")
    assert tuple(verdicts.columns) == VERDICT_COLUMNS
    assert verdicts.equals(verdicts.sort("judge", "task", "pair_id", "repeat"), null_equal=True)
    assert verdicts.schema["cell"] == pl.String


def test_markdown_shows_every_term_of_the_totals(tmp_path: Path) -> None:
    write(tmp_path, some_pairs(), judge="a|b")
    text = (tmp_path / "summary.md").read_text()
    assert "40 = 20 complete + 10 one order failed + 0 both failed + 0 pending + 10 in one" in text
    assert "a\\|b" in text
    assert "- a notice" in text
    assert "coverage differs between orders" in text


def test_markdown_says_what_is_not_available_and_why(tmp_path: Path) -> None:
    write(tmp_path, [judged("first", None, n) for n in range(9)])
    text = (tmp_path / "summary.md").read_text()
    assert "100.0% of all calls (one order only)" in text
    assert "Only one order was asked or recorded" in text
    assert "not available" in text


@pytest.mark.parametrize(
    ("value", "low", "high", "shown"),
    [
        (0.5, 0.1, 0.9, "+0.50 [+0.10 to +0.90]"),
        (None, 0.1, None, "above +0.10"),
        (None, None, -0.1, "below -0.10"),
        (None, None, None, "not available"),
    ],
)
def test_offset_in_words(
    value: float | None, low: float | None, high: float | None, shown: str
) -> None:
    assert offset({"offset": value, "offset_low": low, "offset_high": high}) == shown


def test_numbers_in_words() -> None:
    assert [p_value(p) for p in (None, 1.0, 0.0123, 2e-9)] == [
        *("not available", "1", "0.012", "2.0e-09"),
    ]
    nothing = {"position_bias": "none detected", "detectable_offset": 0.123}
    assert bias(nothing) == "none detected (an offset under 0.12 could be missed)"
    assert cell("a|b\n<c>") == "a\\|b &lt;c>"


def test_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    publish_text(path, "old")

    def fail(beside: Path) -> None:
        beside.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match="No space left"):
        publish(path, fail)
    assert content(tmp_path) == {"table.csv": b"old"}


def test_folder_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        publish_text(tmp_path / "file" / "table.csv", "x")
