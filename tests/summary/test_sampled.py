"""One order for all, two for some: known answers, definitions, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from judgebias.stats.binomial import sign_test_p
from judgebias.summary import summarize
from judgebias.summary.sampled import SAMPLED_COLUMNS, sampled_table
from tests.summary.verdict_frames import judged, settled
from tests.summary.verdict_oracle import Judged

GOLDEN_NAMES = {"weight": "win_rate_a_weight", "n_calls": "n_calls"}
NOT_OURS = ("full_two_order_win_rate_a", "full_swing")
Firsts = dict[tuple[str, str], str | None]


def sampled(pairs: Sequence[Judged], firsts: Firsts | None = None) -> pl.LazyFrame:
    known = firsts or {}
    rows = [
        (pair.task, pair.pair_id, known.get((pair.task, pair.pair_id)))
        for pair in {(pair.task, pair.pair_id): pair for pair in pairs}.values()
    ]
    schema = {"task": pl.String, "pair_id": pl.String, "first_order": pl.String}
    order = pl.LazyFrame(rows, schema, orient="row")
    return settled(pairs).join(order, on=["task", "pair_id"], how="left")


def total(verdicts: pl.LazyFrame) -> dict[str, object]:
    return sampled_table(verdicts).filter(pl.col("task") == "ALL").row(0, named=True)


def test_known_answers(shared: Path) -> None:
    golden = json.loads((shared / "golden/sampled.json").read_text(encoding="utf-8"))
    known = golden["pairs"]
    pairs = [
        judged(pair["ab"], pair["ba"], task=pair["task"], pair_id=pair["pair_id"]) for pair in known
    ]
    firsts: Firsts = {(pair["task"], pair["pair_id"]): pair["first_order"] for pair in known}
    row = total(sampled(pairs, firsts))
    expected = {name: x for name, x in golden["estimates"].items() if name not in NOT_OURS}
    found = {name: row[GOLDEN_NAMES.get(name, name)] for name in expected}
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def some(n: int, seed: int, *, share: float = 0.3, b: float = 0.4) -> tuple[list[Judged], Firsts]:
    """Pairs of a judge with a planted offset, the first order drawn, both orders for a share."""
    draw = np.random.default_rng(seed)
    gaps, order, both = draw.normal(0.3, 1, n), draw.random(n) < 0.5, draw.random(n) < share
    slots = draw.random((n, 2)) < 1 / (1 + np.exp(-np.stack([gaps + b, b - gaps], axis=1)))
    said = [["first" if slot else "second" for slot in pair] for pair in slots]
    pairs = [
        judged(
            ab if both[k] or order[k] else None,
            ba if both[k] or not order[k] else None,
            k,
            task=f"t{k % 2}",
        )
        for k, (ab, ba) in enumerate(said)
    ]
    return pairs, {(pair.task, pair.pair_id): "ab" if order[int(pair.pair_id)] else "ba"
                   for pair in pairs}  # fmt: skip


def test_figures_of_the_sample_are_those_of_the_summary() -> None:
    pairs, firsts = some(400, 3)
    ours, summary = sampled_table(sampled(pairs, firsts)), summarize(settled(pairs))
    names = ("consistency", "consistency_low", "offset", "p_position", "q_position",
             "position_bias", "lean_first", "detectable_offset", "stuck_first")  # fmt: skip
    key = ["judge", "task"]
    assert ours.select(*key, *names).equals(summary.select(*key, *names), null_equal=True)


def test_a_sample_agrees_with_the_full_run_within_its_intervals() -> None:
    full, firsts = some(4000, 5, share=1.0)
    part, _ = some(4000, 5, share=0.25)
    whole = summarize(settled(full)).filter(pl.col("task") == "ALL").row(0, named=True)
    row = total(sampled(part, firsts))
    for name in ("swing", "win_rate_a", "consistency", "offset"):
        assert row[f"{name}_low"] < whole[name] < row[f"{name}_high"]
    full_row = total(sampled(full, firsts))
    assert full_row["swing"] == pytest.approx(whole["swing"], rel=1e-12)
    assert full_row["win_rate_a"] == pytest.approx(whole["win_rate_a"], rel=1e-12)


def test_where_every_pair_went() -> None:
    pairs = [
        judged("first", "second", 0),
        judged("first", "failed", 1),
        judged("failed", "second", 2),
        judged(None, "tie", 3),
        judged("failed", None, 4),
    ]
    firsts: Firsts = {("t", str(n)): "ab" for n in range(3)}
    row = total(sampled(pairs, firsts))
    counts = ("n_pairs", "n_both", "n_single", "n_incomplete", "n_calls", "n_failed")
    assert [row[name] for name in counts] == [5, 1, 1, 3, 8, 3]
    # The pair whose first call failed has no first call, though its other call is known.
    assert (row["first_call_first"], row["first_call_decisive"]) == (2, 2)
    assert row["swing"] is row["win_rate_a"] is None
    assert "swing and win rate not available" in str(row["note"])
    assert "3 pairs failed or are pending" in str(row["note"])


@pytest.mark.parametrize(
    ("order", "words"),
    [("ab", "A was shown first"), ("ba", "B was shown first")],
)
def test_one_fixed_order_says_what_cannot_be_told_apart(order: str, words: str) -> None:
    slots = ["first"] * 15 + ["second"] * 4 + ["tie"]
    made = [
        judged(slot if order == "ab" else None, slot if order == "ba" else None, n)
        for n, slot in enumerate(slots)
    ]
    row = total(sampled(made))
    assert row["first_call_p"] == sign_test_p(15, 19)
    wins = 15.5 if order == "ab" else 4.5
    assert row["single_win_rate_a"] == wins / 20
    assert row["single_win_rate_a_low"] < wins / 20 < row["single_win_rate_a_high"]
    for name in ("first_call_reads", "single_win_rate_reads"):
        assert words in str(row[name])
    assert "consistency not available" in str(row["note"])
    for name in ("consistency", "swing", "win_rate_a", "p_position", "stuck_first"):
        assert row[name] is None


def test_random_orders_are_read_as_mixed_single_calls() -> None:
    made = [judged(*(("first", None) if n % 2 else (None, "first")), n) for n in range(20)]
    row = total(sampled(made))
    assert row["single_win_rate_a"] == 0.5
    assert row["first_call_p"] == sign_test_p(20, 20)
    assert "no effect at all" in str(row["first_call_reads"])


def test_repeats_and_questions_are_clusters_of_the_single_calls() -> None:
    alone = [judged("first" if n % 3 else "second", None, n) for n in range(12)]
    again = [
        judged("first" if n % 3 else "second", None, n, repeat=r)
        for n in range(12)
        for r in range(1, 5)
    ]
    asked = [judged(p.ab, None, r * 12 + n, cluster=f"q{n}")
             for n, p in enumerate(alone) for r in range(4)]  # fmt: skip
    one, repeated, questions = (total(sampled(pairs)) for pairs in (alone, again, asked))
    name = "single_win_rate_a_low"
    assert repeated[name] == questions[name]
    # Four copies of every call carry hardly more than one: only the pseudo-pairs weigh less.
    independent = total(sampled([judged(p.ab, None, n) for n, p in enumerate(again)]))
    assert one[name] < repeated[name] < independent[name]


def test_clusters_in_a_sample_are_noted() -> None:
    pairs, firsts = some(100, 4)
    clustered = [judged(p.ab, p.ba, task=p.task, pair_id=p.pair_id, cluster=f"{n // 4}")
                 for n, p in enumerate(pairs)]  # fmt: skip
    assert "for independent pairs" in str(total(sampled(clustered, firsts))["note"])
    assert total(sampled(pairs, firsts))["note"] is None


def test_two_orders_without_a_first_one_are_refused() -> None:
    with pytest.raises(ValueError, match="no first_order; expected ab or ba"):
        sampled_table(sampled([judged("first", "second")]))


def test_row_order_changes_no_bit_and_columns_are_declared() -> None:
    pairs, firsts = some(300, 8)
    one, two = (sampled_table(sampled(p, firsts)) for p in (pairs, pairs[::-1]))
    assert one.equals(two, null_equal=True)
    assert dict(one.schema) == SAMPLED_COLUMNS


def test_rest_that_goes_the_other_way_does_not_make_the_sample_mixed() -> None:
    sample = [judged("first", "first", n) for n in range(9)]
    sample += [judged("first", "second", n) for n in range(9, 20)]
    rest = [judged("first" if n % 20 == 0 else "second", None, n) for n in range(20, 400)]
    firsts: Firsts = {("t", str(n)): "ab" for n in range(20)}
    row = total(sampled([*sample, *rest], firsts))
    assert row["swing"] < 0 < row["lean_first"]
    assert row["position_bias"] == "first"
