"""Flips within and between orders, against the definition with fractions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import polars as pl
import pytest

from judgebias.stats.clustered import mean_interval
from judgebias.summary import flips
from judgebias.summary.flips import flips_table
from tests.summary.verdict_frames import judged, settled
from tests.summary.verdict_oracle import Judged

WINNER = {
    "ab": {"first": "A", "second": "B", "tie": "tie"},
    "ba": {"first": "B", "second": "A", "tie": "tie"},
}


def winners(pairs: Sequence[Judged], order: str) -> list[str]:
    said = [getattr(pair, order) for pair in pairs]
    return [WINNER[order][slot] for slot in said if slot in WINNER[order]]


def share(couples: Sequence[tuple[str, str]]) -> Fraction:
    return Fraction(sum(x != y for x, y in couples), len(couples))


def slow(pairs: Sequence[Judged]) -> dict[str, float]:
    between, within = [], []
    for key in sorted({(pair.task, pair.pair_id) for pair in pairs}):
        mine = [pair for pair in pairs if (pair.task, pair.pair_id) == key]
        ab, ba = winners(mine, "ab"), winners(mine, "ba")
        if min(len(ab), len(ba)) > 1:
            between.append(share(list(product(ab, ba))))
            within.append([share(list(combinations(x, 2))) for x in (ab, ba)])
    n = len(between)
    effects = [b - sum(w) / 2 for b, w in zip(between, within, strict=True)]
    return {
        "n_repeated": n,
        "flip_rate_between": float(sum(between) / n),
        "flip_rate_within_ab": float(sum(w[0] for w in within) / n),
        "flip_rate_within_ba": float(sum(w[1] for w in within) / n),
        "flip_rate_within": float(sum(sum(w) for w in within) / (2 * n)),
        "position_effect": float(sum(effects, Fraction(0)) / n),
    }


def some(seed: int, ends: Sequence[str | None], repeats: int = 4) -> list[Judged]:
    draw = random.Random(seed)
    return [
        judged(draw.choice(ends), draw.choice(ends), n, repeat=r, task=f"t{n % 2}")
        for n in range(30)
        for r in range(1, repeats + 1)
    ]


def total(pairs: Sequence[Judged]) -> dict[str, object]:
    return flips_table(settled(pairs)).filter(pl.col("task") == "ALL").row(0, named=True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("room", [2**61, 1])
def test_rates_follow_their_definition(
    seed: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With no room for the exact denominator, figures are cut to a grid that shows nowhere.
    monkeypatch.setattr(flips, "_ROOM", room)
    pairs = some(seed, ["first", "second", "tie", "failed", None])
    expected = slow(pairs)
    found = {name: total(pairs)[name] for name in expected}
    assert found == pytest.approx(expected, rel=1e-12 if room > 1 else 1e-7)


def test_interval_is_over_pairs_and_clusters() -> None:
    first = [("first", "first")] * 2
    content = [("first", "second")] * 2
    cases = [first, content] * 5
    made = [judged(*slots, n, repeat=r) for n, case in enumerate(cases)
            for r, slots in enumerate(case, 1)]  # fmt: skip
    interval = mean_interval([1, 0], [1, 1], [5, 5], scale=1, low=-1, high=1)
    assert interval is not None
    row = total(made)
    assert row["position_effect"] == 0.5
    assert row["position_effect_low"] == pytest.approx(interval.low, rel=1e-12)
    together = [judged(p.ab, p.ba, int(p.pair_id), repeat=p.repeat, cluster=f"{int(p.pair_id) % 4}")
                for p in made]  # fmt: skip
    assert total(together)["position_effect_low"] is None
    assert "fewer than 6 clusters" in str(total(together)["reason"])


def test_position_alone_and_content_alone() -> None:
    stuck = [judged("first", "first", n, repeat=r) for n in range(9) for r in (1, 2)]
    honest = [judged("first", "second", n, repeat=r) for n in range(9) for r in (1, 2)]
    names = ("flip_rate_between", "flip_rate_within", "position_effect")
    assert [total(stuck)[name] for name in names] == [1.0, 0.0, 1.0]
    assert [total(honest)[name] for name in names] == [0.0, 0.0, 0.0]


def test_pure_wavering_shows_no_position_effect() -> None:
    row = total([judged(*random.Random(f"{n}{r}").choices(["first", "second"], k=2), n, repeat=r)
                 for n in range(400) for r in range(1, 5)])  # fmt: skip
    assert row["flip_rate_between"] == pytest.approx(0.5, abs=0.05)
    assert row["position_effect_low"] < 0 < row["position_effect_high"]


def test_opposite_directions_cancel_in_the_lean_and_not_here() -> None:
    made = [judged(*[("first", "second")[n % 2]] * 2, n, repeat=r) for n in range(20)
            for r in (1, 2)]  # fmt: skip
    assert total(made)["position_effect"] == 1.0


@pytest.mark.parametrize("repeats", [1, 2])
def test_without_two_verdicts_in_each_order_there_is_nothing(repeats: int) -> None:
    made = [judged("first", "second" if r == 1 else "failed", n, repeat=r)
            for n in range(9) for r in range(1, repeats + 1)]  # fmt: skip
    row = total(made)
    assert (row["n_pairs"], row["n_repeated"], row["n_clusters"]) == (9, 0, 0)
    assert row["position_effect"] is row["flip_rate_between"] is row["flip_rate_within"] is None
    assert "no pair has two verdicts in each order" in str(row["reason"])


def test_row_order_changes_no_bit() -> None:
    pairs = some(7, ["first", "second", "tie", "failed", None])
    one, two = (flips_table(settled(made)) for made in (pairs, pairs[::-1]))
    assert one.equals(two, null_equal=True)


def test_unequal_numbers_of_repeats_stay_exact() -> None:
    ends = [("first", "second"), ("second", "first"), ("tie", None), ("first", None)]
    made = [judged(*end, n, repeat=r) for n in range(7) for r, end in enumerate(ends, 1)]
    row = total(made)
    assert {name: row[name] for name in slow(made)} == slow(made)
