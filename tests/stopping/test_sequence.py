from __future__ import annotations

import numpy as np
import pytest

from judgebias.pairs import PairsSpec, read_block, survey_pairs
from judgebias.stopping.sequence import (
    LEAST_WAVES,
    MOST_PARTS,
    buying_order,
    cluster_of,
    unit_draws,
)
from tests.pipeline.run_files import write_pairs


def draws_for(names, seed=0):
    return unit_draws(names, [b""] * len(names), seed=seed)


def test_waves_grow_and_hold_whole_units_and_every_pair_once() -> None:
    names = [f"question {n // 3}" for n in range(3000)]
    draws = draws_for(names)
    order = buying_order(draws, seed=0, cluster="question", n_blocks=2)
    waves = order.waves(draws)
    assert sorted(set(waves)) == list(range(order.n_waves))
    assert all(len({waves[n], waves[n + 1], waves[n + 2]}) == 1 for n in range(0, 3000, 3))
    sizes = np.bincount(waves)
    assert 60 <= sizes[0] <= 70
    settled = np.cumsum(sizes)
    # A stop comes at most a quarter too late, but for whole units.
    assert (sizes[1:] <= 0.25 * settled[:-1] + 4).all()


@pytest.mark.parametrize("n_blocks", [1, 100, 5000])
def test_many_blocks_have_fewer_waves(n_blocks: int) -> None:
    draws = np.random.default_rng(1).integers(0, 2**63, size=100_000).astype(np.uint64)
    order = buying_order(draws, seed=0, cluster="pair", n_blocks=n_blocks)
    assert order.n_waves <= max(LEAST_WAVES, MOST_PARTS // n_blocks) + 1
    assert order.n_waves >= LEAST_WAVES - 1


def test_the_order_of_units_is_the_seeds_and_not_the_rows() -> None:
    names = [f"q{n}" for n in range(500)]
    forward, backward = draws_for(names), draws_for(names[::-1])
    assert (forward == backward[::-1]).all()
    assert (draws_for(names, seed=1) != forward).all()
    # Ranks of neighbours are unrelated: a run through sorted rows is no run through the order.
    assert abs(np.corrcoef(np.arange(500), np.argsort(np.argsort(forward)))[0, 1]) < 0.15


def test_a_pair_without_a_cluster_is_its_own_unit_by_its_content() -> None:
    draws = unit_draws([None, None, "c", "c"], [b"1", b"2", b"1", b"2"], seed=0)
    assert len(set(draws)) == 3
    assert draws[2] == draws[3]


@pytest.mark.parametrize("rule", ["question", "pair", "task"])
def test_a_worker_finds_the_same_waves_as_the_driver(tmp_path, rule: str) -> None:
    path = write_pairs(tmp_path / "pairs.jsonl", 300)
    spec = PairsSpec(source=str(path), cluster=rule, pairs_per_block=70)
    survey = survey_pairs(spec)
    draws = unit_draws(survey.index["cluster"], survey.index["digest"], seed=4)
    order = buying_order(draws, seed=4, cluster=rule, n_blocks=len(survey.blocks))
    pairs = [pair for block in survey.blocks for pair in read_block(block, spec)]
    assert [cluster_of(pair, rule) for pair in pairs] == survey.index["cluster"].to_list()
    assert (order.waves_of(pairs) == order.waves(draws)).all()
    assert order.n_waves > 1 or rule == "task"


def test_no_pairs_are_one_empty_wave() -> None:
    order = buying_order(np.zeros(0, np.uint64), seed=0, cluster="pair", n_blocks=0)
    assert order.n_waves == 1
