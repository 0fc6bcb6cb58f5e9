"""What must hold for any judge."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import polars as pl
import pytest

from judgebias.summary import repeats_table, settle_calls, several_models, summarize
from judgebias.summary.profiles import count
from judgebias.summary.rows import position_words
from judgebias.verdicts import Cell
from tests.summary.verdict_frames import calls_of, judged, pairs_of, settled
from tests.summary.verdict_oracle import Judged

SWAPPED = {"A": "B", "B": "A", "tie": "tie", None: None}
POSITION = [
    *("consistency", "position_bias_rate", "first_position_rate", "p_value", "lean_first"),
    *("lean_second", "lean_rate", "p_paired", "p_position", "q_position", "position_bias"),
    *("offset", "offset_low", "offset_high", "detectable_offset", "swing", "swing_low"),
    *("p_preference", "ties", "decisive_pairs", "agreement", "kappa", "kappa_low"),
]


def some_pairs(seed: int, n: int = 60) -> list[Judged]:
    random = Random(seed)
    slots = ["first", "first", "second", "tie"]
    return [
        judged(
            random.choice(slots),
            random.choice(slots),
            number,
            task=random.choice("st"),
            gold=random.choice(["A", "B", "tie", None]),
            cluster=random.choice([None, *"pqrstuvw"]),
        )
        for number in range(n)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_swapping_answers_swaps_wins_and_no_position_figure(seed: int) -> None:
    pairs = some_pairs(seed)
    swapped = [replace(p, ab=p.ba, ba=p.ab, gold=SWAPPED[p.gold]) for p in pairs]
    before, after = summarize(settled(pairs)), summarize(settled(swapped))
    assert before.select(POSITION).equals(after.select(POSITION), null_equal=True)
    assert before["wins_a"].equals(after["wins_b"])
    assert before["wins_b"].equals(after["wins_a"])
    np.testing.assert_allclose(before["win_rate_a"], 1 - after["win_rate_a"], rtol=0, atol=1e-12)


def test_judge_that_always_says_first_is_stuck_on_first() -> None:
    row = summarize(settled([judged("first", "first", n) for n in range(40)])).row(-1, named=True)
    assert row["stuck_first"] == row["n_complete"] == 40
    assert row["consistency"] == 0.0
    assert row["first_position_rate"] == 1.0
    assert row["position_bias_rate"] == 1.0
    assert row["position_bias"] == "first"
    assert row["p_position"] == row["p_paired"] == 2 / 2**40
    assert row["offset"] is None
    assert row["offset_low"] > 0
    assert row["offset_high"] is None


def test_judge_that_agrees_with_itself_has_no_p_but_an_interval_with_width() -> None:
    row = summarize(settled([judged("first", "second", n) for n in range(40)])).row(-1, named=True)
    assert row["consistency"] == row["win_rate_a"] == 1.0
    assert row["p_position"] is row["p_paired"] is row["q_position"] is None
    assert row["position_bias"] == "too few"
    assert row["swing_low"] < 0 < row["swing_high"]


def test_each_pair_as_a_named_cluster_is_the_same_as_no_cluster() -> None:
    pairs = [replace(pair, cluster=None) for pair in some_pairs(1)]
    named = [replace(pair, cluster=f"c{pair.pair_id}") for pair in pairs]
    assert summarize(settled(pairs)).equals(summarize(settled(named)), null_equal=True)


def test_clusters_span_tasks_in_the_row_over_all() -> None:
    pairs = [judged("first", "first", n, task=f"t{n % 4}", cluster=f"{n // 4}") for n in range(40)]
    clusters = dict(summarize(settled(pairs)).select("task", "n_clusters").iter_rows())
    assert clusters == {"t0": 10, "t1": 10, "t2": 10, "t3": 10, "ALL": 10}


def test_a_large_cluster_is_packed_without_loss() -> None:
    slots = [("first", "second"), ("first", "first"), ("second", "tie"), ("tie", "tie")]
    pairs = [
        judged(*slots[n % 4], n, cluster="big", gold=["A", "B", "tie", None][n // 4 % 4])
        for n in range(4000)
    ]
    pairs += [judged("first", "first", 4000 + n, cluster=f"{n}") for n in range(7)]
    tally = count(settled(pairs))["j", "ALL"]
    assert tally.profiles.multiplicity.tolist() == [
        1,
        7,
    ] or tally.profiles.multiplicity.tolist() == [7, 1]
    assert int(tally.profiles.counts.sum(axis=1) @ tally.profiles.multiplicity) == 4007
    row = summarize(settled(pairs)).row(-1, named=True)
    assert {cell: row[cell] for cell in map(str, Cell)} == {
        "agreed_a": 1000,
        "agreed_b": 0,
        "agreed_tie": 1000,
        "stuck_first": 1007,
        "stuck_second": 0,
        "half_first": 0,
        "half_second": 1000,
    }
    assert row["n_gold"] == 3000


def test_repeats_share_the_cluster_of_their_pair() -> None:
    pairs = [judged("first", "first", n, repeat=r) for n in range(8) for r in (1, 2, 3)]
    row = summarize(settled(pairs)).row(-1, named=True)
    assert (row["n_pairs"], row["n_clusters"], row["n_leaning_clusters"]) == (24, 8, 8)
    assert row["p_position"] == 2 / 2**8
    table = repeats_table(settled(pairs))
    assert table.columns[:3] == ["judge", "task", "repeat"]
    assert table["repeat"].to_list() == [1, 2, 3, 1, 2, 3]
    assert set(table["n_clusters"]) == {8}


def test_nothing_repeated_gives_an_empty_table_with_its_columns() -> None:
    table = repeats_table(settled([judged("first", "tie")]))
    assert table.height == 0
    assert "q_position" in table.columns


def test_one_order_gives_the_rate_over_all_calls() -> None:
    pairs = [judged("first" if n < 6 else "second", None, n) for n in range(8)]
    row = summarize(settled(pairs)).row(-1, named=True)
    assert row["n_single"] == row["n_pairs"] == 8
    assert row["first_position_rate"] == 0.75
    assert row["p_value"] == pytest.approx(2 * (1 + 8 + 28) / 2**8)
    assert row["consistency"] is row["lean_rate"] is row["first_position_rate_low"] is None


def test_tasks_with_opposite_directions_are_told() -> None:
    pairs = [judged(slot, slot, n, task=slot) for slot in ("first", "second") for n in range(20)]
    summary = summarize(settled(pairs))
    assert summary["p_tasks_differ"].to_list()[:2] == [None, None]
    assert summary["p_tasks_differ"][-1] < 1e-6
    assert summary["position_bias"].to_list() == ["first", "second", "none detected"]


@pytest.mark.parametrize(
    ("lean", "swing", "q", "said"),
    [
        (0.2, 0.1, 0.01, "first"),
        (-0.2, -0.1, 0.01, "second"),
        (0.2, -0.1, 0.01, "first (mixed)"),
        (-0.2, 0.1, 0.049, "second (mixed)"),
        (0.2, 0.0, 0.01, "first"),
        (0.2, 0.1, 0.05, "none detected"),
        (0.2, 0.1, None, "too few"),
    ],
)
def test_words_on_position_bias(lean: float, swing: float, q: float | None, said: str) -> None:
    assert position_words({"lean_rate": lean, "swing": swing}, q) == said


def test_several_model_pairs_are_named_per_row() -> None:
    pairs = [judged("first", "tie", 1, task="s"), judged("first", "tie", 2, task="t")]
    table = pairs_of(pairs).with_columns(model_a=pl.when(pl.col("task") == "s").then(pl.lit("z")))
    verdicts = settle_calls(calls_of(pairs).lazy(), table.lazy())
    assert several_models(verdicts) == {("j", "ALL")}
