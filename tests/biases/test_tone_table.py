from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import special

from judgebias.biases.tone import TONE_COLUMNS, tone_table
from judgebias.tone import DENSITY_COLUMNS, KINDS
from tests.biases.judged_world import pair, verdicts, winner

WORLDS = 40


def world(
    n: int, *, seed: int = 1, length: float = 0.0, lists: float = 0.0
) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """A judge whose two orders agree, with weights for the log ratio and for list items."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(100, 1000, (n, 2))
    density = rng.gamma(2.0, 2.0, (n, len(DENSITY_COLUMNS)))
    table = pl.DataFrame(density, schema=list(DENSITY_COLUMNS), orient="row")
    table = table.with_columns(tables_a=0.0, tables_b=0.0)
    gap = (table["lists_a"] - table["lists_b"]).to_numpy()
    ratio = np.log((lengths[:, 0] + 1) / (lengths[:, 1] + 1))
    wins = rng.random(n) < special.expit(length * ratio + lists * gap)
    pairs = [
        pair(f"{k:04}", len_a=int(a), len_b=int(b), cluster=f"{k // 2}")
        for k, (a, b) in enumerate(lengths)
    ]
    said = [("j", f"{k:04}", *winner("A" if won else "B")) for k, won in enumerate(wins)]
    keyed = table.with_columns(task=pl.lit("t"), pair_id=pl.Series([f"{k:04}" for k in range(n)]))
    return verdicts(pairs, said), keyed.lazy()


def rows(table: pl.DataFrame) -> dict[str, dict[str, Any]]:
    assert tuple(table.columns) == TONE_COLUMNS
    return {row["covariate"]: row for row in table.filter(task="ALL").iter_rows(named=True)}


@pytest.mark.slow
def test_planted_weights_are_within_their_intervals() -> None:
    planted = {"length": 1.0, "headers": 0.0, "lists": 0.2, "bold": 0.0}
    inside = dict.fromkeys(planted, 0)
    for seed in range(WORLDS):
        found = rows(tone_table(*world(400, seed=seed, length=1.0, lists=0.2)))
        for covariate, weight in planted.items():
            row = found[covariate]
            inside[covariate] += row["slope_low"] < weight < row["slope_high"]
    assert min(inside.values()) >= 0.85 * WORLDS, inside


def test_a_row_per_covariate() -> None:
    found = rows(tone_table(*world(400, lists=0.5)))
    assert list(found) == ["length", *KINDS]
    assert found["lists"]["slope_low"] > 0
    assert (found["length"]["n"], found["length"]["n_clusters"]) == (400, 200)
    for row in found.values():
        if row["slope"] is not None:
            assert row["slope_per_sd"] == pytest.approx(row["slope"] * row["sd_difference"])


def test_a_covariate_without_difference_is_left_out() -> None:
    row = rows(tone_table(*world(60)))["tables"]
    assert row["slope"] is None
    assert row["reason"] == "not available: no pair differs in it"


def test_a_taste_without_doubt_is_separated() -> None:
    found = rows(tone_table(*world(60, lists=1e6)))
    assert found["lists"]["slope"] is found["length"]["slope"] is None
    assert "separated" in found["lists"]["reason"]


def test_without_texts_nothing_is_available() -> None:
    settled, densities = world(12)
    without = rows(tone_table(settled))
    elsewhere = rows(tone_table(settled, densities.with_columns(task=pl.lit("u"))))
    assert without == elsewhere
    assert {row["reason"] for row in without.values()} == {"not available: texts are not known"}


def test_the_order_of_rows_does_not_change_a_bit() -> None:
    settled, densities = (frame.collect() for frame in world(80, lists=0.1))
    again = [f.sample(fraction=1.0, shuffle=True, seed=3).lazy() for f in (settled, densities)]
    table = tone_table(settled.lazy(), densities.lazy())
    assert table.write_csv() == tone_table(*again).write_csv()
