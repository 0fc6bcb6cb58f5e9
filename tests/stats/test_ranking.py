from __future__ import annotations

import json
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.stats.comparisons import (
    FIRST,
    NONE,
    OWN,
    SECOND,
    TIE,
    Comparisons,
    strong_components,
)
from judgebias.stats.ranking import Davidson, Failure, fit_davidson
from judgebias.stats.scores import Scores, squared_scores

Call = tuple[int, int, int]
SLOT = {"first": FIRST, "second": SECOND, "tie": TIE}


def calls(*said: Call, clusters: list[int] | None = None, times: int = 1) -> Comparisons:
    n = len(said)
    return Comparisons.of(
        a=[call[0] for call in said],
        b=[call[1] for call in said],
        ab=[call[2] for call in said],
        ba=[NONE] * n,
        count=[times] * n,
        cluster=clusters or [OWN] * n,
    )


def fit(comparisons: Comparisons, models: int, *, order_effect: bool = True) -> Davidson | Failure:
    component = strong_components(comparisons.wins(models), comparisons.ties(models))
    return fit_davidson(comparisons, component, order_effect=order_effect)


def both(*said: tuple[int, int, int, int]) -> Comparisons:
    a, b, ab, ba = zip(*said, strict=True)
    n = len(said)
    return Comparisons.of(a=a, b=b, ab=ab, ba=ba, count=[1] * n, cluster=[OWN] * n)


def test_the_simulated_known_answer(shared: Path) -> None:
    cases: list[dict[str, Any]] = json.loads((shared / "golden/ranking.json").read_text())["cases"]
    (case,) = [case for case in cases if "calls" in case]
    names = sorted(case["strength"])
    said = [(names.index(a), names.index(b), SLOT[slot]) for a, b, slot in case["calls"]]
    result = fit(calls(*said), len(names))
    assert isinstance(result, Davidson)
    assert result.se is not None
    for place, name in enumerate(names):
        assert result.strength[place] == pytest.approx(case["strength"][name], abs=1e-6)
        assert result.se[place] == pytest.approx(case["strength_se"][name], abs=1e-4)
    assert result.offset == pytest.approx(case["offset"], abs=1e-6)
    assert result.offset_se == pytest.approx(case["offset_se"], abs=1e-4)
    assert result.log_tie == pytest.approx(case["log_tie"], abs=1e-6)
    assert result.log_likelihood == pytest.approx(case["log_likelihood"], abs=1e-6)
    assert (result.n_calls, result.n_clusters) == (600, 600)


def test_two_models_without_ties_are_a_log_odds() -> None:
    said = [(0, 1, FIRST)] * 30 + [(0, 1, SECOND)] * 10
    result = fit(calls(*said), 2, order_effect=False)
    assert isinstance(result, Davidson)
    assert result.strength[0] - result.strength[1] == pytest.approx(log(3))
    assert (result.offset, result.log_tie) == (None, None)
    # The binomial variance of a log odds, with G/(G - 1), and each strength half the difference.
    assert result.se is not None
    assert 2 * result.se[0] == pytest.approx((40 / 39 * (1 / 30 + 1 / 10)) ** 0.5)


def test_both_orders_give_the_order_effect() -> None:
    # 20 of 30 first whichever is first: no strength, offset ln 2.
    kinds = [(0, 1, FIRST, FIRST)] * 20 + [(0, 1, SECOND, SECOND)] * 10
    result = fit(both(*kinds), 2)
    assert isinstance(result, Davidson)
    assert result.strength == pytest.approx([0, 0], abs=1e-9)
    assert result.offset == pytest.approx(log(2))


@pytest.mark.parametrize(
    ("comparisons", "models", "expected"),
    [
        (calls((0, 1, FIRST), times=9), 2, Failure.NO_CALLS),
        (calls((0, 1, TIE), (1, 0, TIE)), 2, Failure.NOT_DECISIVE),
        (calls((0, 1, FIRST), (0, 1, SECOND)), 2, Failure.NOT_IDENTIFIED),
        (calls((0, 1, FIRST), (1, 0, FIRST), times=50), 2, Failure.SEPARATED),
        (calls((0, 1, FIRST), (1, 2, FIRST), (2, 0, FIRST), (1, 0, FIRST)), 3, Failure.SEPARATED),
        # Wins in both slots, and yet a direction in which every outcome only gets likelier.
        (
            both((0, 1, FIRST, FIRST), (0, 2, FIRST, FIRST), (1, 2, FIRST, TIE)),
            3,
            Failure.SEPARATED,
        ),
    ],
)
def test_what_has_no_maximum_has_no_strength(
    comparisons: Comparisons, models: int, expected: Failure
) -> None:
    assert fit(comparisons, models) is expected


def test_lopsided_counts_are_not_taken_for_separated() -> None:
    said = Comparisons.of(
        a=[0, 0, 1, 1],
        b=[1, 1, 0, 0],
        ab=[FIRST, SECOND, FIRST, SECOND],
        ba=[NONE] * 4,
        count=[10**7, 1, 1, 10**7],
        cluster=[OWN] * 4,
    )
    result = fit(said, 2)
    assert isinstance(result, Davidson)
    assert result.strength[0] - result.strength[1] == pytest.approx(log(10**7), abs=1e-6)


def test_islands_are_ranked_each_by_itself() -> None:
    ring = [(0, 1, FIRST), (1, 0, FIRST), (0, 1, SECOND), (1, 0, TIE), (1, 0, SECOND)] * 3
    other = [(a + 2, b + 2, slot) for a, b, slot in ring]
    alone = [(4, 0, FIRST), (4, 2, FIRST)]
    result = fit(calls(*ring, *other, *alone), 5)
    assert isinstance(result, Davidson)
    assert result.strength[:2] == pytest.approx(result.strength[2:4])
    assert result.strength[:2].sum() == pytest.approx(0, abs=1e-12)
    assert np.isnan(result.strength[4])
    assert result.n_calls == 30


def test_five_clusters_have_no_errors() -> None:
    said = [(0, 1, FIRST), (1, 0, FIRST), (0, 1, SECOND), (1, 0, SECOND)] * 5
    result = fit(calls(*said, clusters=[place % 5 for place in range(20)]), 2)
    assert isinstance(result, Davidson)
    assert (result.se, result.offset_se, result.n_clusters) == (None, None, 5)


CALLS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([FIRST, SECOND, TIE])),
    min_size=20,
    max_size=60,
).map(lambda said: [(a, (a + step) % 4, slot) for a, step, slot in said])


@given(CALLS)
@pytest.mark.slow
def test_the_gradient_vanishes_at_the_maximum(said: list[Call]) -> None:
    result = fit(calls(*said), 4)
    if isinstance(result, Failure):
        return
    t, offset = result.strength, result.offset or 0.0
    tie = exp(result.log_tie) if result.log_tie is not None else 0.0
    score, slot_score = np.zeros(4), 0.0
    for first, second, slot in said:
        if np.isnan(t[first] - t[second]) or _apart(said, first, second):
            continue
        half = (t[first] - t[second] + offset) / 2
        weights = exp(half), exp(-half)
        lean = (slot == FIRST) - (slot == SECOND) - (weights[0] - weights[1]) / (sum(weights) + tie)
        score[first] += lean
        score[second] -= lean
        slot_score += lean
    assert score == pytest.approx(np.zeros(4), abs=1e-6)
    assert slot_score == pytest.approx(0, abs=1e-6)


def _apart(said: list[Call], first: int, second: int) -> bool:
    comparisons = calls(*said)
    component = strong_components(comparisons.wins(4), comparisons.ties(4))
    return bool(component[first] != component[second])


@given(CALLS, st.randoms(use_true_random=False))
@pytest.mark.slow
def test_exchanging_the_answers_of_a_pair_changes_nothing(said: list[Call], random: Any) -> None:
    turned = Comparisons.of(
        a=[call[1] for call in said],
        b=[call[0] for call in said],
        ab=[NONE] * len(said),
        ba=[call[2] for call in said],
        count=[1] * len(said),
        cluster=[OWN] * len(said),
    )
    random.shuffle(said)
    one, other = fit(calls(*said), 4), fit(turned, 4)
    if isinstance(one, Failure) or isinstance(other, Failure):
        assert one is other
        return
    assert one.strength == pytest.approx(other.strength, abs=1e-6, nan_ok=True)
    assert one.se == pytest.approx(other.se, rel=1e-6, nan_ok=True)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_components_are_mutual_reach(edges: list[tuple[int, int]]) -> None:
    wins = np.zeros((6, 6), dtype=np.int64)
    for winner, loser in edges:
        wins[winner, loser] += 1
    component = strong_components(wins, np.zeros_like(wins))
    reach = np.linalg.matrix_power(np.eye(6, dtype=np.int64) + (wins > 0), 6) > 0
    together = component[:, None] == component[None, :]
    assert (together == (reach & reach.T)).all()
    sizes = np.bincount(component)
    assert list(sizes) == sorted(sizes, reverse=True)


def test_a_tie_joins_both_ways() -> None:
    none = np.zeros((3, 3), dtype=np.int64)
    ties = none.copy()
    ties[0, 2] = ties[2, 0] = 1
    assert strong_components(none, ties).tolist() == [0, 1, 0]


@given(st.lists(st.tuples(st.integers(-1, 4), st.integers(1, 5)), min_size=1, max_size=20))
def test_scores_are_summed_in_their_cluster(rows: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(len(rows))
    places = np.argsort(rng.random((len(rows), 6)), axis=1)[:, :2]
    values = rng.normal(size=places.shape)
    n = len(rows)
    cluster, count = [row[0] for row in rows], [row[1] for row in rows]
    comparisons = Comparisons.of(
        a=[0] * n, b=[1] * n, ab=[FIRST] * n, ba=[NONE] * n, count=count, cluster=cluster
    )
    total, n_clusters = squared_scores(Scores(places=places, values=values), comparisons, 6)
    sums: dict[object, np.ndarray] = {}
    for row, (name, times) in enumerate(rows):
        score = np.zeros(6)
        score[places[row]] = values[row]
        for copy in range(times):
            key = (row, copy) if name == OWN else name
            sums[key] = sums.get(key, np.zeros(6)) + score
    assert n_clusters == len(sums)
    assert total == pytest.approx(sum(np.outer(s, s) for s in sums.values()), abs=1e-9)
