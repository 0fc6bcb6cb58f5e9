from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.stats.interval import Z95, t95
from judgebias.stats.kappa import cohen_kappa, kappa_with_interval

LABELS = st.tuples(st.integers(0, 2), st.integers(0, 2))
CLUSTERS = st.lists(st.lists(LABELS, min_size=1, max_size=3), min_size=6, max_size=12)
Clusters = list[list[tuple[int, int]]]


def tables(clusters: Clusters) -> np.ndarray:
    result = np.zeros((len(clusters), 3, 3), dtype=np.int64)
    for place, cluster in enumerate(clusters):
        for final, gold in cluster:
            result[place, final, gold] += 1
    return result


def slow(clusters: Clusters) -> tuple[float, float] | None:
    """Kappa and its standard error, pair by pair, from the definition."""
    pairs = [pair for cluster in clusters for pair in cluster]
    n = len(pairs)
    p = [Fraction(sum(a == label for a, _ in pairs), n) for label in range(3)]
    q = [Fraction(sum(b == label for _, b in pairs), n) for label in range(3)]
    po = Fraction(sum(a == b for a, b in pairs), n)
    pe = sum((x * y for x, y in zip(p, q, strict=True)), Fraction(0))
    if pe == 1:
        return None

    def psi(a: int, b: int) -> Fraction:
        return ((a == b) - po) / (1 - pe) - (1 - po) / (1 - pe) ** 2 * (q[a] + p[b] - 2 * pe)

    squares = sum(sum(psi(a, b) for a, b in cluster) ** 2 for cluster in clusters)
    return float((po - pe) / (1 - pe)), sqrt(squares / n**2)


@given(CLUSTERS)
def test_it_follows_its_definition(clusters: Clusters) -> None:
    result, expected = kappa_with_interval(tables(clusters), [1] * len(clusters)), slow(clusters)
    if expected is None:
        assert result.kappa is None
        assert result.interval is None
        return
    kappa, se = expected
    quantile = t95(len(clusters) - 1) if any(len(c) > 1 for c in clusters) else Z95
    assert result.kappa == pytest.approx(kappa, abs=1e-13)
    assert result.interval is not None
    assert result.interval.low == pytest.approx(kappa - quantile * se, abs=1e-12)
    assert result.interval.high == pytest.approx(kappa + quantile * se, abs=1e-12)


def test_a_textbook_table() -> None:
    assert cohen_kappa([[20, 5], [10, 15]]) == pytest.approx(0.4)


def test_constant_equal_labels_have_an_agreement_but_no_kappa() -> None:
    result = kappa_with_interval([[[1, 0, 0], [0, 0, 0], [0, 0, 0]]], [9])
    assert (result.agreement, result.kappa, result.interval) == (1.0, None, None)


def test_no_labels_are_not_available() -> None:
    result = kappa_with_interval(np.zeros((0, 3, 3), dtype=np.int64), [])
    assert (result.agreement, result.kappa, result.interval) == (None, None, None)
    assert cohen_kappa(np.zeros((3, 3), dtype=np.int64)) is None


def test_five_clusters_have_no_interval() -> None:
    profile = [[[1, 0, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0], [0, 0, 0]]]
    assert kappa_with_interval(profile, [3, 2]).interval is None
    assert kappa_with_interval(profile, [3, 3]).interval is not None


def test_clusters_without_gold_do_not_count() -> None:
    labelled = [[[1, 0, 0], [0, 1, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0], [0, 0, 0]]]
    nothing = np.zeros((1, 3, 3), dtype=np.int64)
    with_empty = np.concatenate([np.array(labelled), nothing])
    assert kappa_with_interval(with_empty, [5, 2, 80]) == kappa_with_interval(labelled, [5, 2])


def test_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        kappa_with_interval(np.ones((3, 3), dtype=np.int64), [1, 1, 1])
