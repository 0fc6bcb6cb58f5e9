from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.stats.profiles import columns, dot, squared_residuals, whole_numbers

COUNTS = st.integers(-(2**40), 2**40)


@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), max_size=6))
def test_sums_of_products_never_wrap(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    assert dot(*table.T) == sum(a * b * c for a, b, c in rows)


def test_squared_residuals_by_hand() -> None:
    values, sizes, clusters = columns(values=[1, 2], sizes=[2, 2], multiplicity=[3, 1])
    expected = 3 * (4 * 1 - 3 * 2) ** 2 + (4 * 2 - 3 * 2) ** 2
    assert squared_residuals(values, sizes, clusters, numerator=3, denominator=4) == expected


def test_columns_of_other_lengths_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'sizes': \(1,\)"):
        columns(sums=[1, 2], sizes=[1])
    with pytest.raises(ValueError, match="a row per profile"):
        columns(sums=[[1, 2]])


def test_rates_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="sums holds float64 values"):
        whole_numbers([0.5], name="sums")
    assert whole_numbers([], name="sums").dtype == np.int64
