from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgebias.biases.agreement import AGREEMENT_COLUMNS, agreement_table
from tests.biases.sample_verdicts import HALF, STUCK, TIE, A, B, settled, votes

Row = dict[str, Any]


def rows(table: pl.DataFrame, **wanted: str) -> list[Row]:
    return [
        row
        for row in table.iter_rows(named=True)
        if all(row[name] == value for name, value in wanted.items())
    ]


def test_known_answers(shared: Path, vicuna80: pl.LazyFrame) -> None:
    known = json.loads((shared / "golden/agreement.json").read_text(encoding="utf-8"))
    table = agreement_table(vicuna80)
    assert tuple(table.columns) == AGREEMENT_COLUMNS
    for pair in known["pairwise"]:
        a, b = pair["judges"]
        (row,) = rows(table, comparison="judges", rater_a=a, rater_b=b)
        assert row["n"] == pair["n"]
        assert row["kappa"] == pytest.approx(pair["kappa"], abs=1e-9)
        assert row["kappa_low"] < row["kappa"] < row["kappa_high"]
    (alpha,) = rows(table, comparison="judges_alpha")
    assert alpha["alpha"] == pytest.approx(known["alpha"], abs=1e-9)
    assert alpha["alpha_low"] < alpha["alpha"] < alpha["alpha_high"]
    assert (alpha["n"], alpha["n_clusters"]) == (800, 80)
    (panel,) = rows(table, comparison="judge_people", rater_a="panel")
    assert panel["n"] == known["panel"]["n_gold"]
    assert panel["kappa"] == pytest.approx(known["panel"]["kappa_gold"], abs=1e-9)


def test_the_order_of_the_rows_changes_no_bit(vicuna80: pl.LazyFrame) -> None:
    shuffled = vicuna80.collect().sample(fraction=1, shuffle=True, seed=3).lazy()
    assert agreement_table(shuffled).equals(agreement_table(vicuna80))


def test_confusion_and_agreement_of_two_judges() -> None:
    said = settled(
        [*votes("x", A, A, B, TIE, STUCK, A, A), *votes("y", A, B, B, HALF, A, A, (None, "tie"))]
    )
    (row,) = rows(agreement_table(said), comparison="judges")
    cells = {name: row[name] for name in row if name.startswith("n_") and name != "n_clusters"}
    assert {name for name, n in cells.items() if n} == {
        *("n_A_A", "n_A_B", "n_B_B", "n_tie_tie", "n_tie_A")
    }
    assert (row["n"], row["n_clusters"], row["n_A_A"]) == (6, 6, 2)
    assert row["agreement"] == pytest.approx(4 / 6)


def test_one_order_against_both_on_the_same_pairs() -> None:
    said = votes("x", A, A, STUCK, STUCK, B, ("first", None))
    gold = {"p0": "A", "p1": "A", "p2": "A", "p3": "B", "p4": "A", "p5": "A"}
    table = agreement_table(settled(said, gold=gold))
    found = {row["basis"]: row for row in rows(table, comparison="judge_people")}
    assert {found[basis]["n"] for basis in ("both_orders", "order_ab", "order_ba")} == {5}
    assert found["both_orders"]["agreement"] == pytest.approx(2 / 5)
    assert found["order_ab"]["agreement"] == pytest.approx(3 / 5)
    assert found["order_ba"]["agreement"] == pytest.approx(3 / 5)
    assert (found["stuck"]["n"], found["stuck"]["agreement"]) == (2, 0.0)
    assert found["stuck"]["kappa"] is None
    assert "one and the same" in found["stuck"]["reason"]
    assert (found["agreed"]["n"], found["agreed_a"]["n"], found["half"]["n"]) == (3, 2, 0)


def test_single_calls_stand_where_there_is_one_order_only() -> None:
    gold = {"p0": "A", "p1": "B"}
    table = agreement_table(settled(votes("x", A, A), gold=gold, orders=("ab",)))
    found = {row["basis"]: row for row in rows(table, comparison="judge_people")}
    assert (found["order_ab"]["n"], found["order_ab"]["agreement"]) == (2, 0.5)
    assert (found["order_ba"]["n"], found["both_orders"]["n"]) == (0, 0)


def test_repeats_share_the_cluster_of_their_pair() -> None:
    said = [*votes("x", *[A, B] * 4), *votes("y", *[A, A] * 4)]
    (row,) = rows(agreement_table(settled(said, repeats={"x": 3, "y": 3})), comparison="judges")
    assert (row["n"], row["n_clusters"]) == (24, 8)


@pytest.mark.parametrize(
    ("said", "gold", "comparison", "words"),
    [
        (votes("x", A, A), {}, "judge_people", "no pair has both labels"),
        (votes("x", A, A), {}, "judges_alpha", "no pair has two labels"),
        (votes("x", A, A), {}, "judge_panel_of_others", "0 other judges"),
        ([*votes("x", A), *votes("y", A)], {}, "judge_panel_of_others", "1 other judges"),
        ([*votes("x", A), *votes("y", A)], {}, "judges", "same one label"),
        ([*votes("x", A, A), *votes("y", A, A)], {}, "judges_alpha", "one label throughout"),
        ([*votes("x", A, A), *votes("y", A, B)], {}, "judges", "one label throughout"),
    ],
)
def test_what_is_not_available_says_why(
    said: list[Any], gold: dict[str, str], comparison: str, words: str
) -> None:
    found = rows(agreement_table(settled(said, gold=gold)), comparison=comparison)
    assert found
    assert all(words in row["reason"] for row in found)


def test_people_are_compared_with_each_other() -> None:
    people = pl.LazyFrame(
        [
            {"task": "t", "pair_id": f"p{n}", "person": person, "label": label}
            for n in range(8)
            for person, label in (("one", "A" if n % 2 else "B"), ("two", "A" if n > 3 else "tie"))
        ]
    )
    table = agreement_table(settled(votes("x", *[A] * 8)), people=people)
    (row,) = rows(table, comparison="people")
    assert (row["rater_a"], row["rater_b"], row["n"], row["n_A_A"], row["n_B_tie"]) == (
        *("one", "two"),
        *(8, 2, 2),
    )
    (alpha,) = rows(table, comparison="people_alpha")
    assert alpha["n"] == 8
    assert alpha["alpha"] is not None


def test_no_verdicts_at_all_make_a_table() -> None:
    table = agreement_table(settled([]))
    assert [row["comparison"] for row in table.iter_rows(named=True)] == ["judges_alpha"]
