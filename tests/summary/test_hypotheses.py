"""Every test of a run: families, both adjustments, and what nothing detected could have missed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

from judgebias.stats.multiplicity import benjamini_hochberg, holm
from judgebias.summary import repeats_table, summarize
from judgebias.summary.hypotheses import TEST_COLUMNS, Hypothesis, hypotheses_table
from judgebias.summary.matchups import matchups_table
from judgebias.summary.strength import strength_table
from tests.summary.verdict_frames import judged, settled
from tests.summary.verdict_oracle import Judged


def some(repeats: int = 2) -> list[Judged]:
    draw = random.Random(3)
    return [
        judged(*draw.choices(["first", "first", "second", "tie"], k=2), n, repeat=r,
               task="small" if n < 4 else f"t{n % 5}")
        for n in range(200)
        for r in range(1, repeats + 1)
    ]  # fmt: skip


def test_q_is_the_one_that_each_table_prints() -> None:
    verdicts = settled(some())
    tables = {
        "summary": summarize(verdicts),
        "repeats": repeats_table(verdicts),
        "matchups": matchups_table(verdicts),
        "matchup_strength": strength_table(verdicts),
    }
    tests = hypotheses_table(tables).filter(pl.col("test") == "p_position")
    for name, table in tables.items():
        mine = tests.filter(pl.col("table") == name)
        key = [table["task"] == "ALL", table["judge"], table["task"]]
        expected = table.with_columns(total=key[0]).sort("total", maintain_order=True)
        assert mine["q"].to_list() == expected["q_position"].to_list()
        assert mine["q"].null_count() > 0
        nothing = expected["position_bias"] == "none detected"
        assert nothing.any()
        found = mine["detectable_offset"].to_list()
        assert found == [
            offset if none else None
            for offset, none in zip(expected["detectable_offset"], nothing, strict=True)
        ]


def test_rows_that_are_not_tested_say_why_and_do_not_count() -> None:
    tests = hypotheses_table({"summary": summarize(settled(some()))})
    mine = tests.filter(pl.col("test") == "p_position", pl.col("task") != "ALL")
    small = mine.filter(pl.col("task") == "small").row(0, named=True)
    assert small["p"] is not None
    assert small["q"] is small["p_holm"] is None
    assert "too few" in small["reason"]
    assert mine["n_family"].unique().to_list() == [mine["q"].count()]
    assert small["family"] == (
        "p_position in summary, its 5 judge x task rows with at least 6 leaning clusters"
    )


def test_holm_stands_beside() -> None:
    tests = hypotheses_table({"summary": summarize(settled(some()))})
    mine = tests.filter(pl.col("test") == "p_paired", pl.col("task") != "ALL")
    p = mine["p"].to_list()
    assert mine["q"].to_list() == benjamini_hochberg(p)
    assert mine["p_holm"].to_list() == holm(p)
    assert len(p) == 6


def test_rows_are_named_by_what_sets_them_apart() -> None:
    verdicts = settled(some())
    tests = hypotheses_table(
        {"matchups": matchups_table(verdicts), "repeats": repeats_table(verdicts)}
    )
    assert set(tests["row"]) == {"model_a x, model_b y", "repeat 1", "repeat 2"}
    assert hypotheses_table({}).is_empty()
    assert dict(tests.schema) == TEST_COLUMNS


@pytest.mark.parametrize(
    ("test", "flagged", "after"), [("p_value", 25, None), ("p_paired", 52, 50)]
)
def test_published_settings(shared: Path, test: str, flagged: int, after: int | None) -> None:
    path = shared / "golden/published_two_order_table.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    table = pl.DataFrame(
        {
            "judge": [f"{row['judge']} {row['thinking']}" for row in rows],
            "task": [row["template"] for row in rows],
            test: [row[test] for row in rows],
        }
    )
    asked = {"published": (Hypothesis(column=test, question=""),)}
    tests = hypotheses_table({"published": table}, asked)
    assert tests.filter(pl.col("p") < 0.05).height == flagged
    if after is not None:
        assert tests.filter(pl.col("q") < 0.05).height == after
