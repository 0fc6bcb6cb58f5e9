from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

from judgebias.stats.anytime import anytime_sign_p, log_mixture, most_by_chance


def reaches(first: int, second: int, alpha: float) -> bool:
    return float(log_mixture(first, second)[0]) >= most_by_chance(alpha)


def ever_called(n: int, alpha: float, *, urn: int | None = None) -> Fraction:
    """Follow every path of n leans, looking after each one; the exact share that is ever called.

    Leans are fair flips, or drawn without replacement from an urn with as many of either kind.
    """
    alive, called = {0: Fraction(1)}, Fraction(0)
    for seen in range(n):
        after: dict[int, Fraction] = {}
        for first, share in alive.items():
            left = None if urn is None else Fraction(urn - first, 2 * urn - seen)
            p = Fraction(1, 2) if left is None else left
            for next_first, part in ((first + 1, share * p), (first, share * (1 - p))):
                if reaches(next_first, seen + 1 - next_first, alpha):
                    called += part
                else:
                    after[next_first] = after.get(next_first, Fraction(0)) + part
        alive = after
    return called


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_a_fair_coin_is_called_at_most_as_often_as_said_however_often_one_looks(alpha) -> None:
    share = ever_called(150, alpha)
    assert share <= Fraction(alpha)
    # It is a test after all: not far below what is allowed.
    assert share > Fraction(alpha) / 4


@pytest.mark.parametrize("urn", [6, 20, 60])
def test_a_balanced_set_is_called_at_most_as_often_as_said(urn: int) -> None:
    assert ever_called(2 * urn, 0.05, urn=urn) <= Fraction(1, 20)


def test_looking_at_the_fixed_size_test_every_ten_leans_calls_far_more_often() -> None:
    rng = np.random.default_rng(3)
    leans = rng.choice([-1, 1], size=(2000, 300))
    looks = np.cumsum(leans, axis=1)[:, 9::10]
    n = np.arange(10, 301, 10)
    # Two-sided normal bounds: near enough to the exact test for what is shown here.
    assert (np.abs(looks) > 1.96 * np.sqrt(n) + 1).any(axis=1).mean() > 0.12
    calls = np.array([anytime_sign_p(row)[-1] <= 0.05 for row in leans])
    assert calls.mean() <= 0.05


def test_the_mixture_is_the_product_of_its_own_predictions() -> None:
    rng = np.random.default_rng(5)
    first = second = 0
    evidence = 0.0
    for lean in rng.choice([-1, 1], size=200):
        odds = (first if lean > 0 else second) + 0.5
        evidence += log(2.0 * odds / (first + second + 1))
        first, second = first + (lean > 0), second + (lean < 0)
        assert float(log_mixture(first, second)[0]) == pytest.approx(evidence, abs=1e-9)


def test_the_anytime_p_never_rises_and_units_that_do_not_lean_change_nothing() -> None:
    leans = [0, 2, 1, 0, -1, 3, 1, 1, 0, 1, 1, -2]
    p = anytime_sign_p(leans)
    assert p[0] == 1.0
    assert (np.diff(p) <= 0).all()
    kept = [lean for lean in leans if lean]
    assert p[-1] == anytime_sign_p(kept)[-1] == anytime_sign_p(-np.array(leans))[-1]
    assert p[-1] == pytest.approx(exp(-float(log_mixture(7, 1)[0])))
    assert anytime_sign_p([]).size == 0
