"""Clusters as numbers, against slow and plain ways."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.stats.profiles import dense, dot, gram
from judgebias.summary.clusters import cluster_numbers, count_vectors

WHOLE = st.integers(-(2**40), 2**40)


@given(st.lists(st.one_of(st.integers(-3, 8), WHOLE)))
def test_dense_is_the_place_among_the_distinct(numbers: list[int]) -> None:
    array = np.array(numbers, np.int64)
    names, places = np.unique(array, return_inverse=True)
    found, n = dense(array)
    assert n == len(names)
    assert found.tolist() == places.tolist()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 8)), max_size=40), st.integers(0, 2**40)
)
def test_count_vectors_counts_kinds_by_cluster(pairs: list[tuple[int, int]], far: int) -> None:
    cluster = np.array([c * far for c, _ in pairs], np.int64)
    kind = np.array([k for _, k in pairs], np.int64)
    found = count_vectors(cluster, kind, 9)
    vectors = Counter(
        tuple(int(((cluster == c) & (kind == k)).sum()) for k in range(9)) for c in set(cluster)
    )
    assert [tuple(row) for row in found.counts.tolist()] == sorted(vectors)
    assert found.multiplicity.tolist() == [vectors[key] for key in sorted(vectors)]


def test_a_large_cluster_needs_several_words() -> None:
    size = 2**17 + 1
    kind = np.concatenate([np.full(size, 0), np.full(3, 35)])
    found = count_vectors(np.zeros(kind.size, np.int64), kind, 36)
    assert found.counts.tolist() == [[size, *[0] * 34, 3]]
    assert found.multiplicity.tolist() == [1]


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5), st.integers(0, 9)), min_size=1))
def test_gram_is_the_sum_of_products(rows: list[tuple[int, int, int]]) -> None:
    array = np.array(rows, np.int64)
    columns, weight = array[:, :2], array[:, 2]
    expected = [[dot(weight, columns[:, i], columns[:, j]) for j in (0, 1)] for i in (0, 1)]
    assert gram(columns, weight).tolist() == expected


def test_gram_is_exact_where_64_bits_are_not_enough() -> None:
    rows = np.array([[2**31, 2**31 - 1], [2**31, 1]], np.int64)
    weight = np.array([2**20, 3], np.int64)
    assert gram(rows, weight)[0, 1] == 2**20 * 2**31 * (2**31 - 1) + 3 * 2**31


@pytest.mark.parametrize("numbered", [False, True])
def test_repeats_of_a_pair_alone_share_a_cluster(numbered: bool) -> None:
    clusters = [1, None, None, None] if numbered else ["c", None, None, None]
    frame = pl.DataFrame(
        {
            "task": ["t", "t", "t", "u"],
            "pair_id": [0, 1, 1, 1] if numbered else ["x", "y", "y", "y"],
            "repeat": [1, 1, 2, 1],
            "cluster": clusters,
        }
    )
    numbers = cluster_numbers(frame).to_list()
    assert None not in numbers
    assert numbers[1] == numbers[2]
    assert len(set(numbers)) == 3
    alone = cluster_numbers(frame.filter(pl.col("repeat") == 1)).to_list()
    assert alone[0] is not None
    assert alone[1:] == [None, None]
