from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.config import RunConfig
from judgebias.design import Design, Words, cutoff, digest_words, draws, words_of
from judgebias.pipeline.drawn import drawn_design
from judgebias.verdicts import Order

ALL = 2**64


def digests(n: int) -> Words:
    parts = [hashlib.blake2b(str(i).encode(), digest_size=16).digest() for i in range(n)]
    return words_of(b"".join(parts))


def designed(n: int, *, limit: int = 0, **run: object) -> Design:
    judges = [{"name": "j", "provider": "simulated"}]
    config = RunConfig.model_validate({"pairs": "p", "out": "o", "judges": judges, **run})
    questions = digests(n) if config.orders == "sampled" else None
    return drawn_design(config, digests(n), limit, questions=questions)


def asked(design: Design, n: int) -> tuple[np.ndarray, np.ndarray]:
    orders = design.asked(digests(n), digests(n))
    return orders[Order.AB], orders[Order.BA]


def test_both_asks_every_pair_in_both_orders() -> None:
    ab, ba = asked(designed(100), 100)
    assert ab.all()
    assert ba.all()


@pytest.mark.parametrize(("orders", "n_ab", "n_ba"), [("ab", 100, 0), ("ba", 0, 100)])
def test_one_order_only(orders: str, n_ab: int, n_ba: int) -> None:
    ab, ba = asked(designed(100, orders=orders), 100)
    assert (ab.sum(), ba.sum()) == (n_ab, n_ba)


def test_random_asks_each_pair_in_one_order_and_both_about_equally_often() -> None:
    ab, ba = asked(designed(4000, orders="random"), 4000)
    assert (ab ^ ba).all()
    # Six standard deviations.
    assert abs(int(ab.sum()) - 2000) < 190


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(0, 300),
    fraction=st.floats(0.01, 1),
    limit=st.integers(0, 350),
    seed=st.integers(-(2**63), 2**63 - 1),
)
def test_sampled_asks_each_pair_once_and_a_share_of_them_twice(
    n: int, fraction: float, limit: int, seed: int
) -> None:
    design = designed(n, orders="sampled", swap_fraction=fraction, seed=seed, limit=limit)
    ab, ba = asked(design, n)
    size = min(limit, n) if limit else n
    assert int((ab | ba).sum()) == size
    assert int(ab.sum() + ba.sum()) == size + (max(1, round(fraction * size)) if size else 0)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 300), small=st.integers(1, 300), more=st.integers(0, 300))
def test_a_larger_sample_contains_the_smaller(n: int, small: int, more: int) -> None:
    inner, _ = asked(designed(n, limit=small), n)
    outer, _ = asked(designed(n, limit=small + more), n)
    assert (inner <= outer).all()
    assert (inner.sum(), outer.sum()) == (min(small, n), min(small + more, n))


def test_the_choice_depends_on_the_pair_and_not_on_its_place() -> None:
    design = designed(200, orders="sampled", limit=90)
    words = digests(200)
    backwards = design.asked(words[::-1], words[::-1])
    for order, mask in design.asked(words, words).items():
        assert (mask == backwards[order][::-1]).all()


def test_one_pair_more_moves_no_order_of_the_others() -> None:
    ab, _ = asked(designed(100, orders="random"), 100)
    longer, _ = asked(designed(101, orders="random"), 101)
    assert (longer[:100] == ab).all()


def test_seeds_and_purposes_draw_independently() -> None:
    words = digests(2000)
    kinds = [(seed, salt) for seed in (0, 1) for salt in ("pairs", "swap", "order")]
    drawn = {kind: draws(words, seed=kind[0], salt=kind[1]) / 2.0**64 for kind in kinds}
    correlations = np.corrcoef([drawn[kind] for kind in kinds])
    # Five standard deviations of the correlation of independent draws.
    assert np.abs(correlations - np.eye(len(kinds))).max() < 5 / np.sqrt(2000)
    means = np.array([values.mean() for values in drawn.values()])
    assert np.abs(means - 0.5).max() < 5 / np.sqrt(12 * 2000)


def test_the_draws_stay_what_they_were() -> None:
    # A resume after an update must find the same sample.
    assert draws(digests(1), seed=7, salt="pairs").tolist() == [129170935665273784]


@given(st.sets(st.integers(0, ALL - 1), max_size=50), st.integers(0, 60))
def test_exactly_the_asked_number_lies_below_the_cutoff(values: set[int], count: int) -> None:
    array = np.array(sorted(values, reverse=True), dtype=np.uint64)
    bound = cutoff(array, count)
    assert sum(value < bound for value in values) == min(count, len(values))


def test_a_column_of_digests_is_read_where_it_lies() -> None:
    parts = [hashlib.blake2b(str(i).encode(), digest_size=16).digest() for i in range(9)]
    column = pl.Series(parts, dtype=pl.Binary)
    assert np.array_equal(digest_words(column), words_of(b"".join(parts)))
    assert np.array_equal(digest_words(column[3:7]), words_of(b"".join(parts[3:7])))
    several = pl.concat([column[:2].to_frame(), column[5:].to_frame()], rechunk=False)
    assert np.array_equal(
        digest_words(several.to_series()), words_of(b"".join(parts[:2] + parts[5:]))
    )
    assert digest_words(column.clear()).shape == (0, 2)
