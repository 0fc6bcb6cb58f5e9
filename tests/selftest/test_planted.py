from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from judgebias.judges.simulated import slot_of
from judgebias.selftest.judges import planted_judges
from judgebias.selftest.measure import tallies
from judgebias.selftest.planted import Planted, by_cells, by_contents, by_davidson, mixed
from judgebias.selftest.truth import INTERVALS, leaning, scarcer_outcome, true_values
from judgebias.stats.offset import detectable_offset
from judgebias.summary.figures import figures
from judgebias.verdicts import OUTCOMES, Cell, Slot, settle

JUDGES = planted_judges()


@pytest.mark.parametrize("planted", JUDGES, ids=lambda planted: planted.name)
def test_a_law_is_a_probability_and_a_null_judge_favours_no_slot(planted: Planted) -> None:
    assert (planted.laws() >= 0).all()
    assert planted.laws().sum(axis=1) == pytest.approx(1.0)
    assert planted.law().sum() == pytest.approx(1.0)
    truth = true_values(planted)
    assert (abs(truth["lean_rate"] or 0.0) < 1e-12) == planted.null


def test_the_names_are_distinct_or_tell_of_other_sizes() -> None:
    assert len({(planted.name, planted.n_pairs) for planted in JUDGES}) == len(JUDGES)


@pytest.mark.parametrize("planted", JUDGES, ids=lambda planted: planted.name)
def test_the_true_values_are_what_many_pairs_give(planted: Planted) -> None:
    copies = max(1, 40_000 // planted.n_pairs)
    many = Planted(
        name="many",
        kinds=planted.kinds,
        clusters=planted.clusters * copies,
        sizes=planted.sizes,
        gold_share=planted.gold_share,
    )
    row = figures(next(tallies(many, 1, (3, 1))))
    assert row["n_pairs"] == row["n_complete"] == many.n_pairs
    assert row["n_clusters"] == many.clusters
    truth = true_values(planted)
    for name in INTERVALS:
        if truth[name] is None:
            continue
        found, low, high = (row[key] for key in (name, f"{name}_low", f"{name}_high"))
        assert isinstance(found, float)
        # Five standard errors, as the interval has them; the offset's knows no clusters.
        reach = 5 / 1.96 * (float(high or 0) - float(low or 0)) / 2 * (3 if name == "offset" else 1)
        assert abs(found - (truth[name] or 0.0)) <= reach, name


@pytest.mark.parametrize("offset", [-1.0, 0.0, 0.5])
def test_planted_offsets_are_the_true_ones_in_every_model_that_has_them(offset: float) -> None:
    for kinds in (
        mixed(by_cells(0.7, offset=offset)),
        by_contents(offset=offset),
        by_davidson(offset=offset),
    ):
        planted = Planted(name="one", kinds=kinds, clusters=10)
        assert true_values(planted)["offset"] == pytest.approx(offset, abs=1e-9)


def test_half_leaning_pairs_have_the_odds_of_the_model_of_davidson() -> None:
    for kinds in (by_davidson(offset=0.6), mixed(by_cells(0.5, offset=0.6, halves=0.5))):
        law = sum(outcomes for _, outcomes in kinds)
        cells = {
            cell: sum(p for p, slots in zip(law, OUTCOMES, strict=True) if settle(*slots) is cell)
            for cell in Cell
        }
        assert cells[Cell.HALF_FIRST] / cells[Cell.HALF_SECOND] == pytest.approx(exp(0.6))
        assert cells[Cell.STUCK_FIRST] / cells[Cell.STUCK_SECOND] == pytest.approx(exp(1.2))


@pytest.mark.parametrize("tie_width", [0.0, 0.7])
def test_the_planted_formula_is_the_simulated_judges(tie_width: float) -> None:
    """The same latent score and the same reading of it, over many logistic draws."""
    rng = np.random.default_rng(2)
    u = rng.random((2, 50_000))
    noise = np.log(u / (1 - u))
    gap, offset = 0.8, 0.4
    (_, law), *_ = by_contents(offset=offset, spread=1e-9, tie_width=tie_width)
    seen = np.zeros(len(OUTCOMES))
    place = {slots: n for n, slots in enumerate(OUTCOMES)}
    for ab, ba in zip(*(offset + noise), strict=True):
        seen[place[slot_of(ab, tie_width), slot_of(ba, tie_width)]] += 1
    assert np.abs(seen / 50_000 - law).max() < 0.012
    assert gap > 0


def test_without_noise_the_content_decides_but_for_the_offset() -> None:
    kinds = by_contents(offset=0.5, noise=0.0)
    slots = [OUTCOMES[int(np.argmax(outcomes))] for _, outcomes in kinds]
    assert {max(outcomes) for _, outcomes in kinds} == {1.0}
    assert (Slot.SECOND, Slot.SECOND) not in slots
    assert 0 < slots.count((Slot.FIRST, Slot.FIRST)) < len(slots)


def test_what_is_expected_of_a_planted_judge() -> None:
    planted = Planted(
        name="one", kinds=mixed(by_cells(0.8, halves=0.25)), clusters=50, sizes=(1, 3)
    )
    assert planted.n_pairs == 100
    assert leaning(planted) == pytest.approx(20.0)
    assert scarcer_outcome(planted, "consistency") == pytest.approx(20.0)
    assert scarcer_outcome(planted, "swing") == pytest.approx(10.0)
    assert scarcer_outcome(planted, "offset") == pytest.approx(7.5)


def test_the_promised_offset_is_the_one_the_report_prints() -> None:
    promised = [planted for planted in JUDGES if planted.promised is not None]
    assert {planted.promised for planted in promised} == {0.0, 0.3, 0.7}
    for planted in promised:
        assert leaning(planted) == pytest.approx(100.0)
    exact = next(planted for planted in promised if planted.promised == 0.0)
    law = true_values(exact)
    assert law["offset"] == pytest.approx(detectable_offset(100))
    assert log(2.0) > (law["offset"] or 0.0)
