"""Length (`tables/length.csv`): one row per judge x task and per judge over ALL, ALL last.

Columns, in order; (+) is followed by `_low` and `_high`:

* `judge, task, n_complete, n_with_lengths, mean_len_a, mean_len_b`: pairs, and mean code points;
  these and everything below over the complete pairs whose lengths are known;
* `prefers_longer, prefers_longer_of, prefers_longer_rate(+), prefers_longer_p,
  prefers_longer_p_clusters`: how often the longer answer wins among pairs on which both orders
  agree; equal lengths left out. The p-values: exact sign test, and its form over clusters;
* `n_slope, intercept, slope(+), slope_se, mcfadden_r2`: logistic regression of "A wins" on
  log((len_a+1)/(len_b+1)) over the agreed pairs, Wald;
* `n_calls, call_slope(+)`: the same of the single decisive calls, order effect beside it, over
  clusters: what length weighs in one call. With independent calls `slope` is twice that;
* `win_rate_a, lc_win_rate_a(+), lc_sd_log_ratio`: as judged, and at equal lengths;
* `n_matched, win_rate_a_matched(+)`: pairs whose lengths differ by 10% at most;
* `excess_n, excess_clusters, judge_picks_longer, gold_picks_longer, excess(+),
  gold_error_that_explains, gold_error_low, plausible_gold_error`: the judge against gold;
* `length_bias`: `longer`, `gold error may explain it`, `none detected`, `too few` or
  `not available`; without gold there is a preference, not a bias;
* `reason`: why what is null is null.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from judgebias.biases.clusters import LABELS
from judgebias.biases.complete import CompletePairs, SmallArray, complete_pairs
from judgebias.stats.binomial import sign_test_p
from judgebias.stats.clustered import agreement_rate, mean_interval
from judgebias.stats.interval import MIN_CLUSTERS
from judgebias.stats.length import call_slope, length_controlled, length_slope
from judgebias.stats.length_excess import PLAUSIBLE_GOLD_ERROR, excess_over_gold, is_length_bias
from judgebias.stats.logistic import Failure
from judgebias.stats.profiles import IntArray, dense
from judgebias.stats.sign_flip import sign_flip_p
from judgebias.summary.columns import Row, bounded, estimate, frame_of

_WHOLE: Final = {
    *("n_complete", "n_with_lengths", "prefers_longer", "prefers_longer_of"),
    *("n_slope", "n_calls", "n_matched", "excess_n", "excess_clusters"),
}
_TEXT: Final = {"judge", "task", "length_bias", "reason"}

LENGTH_COLUMNS: Final = (
    *("judge", "task", "n_complete", "n_with_lengths", "mean_len_a", "mean_len_b"),
    *("prefers_longer", "prefers_longer_of", *bounded("prefers_longer_rate")),
    *("prefers_longer_p", "prefers_longer_p_clusters"),
    *("n_slope", "intercept", *bounded("slope"), "slope_se", "mcfadden_r2"),
    *("n_calls", *bounded("call_slope")),
    *("win_rate_a", *bounded("lc_win_rate_a"), "lc_sd_log_ratio"),
    *("n_matched", *bounded("win_rate_a_matched")),
    *("excess_n", "excess_clusters", "judge_picks_longer", "gold_picks_longer"),
    *(*bounded("excess"), "gold_error_that_explains", "gold_error_low", "plausible_gold_error"),
    *("length_bias", "reason"),
)
"""The columns of tables/length.csv, in order."""

_WORDS: Final = {True: "longer", False: "none detected", None: "too few"}
_TIE: Final = LABELS["tie"]


def length_table(
    verdicts: pl.LazyFrame, *, plausible_gold_error: float = PLAUSIBLE_GOLD_ERROR
) -> pl.DataFrame:
    """Compute how length and verdicts go together, per judge x task and per judge over ALL.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, in any order.
    plausible_gold_error
        The largest plausible error rate of gold: where it is known how often people agree with each
        other, what `stats.length_excess.error_of_people` makes of that.

    Returns
    -------
    DataFrame
        `LENGTH_COLUMNS`; a figure that is not available is null, and `reason` says why.
    """
    rows = [
        {"judge": judge, "task": task, **length_figures(pairs, plausible_gold_error)}
        for (judge, task), pairs in complete_pairs(verdicts)
    ]
    return frame_of(rows, {name: _type(name) for name in LENGTH_COLUMNS})


def length_figures(pairs: CompletePairs, plausible_gold_error: float) -> Row:
    """Compute the figures of one row."""
    n = len(pairs.final)
    row: Row = {
        "n_complete": pairs.n_complete,
        "n_with_lengths": n,
        "plausible_gold_error": plausible_gold_error,
    }
    if n == 0:
        words = "no complete pair" if pairs.n_complete == 0 else "lengths are not known (no texts)"
        return row | {"length_bias": "not available", "reason": f"not available: {words}"}
    row |= {
        "mean_len_a": int(pairs.len_a.sum()) / n,
        "mean_len_b": int(pairs.len_b.sum()) / n,
    }
    parts = [_prefers(pairs), _slope(pairs), _calls(pairs), _controlled(pairs), _matched(pairs)]
    parts.append(_excess(pairs, plausible_gold_error))
    reasons = [str(part["reason"]) for part in parts if part.get("reason")]
    if n < pairs.n_complete:
        reasons.insert(0, f"{pairs.n_complete - n} pairs of unknown lengths are left out")
    for part in parts:
        row |= part
    return row | {"reason": "; ".join(reasons) or None}


def _type(name: str) -> pl.DataType:
    if name in _TEXT:
        return pl.String()
    return pl.Int64() if name in _WHOLE else pl.Float64()


def _prefers(pairs: CompletePairs) -> Row:
    longer = pairs.longer
    told = pairs.decided & (longer > 0)
    won = (pairs.final == longer)[told]
    k, n, cluster = int(won.sum()), int(told.sum()), pairs.cluster[told]
    row: Row = {"prefers_longer": k, "prefers_longer_of": n}
    if n == 0:
        return row | {"reason": "prefers_longer: no agreed pair of unequal lengths"}
    wins, sizes = _by_cluster(cluster, won), _by_cluster(cluster, np.ones(n, np.int64))
    ones = np.ones_like(sizes)
    interval, _ = agreement_rate(wins, sizes, ones)
    return row | {
        **estimate("prefers_longer_rate", k / n, interval),
        "prefers_longer_p": sign_test_p(k, n),
        "prefers_longer_p_clusters": sign_flip_p(2 * wins - sizes, ones),
    }


def _slope(pairs: CompletePairs) -> Row:
    told = pairs.decided
    row: Row = {"n_slope": int(told.sum())}
    wins = (pairs.final == LABELS["A"])[told].astype(np.float64)
    slope = length_slope(pairs.log_ratio[told], wins)
    if isinstance(slope, Failure):
        return row | {"reason": f"slope: {slope}"}
    return row | {
        "intercept": slope.intercept,
        **estimate("slope", slope.slope, slope.interval),
        "slope_se": slope.se,
        "mcfadden_r2": slope.mcfadden_r2,
    }


def _calls(pairs: CompletePairs) -> Row:
    said = np.concatenate([pairs.ab, pairs.ba])
    told, n = said != 1, len(pairs.ab)
    order = np.repeat([1.0, -1.0], n)
    slope = call_slope(
        np.tile(pairs.log_ratio, 2)[told],
        order[told],
        (said == 2)[told].astype(np.float64),
        np.tile(pairs.cluster, 2)[told],
    )
    row: Row = {"n_calls": int(told.sum())}
    if isinstance(slope, Failure):
        return row | {"reason": f"call_slope: {slope}"}
    return row | estimate("call_slope", slope.slope, slope.interval)


def _controlled(pairs: CompletePairs) -> Row:
    halves = _halves(pairs.final)
    row: Row = {"win_rate_a": int(halves.sum()) / (2 * len(halves))}
    controlled = length_controlled(pairs.log_ratio, halves / 2.0, pairs.cluster)
    if isinstance(controlled, Failure):
        return row | {"reason": f"lc_win_rate_a: {controlled}"}
    row |= estimate("lc_win_rate_a", controlled.win_rate, controlled.interval)
    row["lc_sd_log_ratio"] = controlled.sd
    if controlled.interval is None:
        few = controlled.n_clusters < MIN_CLUSTERS
        words = "fewer than 6 clusters" if few else "all pairs have the same score"
        row["reason"] = f"interval of lc_win_rate_a: {words}"
    return row


def _matched(pairs: CompletePairs) -> Row:
    shorter = np.minimum(pairs.len_a, pairs.len_b)
    matched = 10 * np.maximum(pairs.len_a, pairs.len_b) <= 11 * shorter
    n = int(matched.sum())
    if n == 0:
        return {"n_matched": 0, "reason": "win_rate_a_matched: no pair within 10%"}
    halves, cluster = _halves(pairs.final[matched]), pairs.cluster[matched]
    sums, sizes = _by_cluster(cluster, halves), _by_cluster(cluster, np.ones(n, np.int64))
    interval = mean_interval(sums, sizes, np.ones_like(sizes), scale=2, low=0, high=1)
    rate = int(halves.sum()) / (2 * n)
    return {"n_matched": n, **estimate("win_rate_a_matched", rate, interval)}


def _excess(pairs: CompletePairs, plausible: float) -> Row:
    longer = pairs.longer
    told = (longer > 0) & (pairs.gold > 0) & (pairs.gold != _TIE)
    picks = pairs.ab + pairs.ba
    quarters = np.where(longer == LABELS["A"], picks, 4 - picks)[told]
    cluster, right = pairs.cluster[told], (pairs.gold == longer)[told]
    sizes = _by_cluster(cluster, np.ones(len(cluster), np.int64))
    excess = excess_over_gold(
        _by_cluster(cluster, quarters), _by_cluster(cluster, right), sizes, np.ones_like(sizes)
    )
    if excess is None:
        labelled = bool((pairs.gold > 0).any())
        words = (
            "no pair of unequal lengths with a decisive label"
            if labelled
            else "no gold labels, so this is a preference and not a bias"
        )
        return {"excess_n": 0, "length_bias": "not available", "reason": f"length_bias: {words}"}
    row: Row = {
        "excess_n": excess.n,
        "excess_clusters": excess.n_clusters,
        "judge_picks_longer": excess.judge,
        "gold_picks_longer": excess.gold,
        **estimate("excess", excess.excess, excess.interval),
        "gold_error_that_explains": excess.gold_error,
        "gold_error_low": excess.gold_error_low,
    }
    biased, low = is_length_bias(excess, plausible), row["excess_low"]
    explained = biased is False and isinstance(low, float) and low > 0.0
    row["length_bias"] = "gold error may explain it" if explained else _WORDS[biased]
    if excess.interval is None:
        row["reason"] = "interval of excess: fewer than 6 clusters"
    return row


def _halves(final: SmallArray) -> SmallArray:
    """Score A in halves: 2, 1 or 0."""
    return np.int8(2) * (final == LABELS["A"]) + (final == _TIE)


def _by_cluster(cluster: IntArray, values: np.ndarray) -> IntArray:
    """Sum whole numbers by cluster, exactly."""
    place, n_clusters = dense(cluster)
    # Whole numbers below 2**53 are exact as floating point.
    return np.bincount(place, weights=values, minlength=n_clusters).astype(np.int64)
