from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgebias.biases.panel_verdicts import panel_verdicts
from judgebias.biases.ranking import RANKING_COLUMNS, WINS_COLUMNS, ranking_table, wins_table
from tests.biases.sample_verdicts import STUCK, TIE, A, B, settled, votes

Row = dict[str, Any]
Slots = tuple[str | None, str | None]


def ranked(*said: tuple[str, str, Slots], **options: Any) -> dict[str | None, Row]:
    """Rank what one judge said of pairs of models."""
    models = {f"p{n}": (a, b) for n, (a, b, _) in enumerate(said)}
    table = ranking_table(
        settled(votes("j", *(slots for _, _, slots in said)), models=models, **options)
    )
    assert tuple(table.columns) == RANKING_COLUMNS
    return {row["model"]: row for row in table.iter_rows(named=True)}


def round_robin(*models: str) -> list[tuple[str, str, Slots]]:
    pairs = [(a, b) for a in models for b in models if a < b]
    return [
        (a, b, slots) for a, b in pairs for slots in (A, A, B, TIE, STUCK, ("second", "second"))
    ]


def test_known_answers(shared: Path, vicuna80: pl.LazyFrame) -> None:
    cases = json.loads((shared / "golden/ranking.json").read_text(encoding="utf-8"))["cases"]
    table = ranking_table(vicuna80)
    known = [case for case in cases if "judge" in case]
    assert len(known) == 3
    for case in known:
        mine = table.filter(pl.col("judge") == case["judge"])
        assert mine.height == len(case["strength"])
        for row in mine.iter_rows(named=True):
            assert row["strength"] == pytest.approx(case["strength"][row["model"]], abs=1e-6)
            assert row["strength_se"] == pytest.approx(case["strength_se"][row["model"]], abs=1e-4)
            assert row["order_effect_attenuated"] == pytest.approx(case["offset"], abs=1e-6)
            assert row["log_tie"] == pytest.approx(case["log_tie"], abs=1e-6)
            assert row["log_likelihood"] == pytest.approx(case["log_likelihood"], abs=1e-6)
            assert (row["n_fit"], row["n_clusters"]) == (case["n_calls"], case["clusters"])


def test_the_order_of_the_rows_changes_no_bit(vicuna80: pl.LazyFrame) -> None:
    shuffled = vicuna80.collect().sample(fraction=1, shuffle=True, seed=7).lazy()
    assert ranking_table(shuffled).equals(ranking_table(vicuna80))
    assert wins_table(shuffled).equals(wins_table(vicuna80))


def test_the_panel_is_ranked_by_its_verdicts_and_comes_last(vicuna80: pl.LazyFrame) -> None:
    table = ranking_table(pl.concat([vicuna80, panel_verdicts(vicuna80)]))
    panel = table.tail(5)
    assert set(panel["judge"]) == {"panel"}
    assert set(panel["basis"]) == {"final_verdicts"}
    assert set(panel["form"]) == {"ties"}
    assert panel["order_effect_attenuated"].is_null().all()
    assert panel["n_fit"].to_list() == [800] * 5
    assert panel["strength"].sum() == pytest.approx(0, abs=1e-9)
    assert panel["rank"].to_list() == [1, 2, 3, 4, 5]


def test_without_ties_the_model_has_no_tie_term() -> None:
    said = [(a, b, slots) for a, b, slots in round_robin("k", "l", "m") if "tie" not in slots]
    found = ranked(*said)
    assert {row["form"] for row in found.values()} == {"order"}
    assert {row["log_tie"] for row in found.values()} == {None}
    assert all(row["strength"] is not None for row in found.values())


def test_a_model_that_never_loses_has_no_strength_and_the_others_keep_theirs() -> None:
    found = ranked(*round_robin("k", "l"), ("best", "k", A), ("l", "best", B), ("k", "worst", A))
    assert found["best"]["strength"] is found["best"]["rank"] is None
    assert "never lost" in found["best"]["reason"]
    assert "never won" in found["worst"]["reason"]
    assert (found["best"]["wins"], found["best"]["losses"]) == (4, 0)
    assert found["k"]["strength"] == pytest.approx(-found["l"]["strength"])
    assert (found["k"]["component"], found["k"]["component_size"]) == (1, 2)
    assert found["k"]["reason"] is None


def test_a_model_between_two_islands_says_so() -> None:
    found = ranked(*round_robin("k", "l"), ("k", "mid", A), ("mid", "low", A))
    assert "no chain of wins" in found["mid"]["reason"]


def test_two_islands_have_ranks_of_their_own() -> None:
    found = ranked(*round_robin("k", "l"), *round_robin("x", "y"))
    assert {found["k"]["component"], found["l"]["component"]} == {1}
    assert {found["x"]["component"], found["y"]["component"]} == {2}
    assert sorted(row["rank"] for row in found.values()) == [1, 1, 2, 2]
    assert found["x"]["strength"] + found["y"]["strength"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([("k", "l", A)] * 8, "never"),
        ([("k", "l", TIE)] * 8, "all calls are ties"),
        ([("k", "l", STUCK)] * 8, "no finite maximum"),
    ],
)
def test_what_has_no_estimate_says_why(said: list[tuple[str, str, Slots]], words: str) -> None:
    for row in ranked(*said).values():
        assert row["strength"] is row["strength_low"] is row["rank"] is None
        assert words in row["reason"]


def test_one_order_of_two_models_cannot_tell_order_from_strength() -> None:
    found = ranked(*[("k", "l", A), ("k", "l", B)] * 8, orders=("ab",))
    assert all("one order only" in row["reason"] for row in found.values())


@pytest.mark.parametrize("models", [(None, None), ("k", "k"), ("k", None)])
def test_one_model_is_no_ranking(models: tuple[str | None, str | None]) -> None:
    said = settled(votes("j", A, B), models={"p0": models, "p1": models})
    (row,) = ranking_table(said).iter_rows(named=True)
    assert (row["judge"], row["model"], row["strength"]) == ("j", None, None)
    assert "two named, different models" in row["reason"]
    assert wins_table(said).is_empty()


def test_five_clusters_have_strengths_without_intervals() -> None:
    said = round_robin("k", "l")
    found = ranked(*said, clusters={f"p{n}": f"q{n % 5}" for n in range(len(said))})
    assert found["k"]["strength"] is not None
    assert found["k"]["strength_low"] is found["k"]["strength_se"] is None
    assert "fewer than 6" in found["k"]["reason"]


def test_failed_calls_leave_the_other_order() -> None:
    found = ranked(*round_robin("k", "l"), ("k", "l", ("first", None)), ("k", "l", (None, None)))
    assert found["k"]["n"] == found["k"]["n_fit"] == 13


def test_wins_are_a_matrix_in_long_form() -> None:
    models = {"p0": ("l", "k"), "p1": ("k", "l"), "p2": ("l", "k")}
    table = wins_table(settled(votes("j", A, STUCK, TIE), models=models))
    assert tuple(table.columns) == WINS_COLUMNS
    assert table.rows() == [
        ("j", "k", "l", "calls", 6, 1, 2, 3, pytest.approx(2 / 6)),
        ("j", "l", "k", "calls", 6, 3, 2, 1, pytest.approx(4 / 6)),
    ]


def test_no_verdicts_make_empty_tables() -> None:
    assert ranking_table(settled([])).is_empty()
    assert wins_table(settled([])).is_empty()
