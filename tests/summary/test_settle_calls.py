"""Calls become verdicts: cells, failures, pending and single pairs."""

from __future__ import annotations

from itertools import product

import polars as pl
import pytest

from judgebias.summary import VERDICT_COLUMNS, failures_table, settle_calls, summarize
from judgebias.summary.settle import in_order
from judgebias.verdicts import Slot, final, settle
from tests.summary.verdict_frames import calls_of, judged, pairs_of, settled
from tests.summary.verdict_oracle import CELLS

EXPECTED = {
    "judge": pl.String,
    "task": pl.String,
    "pair_id": pl.String,
    "repeat": pl.Int32,
    "expects_ab": pl.Boolean,
    "expects_ba": pl.Boolean,
}


@pytest.mark.parametrize(("ab", "ba"), list(product(("first", "second", "tie"), repeat=2)))
def test_complete_pair_has_cell_and_final(ab: str, ba: str) -> None:
    row = settled([judged(ab, ba)]).collect().row(0, named=True)
    cell = settle(Slot(ab), Slot(ba))
    assert (row["slot_ab"], row["slot_ba"]) == (ab, ba)
    assert row["cell"] == cell == CELLS[ab, ba]
    assert row["final"] == final(cell)


@pytest.mark.parametrize("ends", [("first", "failed"), ("failed", "tie"), ("failed", "failed")])
def test_failure_is_no_tie(ends: tuple[str, str]) -> None:
    row = settled([judged(*ends)]).collect().row(0, named=True)
    assert row["cell"] is row["final"] is None


@pytest.mark.parametrize(
    ("ab", "ba", "expects", "status"),
    [
        ("first", "second", (True, True), "n_complete"),
        ("first", None, (True, True), "n_pending"),
        ("failed", None, (True, True), "n_pending"),
        (None, None, (True, True), "n_pending"),
        ("first", None, (True, False), "n_single"),
        (None, None, (False, True), "n_pending"),
        ("failed", None, (True, False), "n_single"),
        ("failed", "tie", (True, True), "n_one_failed"),
        ("failed", "failed", (True, True), "n_both_failed"),
        ("first", "second", (True, False), "n_complete"),
    ],
)
def test_live_run_knows_what_is_still_to_come(
    ab: str | None, ba: str | None, expects: tuple[bool, bool], status: str
) -> None:
    pair = judged(ab, ba)
    expected = pl.DataFrame([("j", "t", "0", 1, *expects)], EXPECTED, orient="row")
    verdicts = settle_calls(calls_of([pair]).lazy(), pairs_of([pair]).lazy(), expected.lazy())
    row = summarize(verdicts).row(-1, named=True)
    ends = ["n_complete", "n_pending", "n_single", "n_one_failed", "n_both_failed"]
    assert [name for name in ends if row[name]] == [status]
    assert row["n_calls"] == sum(end is not None for end in (ab, ba))


def test_order_expected_of_nobody_makes_no_row() -> None:
    expected = pl.DataFrame([("j", "t", "0", 1, False, False)], EXPECTED, orient="row")
    none = judged(None, None)
    verdicts = settle_calls(calls_of([]).lazy(), pairs_of([none]).lazy(), expected.lazy())
    assert verdicts.collect().height == 0


def test_recorded_twice_alike_counts_once() -> None:
    pairs = [judged("first", "tie", n) for n in range(3)]
    calls = calls_of(pairs)
    twice = settle_calls(pl.concat([calls, calls]).lazy(), pairs_of(pairs).lazy())
    assert summarize(twice).equals(summarize(settled(pairs)), null_equal=True)


def test_verdicts_are_sorted_and_sorting_is_told_from_their_numbers() -> None:
    pairs = [judged("first", "tie", n, repeat=repeat) for n in (11, 2, 1) for repeat in (2, 1)]
    rows = settled(pairs).collect()
    assert rows.select("pair_id", "repeat").rows() == [
        (name, repeat) for name in ("1", "11", "2") for repeat in (1, 2)
    ]
    numbered = rows.with_columns(pair_id=pl.col("pair_id").cast(pl.Int64))
    key = in_order(numbered).select("pair_id", "repeat").rows()
    assert key == [(n, repeat) for n in (1, 2, 11) for repeat in (1, 2)]
    once = in_order(numbered.filter(pl.col("repeat") == 1).reverse())
    assert once["pair_id"].to_list() == [1, 2, 11]
    assert in_order(once).equals(once)


def test_columns_are_those_of_the_file() -> None:
    names = settled([judged("first", "tie")]).collect_schema().names()
    assert tuple(names[: len(VERDICT_COLUMNS)]) == VERDICT_COLUMNS


def test_frames_with_categories_settle_alike() -> None:
    pairs = [judged("first", "tie", n) for n in range(3)]
    calls = calls_of(pairs).with_columns(
        pl.col("judge", "task", "order", "slot").cast(pl.Categorical)
    )
    verdicts = settle_calls(calls.lazy(), pairs_of(pairs).lazy())
    assert summarize(verdicts).equals(summarize(settled(pairs)), null_equal=True)
    assert failures_table(calls.lazy(), verdicts)["n_verdicts"].to_list() == [3, 3]


def test_failures_are_counted_by_kind_and_coverage_warns() -> None:
    pairs = [judged("first", "failed" if n < 2 else "tie", n) for n in range(10)]
    calls = calls_of(pairs)
    table = failures_table(calls.lazy(), settled(pairs))
    assert table.select("order", "kind", "n", "n_expected", "n_verdicts", "coverage").rows() == [
        ("ab", None, 0, 10, 10, 1.0),
        ("ba", "timeout", 2, 10, 8, 0.8),
    ]
    assert all("ab 1.0, ba 0.8" in text for text in table["warning"])


def with_messages(messages: dict[str, str | None]) -> pl.DataFrame:
    """Pairs that failed in ba, with the message of each."""
    pairs = [judged("first", "failed", int(name)) for name in messages]
    said = pl.col("pair_id").replace_strict(messages, return_dtype=pl.String)
    calls = calls_of(pairs).with_columns(
        message=pl.when(pl.col("failure").is_not_null()).then(said)
    )
    first, second = (
        failures_table(frame.lazy(), settled(pairs)) for frame in (calls, calls.reverse())
    )
    assert first.equals(second, null_equal=True)
    return first


@pytest.mark.parametrize(
    ("messages", "example"),
    [
        ({"2": "late", "1": "early", "3": "later"}, "early"),
        ({"1": None, "2": "the first that has one"}, "the first that has one"),
        ({"1": None}, None),
        ({"1": "two\n  lines"}, "two lines"),
        ({"1": "x" * 300}, "x" * 197 + "..."),
        ({"1": "KeyError: <object at 0x7f3cA0>"}, "KeyError: <object at 0x...>"),
        ({"1": "with Bearer abcdefghijk and sk-123456789"}, "with [key] and [key]"),
        ({"1": "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")}, "\U0001f600"),
    ],
)
def test_each_kind_of_failure_has_an_example(
    messages: dict[str, str | None], example: str | None
) -> None:
    table = with_messages(messages)
    assert table.select("order", "kind", "n", "example").rows() == [
        ("ab", None, 0, None),
        ("ba", "timeout", len(messages), example),
    ]


def test_without_messages_there_is_no_example() -> None:
    pairs = [judged("first", "failed")]
    table = failures_table(calls_of(pairs).lazy(), settled(pairs))
    assert table.schema["example"] == pl.String
    assert table["example"].null_count() == table.height


def test_even_coverage_and_a_single_order_warn_of_nothing() -> None:
    even = [judged("failed", "tie", 0), judged("tie", "failed", 1)]
    single = [judged("failed", None, 0), judged("tie", None, 1)]
    for pairs in (even, single):
        table = failures_table(calls_of(pairs).lazy(), settled(pairs))
        assert table["n"].sum() == sum(p.ab == "failed" for p in pairs) + sum(
            p.ba == "failed" for p in pairs
        )
        assert table["warning"].null_count() == table.height
