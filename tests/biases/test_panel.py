from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgebias.biases.panel import PANEL_COLUMNS, panel_table
from judgebias.biases.panel_verdicts import VOTE_COLUMNS, panel_verdicts, panel_votes
from judgebias.summary import VERDICT_COLUMNS
from tests.biases.sample_verdicts import HALF, STUCK, TIE, A, B, settled, votes

NONE = (None, None)


def row_of(table: pl.DataFrame, panel: str, judge: str | None = None) -> dict[str, Any]:
    (row,) = (
        row
        for row in table.iter_rows(named=True)
        if row["panel"] == panel and (judge is None or row["judge"] == judge)
    )
    return row


def finals(verdicts: pl.LazyFrame, **options: int) -> list[str | None]:
    return panel_verdicts(verdicts, **options).collect()["final"].to_list()


def test_known_answers(shared: Path, vicuna80: pl.LazyFrame) -> None:
    known = json.loads((shared / "golden/agreement.json").read_text(encoding="utf-8"))["panel"]
    table = panel_table(vicuna80)
    row = row_of(table, "majority")
    assert tuple(table.columns) == PANEL_COLUMNS
    assert (row["n_pairs"], row["n_no_verdict"]) == (known["n"], 0)
    assert (row["wins_a"], row["wins_b"], row["ties"]) == (known["A"], known["B"], known["tie"])
    assert row["n_gold"] == known["n_gold"]
    assert row["kappa"] == pytest.approx(known["kappa_gold"], abs=1e-9)


def test_the_order_of_the_rows_changes_no_bit(vicuna80: pl.LazyFrame) -> None:
    shuffled = vicuna80.collect().sample(fraction=1, shuffle=True, seed=5).lazy()
    assert panel_table(shuffled).equals(panel_table(vicuna80))
    one, other = (panel_verdicts(frame).collect() for frame in (shuffled, vicuna80))
    assert one.equals(other)


def test_the_majority_is_more_than_half() -> None:
    said = [
        *votes("x", A, A, A, B, A, A, NONE),
        *votes("y", A, B, TIE, B, B, NONE, NONE),
        *votes("z", B, B, B, B, STUCK, NONE, A),
    ]
    assert finals(settled(said)) == ["A", "B", "tie", "B", "tie", None, None]
    assert finals(settled(said), quorum=1)[-2:] == ["A", "A"]


def test_a_panel_is_one_more_judge() -> None:
    said = settled([*votes("x", A, B), *votes("y", A, B)], gold={"p0": "B"})
    panel = panel_verdicts(said).collect()
    whole = pl.concat([said.collect(), panel])
    assert panel.columns[: len(VERDICT_COLUMNS)] == list(VERDICT_COLUMNS)
    assert panel["judge"].to_list() == ["panel", "panel"]
    assert panel["cell"].is_null().all()
    # A panel that is already there does not vote.
    assert panel_verdicts(whole.lazy()).collect().equals(panel)
    assert panel_table(whole.lazy()).equals(panel_table(said))


def test_order_made_ties_can_be_set_aside() -> None:
    said = [
        *votes("x", A, A, STUCK, A, TIE),
        *votes("y", STUCK, STUCK, STUCK, TIE, TIE),
        *votes("z", HALF, B, HALF, TIE, STUCK),
    ]
    found = panel_votes(settled(said))
    assert tuple(found.columns) == VOTE_COLUMNS
    assert found["majority"].to_list() == ["tie", "tie", "tie", "tie", "tie"]
    assert found["not_order_made"].to_list() == ["A", "tie", None, "tie", "tie"]
    assert found["votes_order_made"].to_list() == [2, 1, 3, 0, 1]
    assert found["mean_preference"].to_list() == pytest.approx([4 / 6, 0.5, 0.5, 4 / 6, 0.5])
    row = row_of(panel_table(settled(said)), "mean_preference")
    assert (row["wins_a"], row["wins_b"], row["ties"]) == (2, 0, 3)


def test_a_family_has_one_vote() -> None:
    said = [
        *votes("f1", A, A),
        *votes("f2", A, B),
        *votes("f3", A, A),
        *votes("g", B, A),
        *votes("h", B, B),
    ]
    families = {"f1": "f", "f2": "f", "f3": "f"}
    table = panel_table(settled(said), families=families)
    majority, balanced = row_of(table, "majority"), row_of(table, "family_balanced")
    assert (majority["wins_a"], majority["wins_b"]) == (2, 0)
    assert (balanced["n_judges"], balanced["wins_a"], balanced["wins_b"]) == (3, 1, 1)
    assert "not known" in row_of(panel_table(settled(said)), "family_balanced")["reason"]
    one = panel_table(settled(said), families=dict.fromkeys(("f1", "f2", "f3", "g", "h"), "f"))
    assert row_of(one, "family_balanced")["reason"] == (
        "not available: 1 voters, and a panel needs 2"
    )


def test_what_the_panel_bought_over_the_best_judge() -> None:
    said = [
        *votes("x", *[A] * 9, B, B, B),
        *votes("y", *[A] * 6, B, B, B, *[A] * 3),
        *votes("z", *[B] * 3, *[A] * 9),
    ]
    gold = {f"p{n}": "A" for n in range(12)}
    row = row_of(panel_table(settled(said, gold=gold)), "majority")
    assert (row["best_judge"], row["n_common"]) == ("x", 12)
    assert (row["best_agreement"], row["panel_agreement"], row["gain"]) == (0.75, 1.0, 0.25)
    assert row["gain_low"] < 0.25 < row["gain_high"]


def test_without_gold_nothing_is_bought() -> None:
    row = row_of(panel_table(settled([*votes("x", A), *votes("y", A)])), "majority")
    assert row["wins_a"] == 1
    assert (row["n_gold"], row["agreement"], row["gain"], row["best_judge"]) == (
        0,
        None,
        None,
        None,
    )
    assert "no gold labels" in row["reason"]


def test_a_copy_of_a_judge_is_redundant() -> None:
    pattern = [A, B, TIE] * 20
    said = [*votes("x", *pattern), *votes("y", *pattern), *votes("z", *[A, A, B, B, TIE, TIE] * 10)]
    table = panel_table(settled(said))
    x, z = row_of(table, "without", "x"), row_of(table, "without", "z")
    assert (x["closest_judge"], x["closest_kappa"], x["redundant"]) == ("y", 1.0, True)
    assert z["redundant"] is False
    assert z["n_changed"] == 0
    assert x["n_changed"] > 0


@pytest.mark.parametrize("said", [[], votes("x", A, B)])
def test_one_judge_is_no_panel(said: list[Any]) -> None:
    table = panel_table(settled(said))
    assert "a panel needs 2" in row_of(table, "majority")["reason"]
    assert row_of(table, "majority")["wins_a"] is None
    assert panel_verdicts(settled(said)).collect().is_empty()
    assert panel_votes(settled(said))["majority"].is_null().all()
