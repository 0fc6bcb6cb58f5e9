"""The summary's figures per model pair, and position by the strength of the pairing."""

from __future__ import annotations

import random

import polars as pl
import pytest

from judgebias.summary import SUMMARY_COLUMNS, summarize
from judgebias.summary.matchups import matchups_table
from judgebias.summary.strength import BANDS, UNKNOWN, strength_table
from tests.summary.verdict_frames import judged, settled
from tests.summary.verdict_oracle import Judged

ALIKE = [name for name in SUMMARY_COLUMNS if name not in ("q_position", "position_bias")]
MODELS = ("m0", "m1", "m2", None)


def some(seed: int, n: int = 240, *, repeats: int = 1) -> list[Judged]:
    draw = random.Random(seed)
    ends = ["first", "first", "second", "tie", "failed", None]
    return [
        judged(
            *draw.choices(ends, k=2),
            # The same pair_id in two tasks is two pairs.
            pair_id=f"{k // 2}",
            task=f"t{k % 2}",
            repeat=r,
            gold=draw.choice(["A", "B", "tie", None]),
            cluster=draw.choice([None, f"q{k % 9}"]) if repeats == 1 else None,
        )
        for k in range(n)
        for r in range(1, repeats + 1)
    ]


def with_models(pairs: list[Judged]) -> pl.LazyFrame:
    number = pl.col("pair_id").cast(pl.Int64)
    names = dict(enumerate(MODELS))
    return settled(pairs).with_columns(
        model_a=(number % 4).replace_strict(names, return_dtype=pl.String),
        model_b=(number % 3).replace_strict(names, return_dtype=pl.String),
    )


@pytest.mark.parametrize(("seed", "repeats"), [(1, 1), (2, 1), (3, 3)])
def test_each_model_pair_is_summarised_as_if_alone(seed: int, repeats: int) -> None:
    verdicts = with_models(some(seed, repeats=repeats)).collect()
    matchups = matchups_table(verdicts.lazy())
    named = verdicts.drop_nulls(["model_a", "model_b"])
    pairs = named.select("model_a", "model_b").unique().rows()
    assert matchups.select("model_a", "model_b").unique().height == len(pairs) == 9
    for model_a, model_b in pairs:
        mine = (pl.col("model_a") == model_a) & (pl.col("model_b") == model_b)
        expected = summarize(named.filter(mine).lazy()).select(ALIKE)
        assert matchups.filter(mine).select(ALIKE).equals(expected, null_equal=True)


def test_all_matchups_of_the_table_are_one_family() -> None:
    matchups = matchups_table(with_models(some(4, 2000)))
    tested = matchups.filter(pl.col("q_position").is_not_null(), pl.col("task") != "ALL")
    assert tested.height == 18
    smallest = tested.sort("p_position").row(0, named=True)
    assert smallest["q_position"] <= smallest["p_position"] * 18
    assert tested["q_position"].min() > tested["p_position"].min()


def test_order_of_rows_and_of_columns() -> None:
    pairs = some(5)
    one, two = (matchups_table(with_models(made)) for made in (pairs, pairs[::-1]))
    assert one.equals(two, null_equal=True)
    assert one.columns == ["judge", "task", "model_a", "model_b", *SUMMARY_COLUMNS[2:]]
    assert one["task"].unique(maintain_order=True).to_list() == ["t0", "t1", "ALL"]


def test_pairs_that_name_no_models_have_no_matchup() -> None:
    verdicts = settled([judged("first", "first")]).with_columns(model_a=pl.lit(None, pl.String))
    assert matchups_table(verdicts).is_empty()
    assert strength_table(verdicts).is_empty()


def pairing(n: int, *, wins: int, stuck: int, x: str = "x", y: str = "y") -> pl.DataFrame:
    """n agreed pairs of which A wins some, and pairs stuck on first."""
    ends = [("first", "second")] * wins + [("second", "first")] * (n - wins)
    made = [judged(*end, k, task=f"{x}{y}") for k, end in enumerate(ends)]
    made += [judged("first", "first", 1000 + k, task=f"{x}{y}") for k in range(stuck)]
    return settled(made).with_columns(model_a=pl.lit(x), model_b=pl.lit(y)).collect()


@pytest.mark.parametrize(
    ("n", "wins", "band"),
    [
        (10, 5, "0.0 to 0.1"),
        (10, 6, "0.1 to 0.2"),
        (10, 4, "0.1 to 0.2"),
        (100, 59, "0.0 to 0.1"),
        (8, 8, "0.4 to 0.5"),
        (10, 9, "0.4 to 0.5"),
        (100, 11, "0.3 to 0.4"),
        (5, 5, UNKNOWN),
    ],
)
@pytest.mark.parametrize("stuck", [0, 40])
def test_band_of_a_pairing_does_not_hear_of_stuck_pairs(
    n: int, wins: int, stuck: int, band: str
) -> None:
    table = strength_table(pairing(n, wins=wins, stuck=stuck).lazy())
    assert table["band"].to_list() == [band, band]
    assert table["stuck_first"].to_list() == [stuck, stuck]
    assert band in BANDS


def test_both_orientations_are_one_pairing_and_bands_count_pairings() -> None:
    parts = [
        pairing(6, wins=6, stuck=1),
        pairing(6, wins=0, stuck=1, x="y", y="x"),
        pairing(20, wins=10, stuck=9, x="x", y="z"),
    ]
    total = strength_table(pl.concat(parts).lazy()).filter(pl.col("task") == "ALL")
    found = total.select("band", "n_pairings", "n_complete", "lean_first").rows()
    assert found == [("0.0 to 0.1", 1, 29, 9), ("0.4 to 0.5", 1, 14, 2)]
    assert "win_rate_a" not in total.columns


def test_exchanging_a_and_b_changes_no_position_figure_by_strength() -> None:
    pairs = some(6)
    verdicts = with_models(pairs)
    swapped = verdicts.with_columns(
        model_a="model_b", model_b="model_a", state_ab="state_ba", state_ba="state_ab",
        cell=pl.col("cell").cast(pl.String).replace({"agreed_a": "agreed_b",
                                                     "agreed_b": "agreed_a"}),
    )  # fmt: skip
    one, two = strength_table(verdicts), strength_table(swapped)
    mirrored = ["agreed_a", "agreed_b"]
    assert one.drop(mirrored).equals(two.drop(mirrored), null_equal=True)
    assert one["agreed_a"].equals(two["agreed_b"].alias("agreed_a"))
