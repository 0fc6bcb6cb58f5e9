from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judgebias.stats.heterogeneity import directions_differ_p

TASKS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6)


@given(TASKS)
def test_it_is_pearsons_test_over_tasks_that_lean(tasks: list[tuple[int, int]]) -> None:
    table = np.array([task for task in tasks if sum(task)]).reshape(-1, 2)
    p = directions_differ_p([f for f, _ in tasks], [s for _, s in tasks])
    if len(table) < 2 or not table.sum(axis=0).all():
        assert p is None
    else:
        assert p == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue, rel=1e-9)


def test_opposite_tasks_show_what_their_sum_hides() -> None:
    p = directions_differ_p([30, 2], [2, 30])
    assert p is not None
    assert p < 1e-9


def test_tasks_of_one_direction_do_not_differ() -> None:
    assert directions_differ_p([10, 20], [5, 10]) == 1.0
