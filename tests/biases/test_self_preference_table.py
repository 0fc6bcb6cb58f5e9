from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from judgebias.biases.self_preference import SELF_PREFERENCE_COLUMNS, self_preference_table
from judgebias.families import Families
from tests.biases.judged_world import pair, verdicts, winner
from tests.biases.test_length_table import recorded

STRENGTH = {"house-1": 0.8, "house-2": 0.2, "north": 0.0, "east": -0.4, "west": -0.7}
JUDGES = {"h": "house", "n": "north", "e": "east"}
FAMILIES = Families.of(named=JUDGES.values())
NO_WORD = ("gamma", "gamma_low", "gamma_high", "p_gamma", "q_gamma", "alpha", "offset")


def world(
    questions: int, *, bonus: float, scale: float = 1.0, seed: int = 0, clusters: bool = True
) -> pl.LazyFrame:
    """Three judges on all pairs of five models; only judge h has a bonus and a scale."""
    rng = np.random.default_rng(seed)
    pairs, said = [], []
    for question in range(questions):
        for a, b in combinations(STRENGTH, 2):
            name = f"{question:03} {a} {b}"
            cluster = f"q{question}" if clusters else None
            pairs.append(pair(name, model_a=a, model_b=b, cluster=cluster))
            for judge, family in JUDGES.items():
                own = a.startswith(family) - b.startswith(family)
                x = (scale if judge == "h" else 1.0) * (STRENGTH[a] - STRENGTH[b])
                x += bonus * own if judge == "h" else 0.0
                latent = [s * x + 0.3 + rng.logistic() for s in (1, -1)]
                slots = ["tie" if abs(v) < 0.02 else "first" if v > 0 else "second" for v in latent]
                said.append((judge, name, slots[0], slots[1]))
    return verdicts(pairs, said)


def row_of(table: pl.DataFrame, judge: str, task: str = "ALL") -> dict[str, Any]:
    assert tuple(table.columns) == SELF_PREFERENCE_COLUMNS
    return table.filter(judge=judge, task=task).row(0, named=True)


def found(frame: pl.LazyFrame) -> pl.DataFrame:
    return self_preference_table(frame, judges=JUDGES, families=FAMILIES)


def test_a_planted_bonus_is_found_and_is_the_judges_own() -> None:
    table = found(world(60, bonus=1.2))
    row = row_of(table, "h")
    assert row["gamma_low"] < 1.2 < row["gamma_high"]
    assert (row["self_preference"], row["own_models"]) == ("own", "house-1, house-2")
    assert row["raw_difference"] > 0.1
    for judge in ("n", "e"):
        assert row_of(table, judge)["self_preference"] == "none detected"


def test_a_noisy_judge_has_a_raw_difference_and_no_flag() -> None:
    row = row_of(found(world(60, bonus=0.0, scale=0.1)), "h")
    assert row["raw_difference"] < -0.05
    assert row["self_preference"] == "none detected"
    assert row["alpha"] < 0.5


def test_pairs_without_a_question_are_clusters_by_themselves() -> None:
    row = row_of(found(world(20, bonus=1.0, clusters=False)), "h")
    assert row["n_clusters"] > 150
    assert row["gamma_low"] < 1.0 < row["gamma_high"]


def test_rates_are_of_the_pairs_that_others_judged() -> None:
    a = {"model_a": "house-1", "model_b": "west"}
    pairs = [pair("1", **a), pair("2", model_a="west", model_b="house-2"), pair("3", **a)]
    said = [
        *(("h", "1", *winner("A")), ("h", "2", *winner("tie")), ("h", "3", *winner("B"))),
        *(("n", "1", *winner("B")), ("n", "2", *winner("B")), ("e", "1", *winner("A"))),
    ]
    row = row_of(found(verdicts(pairs, said)), "h")
    assert (row["n_own_pairs"], row["own_win_rate"], row["n_ties"]) == (2, 0.75, 2)
    assert row["others_win_rate"] == pytest.approx(2 / 3)


M = {"model_a": "house-1", "model_b": "west"}
N = {"model_a": "north", "model_b": "west"}


@pytest.mark.parametrize(
    ("pairs", "judges", "reason"),
    [
        ([{}], "h n", "the models of the answers are not known"),
        ([{"model_a": "house-1", "model_b": "house-1"}], "h n", "models of the answers"),
        ([N], "h n", "it judged no answer of its own family"),
        ([M, N], "h", "no judge of another family"),
        ([M, N], "h n", "no model both won and lost"),
    ],
)
def test_what_is_missing_is_named(pairs: Any, judges: str, reason: str) -> None:
    made = [pair(f"{k}", **about) for k, about in enumerate(pairs)]
    said = [(j, str(p["pair_id"]), *winner("A")) for p in made for j in judges.split()]
    row = row_of(found(verdicts(made, said)), "h")
    assert row["self_preference"] == "not available"
    assert reason in row["reason"]
    assert all(row[name] is None for name in NO_WORD)


def test_a_judge_without_doubt_is_separated() -> None:
    """It follows the strengths of the others without a fault, so nothing bounds its slope."""
    settled = world(40, bonus=0.0).collect()
    better = pl.col("model_a").replace_strict(STRENGTH) > pl.col("model_b").replace_strict(STRENGTH)
    slots = {
        "slot_ab": pl.when(better).then(pl.lit("first")).otherwise(pl.lit("second")),
        "slot_ba": pl.when(better).then(pl.lit("second")).otherwise(pl.lit("first")),
    }
    certain = settled.with_columns(
        pl.when(pl.col("judge") == "h")
        .then(slot)
        .otherwise(pl.col(name).cast(pl.String))
        .alias(name)
        for name, slot in slots.items()
    )
    row = row_of(found(certain.lazy()), "h")
    assert row["gamma"] is None
    assert "separated" in row["reason"]


@pytest.mark.slow
def test_recorded_judges_of_three_families(shared: Path) -> None:
    settled = recorded(shared / "data/prd_vicuna80").collect()
    table = self_preference_table(settled.lazy())
    assert dict(table.filter(task="ALL").select("judge", "family").iter_rows()) == {
        "claude": "claude",
        "gpt4": "gpt",
        "vicuna-13b": "vicuna",
    }
    assert table.height == 3 * 10
    numbers = table.select(pl.col(pl.Float64)).unpivot()["value"].drop_nulls()
    assert numbers.is_finite().all()
    shuffled = settled.sample(fraction=1.0, shuffle=True, seed=3).lazy()
    assert table.write_csv() == self_preference_table(shuffled).write_csv()
