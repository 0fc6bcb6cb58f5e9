from __future__ import annotations

from math import log

import pytest

from judgebias.stats.binomial import sign_test_p, wilson
from judgebias.stats.clustered import agreement_rate
from judgebias.stats.probe import probe_figures
from judgebias.stats.sign_flip import sign_flip_p


def test_one_call_an_item() -> None:
    figures = probe_figures([1, 0, 0], [0, 1, 0], [0, 0, 1], [9, 3, 88])
    assert (figures.n_items, figures.n_calls) == (100, 100)
    assert (figures.n_slot1, figures.n_slot2, figures.n_tie) == (9, 3, 88)
    assert (figures.tie_rate, figures.slot1_pull, figures.slot2_pull) == (0.88, 0.09, 0.03)
    assert figures.tie_interval == wilson(88, 100)
    assert figures.p_value == figures.p_items == sign_test_p(9, 12)
    assert figures.offset == pytest.approx(log(9.5 / 3.5))
    assert figures.flagged is False


def test_repeats_of_an_item_are_one_cluster() -> None:
    slot1, slot2, ties, items = [3, 0, 1], [0, 2, 0], [0, 1, 2], [8, 4, 9]
    figures = probe_figures(slot1, slot2, ties, items)
    assert figures.tie_interval == agreement_rate(ties, [3, 3, 3], items)[0]
    assert figures.p_value == sign_test_p(33, 41)
    assert figures.p_items == sign_flip_p([3, -2, 1], items)
    assert figures.p_items != figures.p_value


@pytest.mark.parametrize(("ties", "flagged"), [(60, True), (82, True), (86, False), (100, False)])
def test_the_flag_needs_the_upper_bound_below_nine_tenths(ties: int, *, flagged: bool) -> None:
    assert probe_figures([1, 0], [0, 0], [0, 1], [100 - ties, ties]).flagged is flagged


def test_a_template_without_a_tie_has_pulls_and_a_test_only() -> None:
    figures = probe_figures([1, 0], [0, 1], [0, 0], [30, 10], has_tie=False)
    assert (figures.tie_rate, figures.tie_interval, figures.flagged) == (None, None, None)
    assert (figures.slot1_pull, figures.p_value) == (0.75, sign_test_p(30, 40))


def test_a_judge_that_sees_no_difference_has_no_pull_to_test() -> None:
    figures = probe_figures([0], [0], [1], [40])
    assert (figures.p_value, figures.p_items, figures.offset) == (None, None, None)
    assert (figures.tie_rate, figures.slot1_pull, figures.flagged) == (1.0, 0.0, False)


def test_nothing_asked_is_not_available() -> None:
    figures = probe_figures([0], [0], [0], [5])
    assert (figures.n_items, figures.n_calls) == (0, 0)
    assert (figures.tie_rate, figures.slot1_pull, figures.p_value) == (None, None, None)
    assert (figures.offset, figures.tie_interval, figures.flagged) == (None, None, None)
