"""The self-pair probe as a table: counts, clusters of items, the flag, and what is missing."""

from __future__ import annotations

import random
from math import hypot, sqrt

import numpy as np
import polars as pl
import pytest

from judgebias.stats.binomial import sign_test_p, wilson
from judgebias.stats.clustered import agreement_rate
from judgebias.stats.interval import Z95
from judgebias.stats.sign_flip import sign_flip_p
from judgebias.summary import summarize
from judgebias.summary.probe import FLAG, NO_FLAG, PROBE_COLUMNS, probe_table
from tests.summary.verdict_frames import judged, settled

Call = tuple[str, str, str, str | None]
"""task, item, order, slot"""
SCHEMA = ["judge", "task", "item", "repeat", "order", "slot", "failure"]


def calls(*made: Call, judge: str = "j") -> pl.LazyFrame:
    rows = [
        (judge, task, item, 1, order, slot, None if slot else "timeout")
        for task, item, order, slot in made
    ]
    return pl.LazyFrame(rows, dict.fromkeys(SCHEMA, pl.String) | {"repeat": pl.Int64},
                        orient="row", strict=False)  # fmt: skip


def once(*slots: str | None, task: str = "t") -> list[Call]:
    return [(task, f"{n}", "ab", slot) for n, slot in enumerate(slots)]


def test_one_call_an_item_takes_the_plain_tests() -> None:
    made = once(*["first"] * 9, *["second"] * 2, *["tie"] * 19, *[None] * 3)
    task, total = probe_table(calls(*made), {"j": True}).to_dicts()
    interval = wilson(19, 30)
    assert interval is not None
    assert {**task, "task": "ALL"} == total
    assert [total[name] for name in ("n_items", "n_items_judged", "n_calls")] == [33, 30, 33]
    assert [total[f"n_{end}"] for end in ("slot1", "slot2", "tie", "failed")] == [9, 2, 19, 3]
    assert (total["tie_rate"], total["tie_rate_low"]) == (19 / 30, interval.low)
    assert (total["slot1_pull"], total["slot2_pull"]) == (0.3, 2 / 30)
    assert total["p_value"] == total["p_items"] == sign_test_p(9, 11)
    assert total["flag"] == FLAG


def test_calls_of_an_item_are_one_cluster() -> None:
    slots = [("first", "first"), ("tie", "tie"), ("first", "second"), ("tie", "tie")] * 4
    made: list[Call] = [
        ("t", f"{n}", order, slot)
        for n, pair in enumerate(slots)
        for order, slot in zip(("ab", "ba"), pair, strict=True)
    ]
    row = probe_table(calls(*made), {"j": True}).row(0, named=True)
    interval, _ = agreement_rate([0, 2], [2, 2], [8, 8])
    assert interval is not None
    assert (row["tie_rate_low"], row["tie_rate_high"]) == (interval.low, interval.high)
    assert row["p_value"] == sign_test_p(12, 16)
    assert row["p_items"] == sign_flip_p([2, 0], [4, 12])
    assert row["p_items"] > row["p_value"]


def test_same_item_name_in_two_tasks_is_two_items() -> None:
    made = [*once("tie", "first", task="t"), *once("tie", "second", task="u")]
    table = probe_table(calls(*made), {"j": True})
    assert table["task"].to_list() == ["t", "u", "ALL"]
    assert table["n_items"].to_list() == [2, 2, 4]


@pytest.mark.parametrize(
    ("has_tie", "slots", "flag", "reason"),
    [
        (True, ["tie"] * 200, NO_FLAG, "no verdict for either slot"),
        (True, ["first", "second"] * 20, FLAG, None),
        (False, ["first", "second"] * 20, None, "the template has no tie option"),
        (None, ["first", "second"] * 20, None, "is not known"),
        (None, ["first", "second", "tie"] * 20, FLAG, None),
        (True, [None] * 20, None, "no verdict on identical texts"),
    ],
)
def test_flag_and_reason(
    has_tie: bool | None, slots: list[str | None], flag: str | None, reason: str | None
) -> None:
    row = probe_table(calls(*once(*slots)), {"j": has_tie}).row(0, named=True)
    assert row["flag"] == flag
    assert (row["reason"] is None) if reason is None else reason in row["reason"]
    assert (row["tie_rate"] is None) == (flag is None)


def test_few_items_asked_twice_have_no_interval_and_say_so() -> None:
    made: list[Call] = [("t", "1", order, "tie") for order in ("ab", "ba")]
    row = probe_table(calls(*made), {"j": True}).row(0, named=True)
    assert (row["tie_rate"], row["tie_rate_low"], row["flag"]) == (1.0, None, None)
    assert "fewer than 6 items" in row["reason"]


def test_order_of_the_rows_changes_nothing() -> None:
    made = [
        *once(*["first", "tie", None, "second"] * 30, task="t"),
        *once(*["first", "tie"] * 30, task="u"),
    ]
    mixed = random.Random(1).sample(made, len(made))
    assert probe_table(calls(*mixed)).equals(probe_table(calls(*made)), null_equal=True)


def test_nothing_asked_is_an_empty_table() -> None:
    table = probe_table(calls())
    assert table.is_empty()
    assert dict(table.schema) == PROBE_COLUMNS


@pytest.mark.parametrize("planted", [-0.6, 0.0, 0.4])
@pytest.mark.parametrize("seed", range(4))
def test_probe_and_full_run_of_one_judge_know_the_same_offset(planted: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    gaps = draw.normal(0, 1, 3000)
    logits = np.stack([gaps + planted, planted - gaps, np.full(3000, planted)], axis=1)
    said = np.where(draw.random((3000, 3)) < 1 / (1 + np.exp(-logits)), "first", "second").tolist()
    full = summarize(settled([judged(ab, ba, n) for n, (ab, ba, _) in enumerate(said)]))
    probe = probe_table(calls(*once(*[same for _, _, same in said])), {"j": False})
    row, found = full.row(-1, named=True), probe.row(-1, named=True)
    full_se = (row["offset_high"] - row["offset_low"]) / (2 * Z95)
    probe_se = sqrt(1 / found["n_slot1"] + 1 / found["n_slot2"])
    # Two independent estimates: the gap between them has both their errors.
    assert abs(row["offset"] - found["offset"]) < 3 * hypot(full_se, probe_se)
    assert abs(row["offset"] - planted) < 3 * full_se
    assert abs(found["offset"] - planted) < 3 * probe_se
