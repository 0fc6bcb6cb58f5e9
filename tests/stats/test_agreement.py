from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.stats.agreement import Alpha, krippendorff_alpha
from judgebias.stats.interval import t95

Units = list[tuple[int, tuple[int, int, int]]]
UNITS = st.lists(
    st.tuples(st.integers(0, 7), st.tuples(*[st.integers(0, 3)] * 3)), min_size=1, max_size=20
)


def slow_alpha(units: Units) -> float | None:
    """Alpha from the coincidence matrix, pair of values by pair of values."""
    coincidences = np.zeros((3, 3))
    for _, counts in units:
        values = [label for label, n in enumerate(counts) for _ in range(n)]
        for i, j in product(range(len(values)), repeat=2):
            if i != j:
                coincidences[values[i], values[j]] += 1 / (len(values) - 1)
    n = coincidences.sum(axis=1)
    by_chance = n.sum() ** 2 - (n**2).sum()
    if by_chance < 1e-9:
        return None
    unlike = coincidences.sum() - np.trace(coincidences)
    return float(1 - (n.sum() - 1) * unlike / by_chance)


def found(units: Units) -> Alpha:
    clusters = [cluster for cluster, _ in units]
    return krippendorff_alpha(
        [counts for _, counts in units], [1] * len(units), clusters, [1] * (max(clusters) + 1)
    )


@given(UNITS)
@pytest.mark.slow
def test_it_follows_its_definition(units: Units) -> None:
    result, expected = found(units), slow_alpha(units)
    assert result.alpha == (None if expected is None else pytest.approx(expected, abs=1e-12))
    told = [(cluster, counts) for cluster, counts in units if sum(counts) >= 2]
    assert result.n_units == len(told)
    assert result.n_clusters == len({cluster for cluster, _ in told})


@given(UNITS)
def test_its_interval_leaves_out_one_cluster_at_a_time(units: Units) -> None:
    result = found(units)
    told = [unit for unit in units if sum(unit[1]) >= 2]
    clusters = sorted({cluster for cluster, _ in told})
    left_out = [slow_alpha([unit for unit in told if unit[0] != c]) for c in clusters]
    known = [alpha for alpha in left_out if alpha is not None]
    if result.alpha is None or len(clusters) < 6 or len(known) < len(clusters):
        assert result.interval is None
        return
    g, mean = len(known), sum(known) / len(known)
    half = t95(g - 1) * sqrt((g - 1) / g * sum((alpha - mean) ** 2 for alpha in known))
    assert result.interval is not None
    assert result.interval.low == pytest.approx(result.alpha - half, abs=1e-9)
    assert result.interval.high == pytest.approx(result.alpha + half, abs=1e-9)


def test_clusters_alike_may_be_counted_together() -> None:
    labels = [(3, 0, 0), (2, 1, 0), (0, 3, 0), (1, 0, 2)]
    together = krippendorff_alpha(labels, [1] * 4, range(4), [4, 3, 2, 1])
    apart = [labels[kind] for kind, n in enumerate([4, 3, 2, 1]) for _ in range(n)]
    one_by_one = krippendorff_alpha(apart, [1] * 10, range(10), [1] * 10)
    assert together.alpha == pytest.approx(one_by_one.alpha)
    assert together.interval is not None
    assert one_by_one.interval is not None
    assert together.interval.low == pytest.approx(one_by_one.interval.low)
    assert together.n_clusters == one_by_one.n_clusters == 10


@pytest.mark.parametrize(
    ("labels", "alpha"),
    [
        ([(1, 0, 0)] * 8, None),
        ([(3, 0, 0)] * 8, None),
        ([(3, 0, 0), (0, 3, 0)] * 4, 1.0),
    ],
)
def test_the_ends_of_the_scale(labels: list[tuple[int, int, int]], alpha: float | None) -> None:
    assert krippendorff_alpha(labels, [1] * 8, range(8), [1] * 8).alpha == alpha


def test_nothing_is_not_available() -> None:
    nothing = krippendorff_alpha(np.zeros((0, 3), dtype=np.int64), [], [], [])
    assert nothing == Alpha(alpha=None, interval=None, n_units=0, n_clusters=0)


def test_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="expected \\(rows, labels\\)"):
        krippendorff_alpha([1, 2], [1, 1], [0, 1], [1, 1])
