from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from judgebias.stats import ranking
from judgebias.stats.comparisons import FIRST, SECOND, TIE, Comparisons
from judgebias.stats.self_preference import SelfPreference, Unavailable, self_preference

WORLDS = 200
QUESTIONS = 80
STRENGTH = np.array([0.8, 0.3, 0.0, -0.4, -0.7])
FAMILY = np.array([0, 0, 1, 2, 3])
OWN = FAMILY == 0


def verdicts(
    rng: np.random.Generator, x: np.ndarray, *, offset: float, ties: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw what a judge says in each order, from the latent score of A."""
    shown = [sign * x + offset + rng.logistic(size=x.size) for sign in (1, -1)]
    ab, ba = (np.where(abs(v) < ties, TIE, np.where(v > 0, FIRST, SECOND)) for v in shown)
    return ab, ba


def world(
    seed: int, *, scale: float, bonus: float = 0.0, spread: float = 0.0, n: int = QUESTIONS
) -> tuple[Comparisons, Comparisons]:
    """Two judges of families 1 and 2, who love their own, and the judge of family 0."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(5), 2)))
    a, b = np.tile(pairs, (n, 1)).T
    cluster = np.repeat(np.arange(n), len(pairs))
    quality = STRENGTH + rng.normal(0, spread, (n, 5))
    gap = quality[cluster, a] - quality[cluster, b]
    parts = []
    for family, offset in ((1, -0.3), (2, 0.3)):
        own = family == FAMILY
        x = gap + 0.5 * (own[a].astype(float) - own[b])
        ab, ba = verdicts(rng, x, offset=offset, ties=0.02)
        neutral = ~(own[a] | own[b])
        parts.append([column[neutral] for column in (a, b, ab, ba, cluster)])
    others = [np.concatenate(column) for column in zip(*parts, strict=True)]
    x = scale * gap + bonus * (OWN[a].astype(float) - OWN[b])
    ab, ba = verdicts(rng, x, offset=0.4, ties=0.02)
    return comparisons(*others), comparisons(a, b, ab, ba, cluster)


def comparisons(*columns: np.ndarray) -> Comparisons:
    a, b, ab, ba, cluster = columns
    return Comparisons.of(a=a, b=b, ab=ab, ba=ba, count=np.ones(a.size, int), cluster=cluster)


def found(*made: Comparisons) -> SelfPreference:
    result = self_preference(*made, OWN)
    assert isinstance(result, SelfPreference)
    return result


def holds(result: SelfPreference, gamma: float) -> bool:
    assert result.interval is not None
    assert result.interval.low is not None
    assert result.interval.high is not None
    return result.interval.low <= gamma <= result.interval.high


@pytest.mark.parametrize(("scale", "spread"), [(1.0, 0.0), (0.3, 0.0), (0.3, 1.0)])
@pytest.mark.slow
def test_a_judge_without_bonus_is_not_flagged_however_noisy(scale: float, spread: float) -> None:
    results = [found(*world(seed, scale=scale, spread=spread)) for seed in range(WORLDS)]
    assert sum(not holds(result, 0.0) for result in results) / WORLDS <= 0.07


@pytest.mark.slow
def test_a_sharper_judge_is_not_taken_for_one_that_loves_its_own() -> None:
    """Its own calls among those that make the strengths would flag nearly every world."""
    results = [found(*world(seed, scale=3.0)) for seed in range(WORLDS)]
    assert sum(not holds(result, 0.0) for result in results) / WORLDS <= 0.10
    assert abs(np.mean([result.gamma for result in results])) < 0.15


@pytest.mark.parametrize(("scale", "bonus"), [(1.0, 0.8), (0.5, 1.5)])
@pytest.mark.slow
def test_a_planted_bonus_is_within_the_interval(scale: float, bonus: float) -> None:
    results = [found(*world(seed, scale=scale, bonus=bonus)) for seed in range(WORLDS)]
    assert sum(holds(result, bonus) for result in results) / WORLDS >= 0.90
    assert sum(result.p is not None and result.p < 0.05 for result in results) / WORLDS > 0.9
    assert np.mean([result.alpha for result in results]) == pytest.approx(scale, abs=0.1)


def test_the_errors_of_the_strengths_are_part_of_the_interval() -> None:
    """The same calls of the judge beside a tenth of the others' calls tell less."""
    others, judged = world(3, scale=1.0)
    few = others.where(others.cluster < QUESTIONS // 10)
    wide, narrow = found(few, judged).interval, found(others, judged).interval
    assert wide is not None
    assert narrow is not None
    assert (wide.high or 0) - (wide.low or 0) > 1.5 * ((narrow.high or 0) - (narrow.low or 0))


def test_counted_rows_are_the_same_rows() -> None:
    others, judged = world(4, scale=1.0)
    columns = (judged.a, judged.b, judged.ab, judged.ba, judged.cluster)
    twice = [np.tile(column, 2) for column in columns]
    doubled = Comparisons.of(
        **dict(zip(("a", "b", "ab", "ba", "cluster"), columns, strict=True)),
        count=np.full(judged.a.size, 2),
    )
    one, two = found(others, comparisons(*twice)), found(others, doubled)
    assert one.n_calls == two.n_calls
    assert one.gamma == pytest.approx(two.gamma, rel=1e-9)
    assert one.interval is not None
    assert two.interval is not None
    assert one.interval.low == pytest.approx(two.interval.low, rel=1e-9)


def test_what_is_missing_is_named() -> None:
    others, judged = world(5, scale=1.0)
    nobody = np.zeros(others.a.size, bool)
    neither = ~(OWN[judged.a] | OWN[judged.b])
    alone = ~(OWN[others.a] | OWN[others.b])
    ties = Comparisons.of(
        **{name: getattr(judged, name) for name in ("a", "b", "count", "cluster")},
        ab=np.where(neither, judged.ab, TIE),
        ba=np.where(neither, judged.ba, TIE),
    )
    assert self_preference(others.where(nobody), judged, OWN) is Unavailable.NO_OTHERS
    assert self_preference(others, judged.where(~neither), OWN) is Unavailable.NO_NEUTRAL_PAIRS
    assert self_preference(others, judged.where(neither), OWN) is Unavailable.NO_OWN_CALLS
    assert self_preference(others, ties, OWN) is Unavailable.NO_OWN_CALLS
    unjoined = self_preference(others.where(alone), judged.where(~neither), OWN)
    assert unjoined is Unavailable.NOT_JOINED
    never = comparisons(*(np.array([x]) for x in (0, 1, FIRST, SECOND, 0)))
    assert self_preference(never, judged, OWN) is ranking.Failure.NO_CALLS


def test_few_clusters_have_no_interval() -> None:
    others, judged = world(6, scale=1.0)
    few = judged.where(judged.cluster < 5)
    result = found(others, few)
    assert (result.n_clusters, result.interval, result.p) == (5, None, None)
