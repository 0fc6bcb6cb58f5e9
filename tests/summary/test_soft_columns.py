"""Soft figures against their definitions, pair by pair; a bound is counted and no figure."""

from __future__ import annotations

from math import exp, log, sqrt
from random import Random
from statistics import mean, median
from typing import Any

import polars as pl
import pytest

from judgebias.stats.interval import t95
from judgebias.summary import settle_calls, summarize
from judgebias.summary.soft import SOFT_COLUMNS, soft_rows, with_soft

Call = dict[str, Any]
WORDS = ("p_first", "p_second", "p_tie")


def call(pair: str, order: str, p: tuple[float | None, ...], **more: Any) -> Call:
    known = [value or 0.0 for value in p]
    slot = ("first", "second", "tie")[known.index(max(known))]
    base = {"judge": "j", "task": "t", "pair_id": pair, "repeat": 1, "order": order, "slot": slot}
    return {**base, "failure": None, **dict(zip(WORDS, p, strict=True)), **more}


def figures(calls: list[Call], clusters: dict[str, str] | None = None) -> dict[str, Any]:
    """The soft figures of the ALL row."""
    return table(calls, clusters).filter(task="ALL").row(0, named=True)


def table(calls: list[Call], clusters: dict[str, str] | None = None) -> pl.DataFrame:
    types = {**dict.fromkeys(WORDS, pl.Float64), "slot": pl.String, "failure": pl.String}
    frame = pl.DataFrame(calls, schema_overrides=types).lazy()
    keys = frame.select("task", "pair_id").unique().collect()
    cluster = [(clusters or {}).get(pair) for pair in keys["pair_id"]]
    about = {"model_a": None, "model_b": None, "gold": None, "len_a": 1, "len_b": 2}
    pairs = keys.with_columns(
        pl.Series("cluster", cluster, dtype=pl.String),
        *(pl.lit(value).alias(name) for name, value in about.items()),
    ).lazy()
    return with_soft(summarize(settle_calls(frame, pairs)), soft_rows(frame, pairs))


def drawn(n: int, *, offset: float = 0.7, seed: int = 1) -> list[Call]:
    """Pairs whose words have logits content +- offset and a tie between."""
    draw, calls = Random(seed), list[Call]()
    for number in range(n):
        for order, sign in (("ab", 1), ("ba", -1)):
            x = offset + sign * draw.gauss(0, 1)
            weights = (exp(x / 2), exp(-x / 2), 0.5)
            calls.append(call(str(number), order, tuple(w / sum(weights) for w in weights)))
    return calls


def by_pair(calls: list[Call]) -> list[tuple[float, float]]:
    """Lean and score of each pair, by the definition."""
    orders = zip(calls[::2], calls[1::2], strict=True)
    found: list[tuple[float, float]] = []
    for ab, ba in orders:
        leans = [log(c["p_first"]) - log(c["p_second"]) for c in (ab, ba)]
        scores = [ab["p_first"] + ab["p_tie"] / 2, ba["p_second"] + ba["p_tie"] / 2]
        found.append((mean(leans), mean(scores)))
    return found


def test_means_median_and_intervals_of_lone_pairs() -> None:
    calls = drawn(40)
    row, pairs = figures(calls), by_pair(calls)
    leans, scores = [lean for lean, _ in pairs], [score for _, score in pairs]
    assert (row["n_soft"], row["n_soft_bounds"], row["n_soft_no_tie"]) == (40, 0, 0)
    assert row["offset_soft"] == pytest.approx(mean(leans), abs=1e-8)
    assert row["offset_soft_median"] == pytest.approx(median(leans), abs=1e-8)
    assert row["win_rate_a_soft"] == pytest.approx(mean(scores), abs=1e-8)
    squares = sum((lean - mean(leans)) ** 2 for lean in leans)
    half = t95(39) * sqrt(40 / 39 * squares / 40**2)
    assert row["offset_soft_high"] - row["offset_soft"] == pytest.approx(half, abs=1e-8)
    # Two pseudo-pairs, as every mean with a range has them.
    with_ends = [*scores, 1.0, 0.0]
    squares = sum((score - mean(with_ends)) ** 2 for score in with_ends)
    half = t95(41) * sqrt(42 / 41 * squares / 42**2)
    assert row["win_rate_a_soft_low"] == pytest.approx(mean(with_ends) - half, abs=1e-8)


def test_a_planted_offset_is_found_and_exchanging_the_answers_changes_no_sign() -> None:
    calls = drawn(400, offset=0.7)
    row = figures(calls)
    assert row["offset_soft_low"] < 0.7 < row["offset_soft_high"]
    other = {"ab": "ba", "ba": "ab"}
    swapped = figures([{**c, "order": other[c["order"]]} for c in calls])
    assert swapped["offset_soft"] == row["offset_soft"]
    assert swapped["win_rate_a_soft"] == pytest.approx(1 - row["win_rate_a_soft"], abs=1e-8)


def test_the_order_of_the_calls_changes_no_bit() -> None:
    calls = drawn(200)
    rows = [figures(Random(seed).sample(calls, len(calls))) for seed in range(3)]
    assert rows[0] == rows[1] == rows[2]


def test_clusters_widen_the_interval() -> None:
    calls = [{**c, "pair_id": f"{c['pair_id']}-{copy}"} for c in drawn(30) for copy in range(4)]
    clusters = {c["pair_id"]: c["pair_id"].partition("-")[0] for c in calls}
    alone, together = figures(calls), figures(calls, clusters)
    assert together["offset_soft"] == alone["offset_soft"]
    narrow, wide = (row["offset_soft_high"] - row["offset_soft"] for row in (alone, together))
    assert wide > 1.8 * narrow


def test_repeats_of_a_pair_are_one_cluster() -> None:
    once = drawn(30)
    calls = [{**c, "repeat": repeat} for c in once for repeat in (1, 2, 3, 4)]
    assert figures(calls)["offset_soft_low"] == pytest.approx(
        figures(once)["offset_soft_low"], abs=1e-8
    )


@pytest.mark.parametrize("nothing", [None, 0.0])
def test_a_word_outside_the_alternatives_is_a_bound_and_counted(nothing: float | None) -> None:
    calls = drawn(20)
    calls[0] = {**calls[0], "p_second": nothing}
    calls[2] = {**calls[2], "p_tie": nothing}
    row, kept = figures(calls), figures(calls[2:])
    assert (row["n_soft"], row["n_soft_bounds"], row["n_soft_no_tie"]) == (19, 1, 1)
    assert row["offset_soft"] == kept["offset_soft"]
    scores = [score for _, score in by_pair(calls[4:])]
    first, second = calls[2]["p_first"], calls[2]["p_second"]
    other = calls[3]["p_second"] + calls[3]["p_tie"] / 2
    scores.append(mean([first / (first + second), other]))
    assert row["win_rate_a_soft"] == pytest.approx(mean(scores), abs=1e-8)


def test_a_verdict_none_of_whose_words_is_listed_is_a_bound_too() -> None:
    calls = drawn(20)
    calls[0] = {**calls[0], **dict.fromkeys(WORDS)}
    calls[2:4] = [{**c, **dict.fromkeys(WORDS)} for c in calls[2:4]]
    row = figures(calls)
    assert (row["n_soft"], row["n_soft_bounds"]) == (18, 2)
    assert row["offset_soft"] == figures(calls[4:])["offset_soft"]


def test_only_pairs_with_both_orders_count() -> None:
    calls = drawn(12)
    failed = {**calls[0], "slot": None, "failure": "invalid", **dict.fromkeys(WORDS)}
    assert figures([failed, *calls[1:-1]])["n_soft"] == 10


def test_few_clusters_have_no_interval_and_no_probabilities_no_figure() -> None:
    row = figures(drawn(5))
    assert row["offset_soft"] is not None
    assert row["offset_soft_low"] is row["win_rate_a_soft_low"] is None
    hard = figures([{**c, **dict.fromkeys(WORDS)} for c in drawn(5)])
    assert [hard[name] for name in SOFT_COLUMNS] == [0, 0, 0, *[None] * 7]


def test_tasks_add_up_to_all() -> None:
    calls = drawn(20) + [
        {**c, "task": "u", "pair_id": f"u{c['pair_id']}"} for c in drawn(8, seed=2)
    ]
    rows = {row["task"]: row for row in table(calls).iter_rows(named=True)}
    assert [rows[task]["n_soft"] for task in ("t", "u", "ALL")] == [20, 8, 28]
    both = 20 * rows["t"]["offset_soft"] + 8 * rows["u"]["offset_soft"]
    assert rows["ALL"]["offset_soft"] == pytest.approx(both / 28, abs=1e-8)
