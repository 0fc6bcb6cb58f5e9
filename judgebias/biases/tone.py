"""Tone (`tables/tone.csv`): whether markdown wins, beside length.

Over the pairs on which both orders agree, "A wins" is regressed at once on the log ratio of lengths
and on the differences of the markdown densities (headers, lists, bold, tables per 1000 characters):
a row per judge x task and covariate, `length` first. Errors are over clusters, with t.

Columns: `judge, task, covariate, n, n_clusters, mean_a, mean_b, sd_difference, slope, slope_low,
slope_high, slope_per_sd, mcfadden_r2, reason`. `mean_*` are mean lengths or densities of the
answers of these pairs; `sd_difference` is the spread of the covariate, `slope_per_sd` the change in
logits over one such spread, which can be compared between covariates. `mcfadden_r2` is that of the
whole model. A covariate in which no pair differs is left out of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import Final

import numpy as np
import polars as pl

from judgebias.biases.clusters import LABELS
from judgebias.biases.complete import CompletePairs, complete_pairs
from judgebias.stats.interval import MIN_CLUSTERS, Interval, t95
from judgebias.stats.length import mcfadden_r2
from judgebias.stats.logistic import Failure, FloatArray, cluster_covariance, fit_logistic
from judgebias.stats.profiles import IntArray
from judgebias.summary.columns import Row, bounded, estimate, frame_of
from judgebias.summary.settle import is_numbered
from judgebias.tone import DENSITY_COLUMNS, KINDS

LENGTH: Final = "length"
_WHOLE: Final = {"n", "n_clusters"}
_TEXT: Final = {"judge", "task", "covariate", "reason"}

_CONSTANT: Final = "not available: no pair differs in it"

TONE_COLUMNS: Final = (
    *("judge", "task", "covariate", "n", "n_clusters", "mean_a", "mean_b", "sd_difference"),
    *(*bounded("slope"), "slope_per_sd", "mcfadden_r2", "reason"),
)
"""The columns of tables/tone.csv, in order."""


def tone_table(verdicts: pl.LazyFrame, densities: pl.LazyFrame | None = None) -> pl.DataFrame:
    """Regress who wins on length and markdown, per judge x task and per judge over ALL.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, in any order.
    densities
        task, pair_id and `tone.DENSITY_COLUMNS`, one row per pair; None where texts are not known.

    Returns
    -------
    DataFrame
        `TONE_COLUMNS`, sorted by judge, task (ALL last); covariates in a fixed order.
    """
    joined = _join(verdicts, densities)
    rows = [
        {"judge": judge, "task": task, **row}
        for (judge, task), pairs in complete_pairs(joined, extra=DENSITY_COLUMNS)
        for row in _rows(pairs)
    ]
    return frame_of(rows, {name: _type(name) for name in TONE_COLUMNS})


def _join(verdicts: pl.LazyFrame, densities: pl.LazyFrame | None) -> pl.LazyFrame:
    if densities is None:
        return verdicts.with_columns(pl.lit(None, pl.Float64).alias(n) for n in DENSITY_COLUMNS)
    key = ["pair_id"] if is_numbered(verdicts) else ["task", "pair_id"]
    told = densities.select(*key, *DENSITY_COLUMNS)
    return verdicts.join(told, on=key, how="left", validate="m:1", maintain_order="left")


def _type(name: str) -> pl.DataType:
    if name in _TEXT:
        return pl.String()
    return pl.Int64() if name in _WHOLE else pl.Float64()


def _rows(pairs: CompletePairs) -> Iterator[Row]:
    known = ~pairs.frame.select(pl.any_horizontal(pl.col(DENSITY_COLUMNS).is_null())).to_series()
    kept = pairs.decided & known.to_numpy()
    n, cluster = int(kept.sum()), pairs.cluster[kept]
    common: Row = {"n": n, "n_clusters": len(np.unique(cluster))}
    if n == 0:
        why = "no agreed pair" if not pairs.decided.any() else "texts are not known"
        words = f"not available: {why}"
        yield from (common | {"covariate": name, "reason": words} for name in (LENGTH, *KINDS))
        return
    columns = {LENGTH: pairs.log_ratio[kept]}
    means: dict[str, Row] = {LENGTH: _means(pairs.len_a[kept], pairs.len_b[kept])}
    for kind in KINDS:
        sides = (pairs.frame[f"{kind}_{side}"].to_numpy()[kept] for side in ("a", "b"))
        a, b = (side.astype(np.float64) for side in sides)
        columns[kind], means[kind] = a - b, _means(a, b)
    wins = (pairs.final[kept] == LABELS["A"]).astype(np.float64)
    fitted = _fit(columns, wins, cluster)
    for name, column in columns.items():
        sd = float(column.std(ddof=1)) if n > 1 else None
        row = common | means[name] | {"covariate": name, "sd_difference": sd}
        found = fitted[name]
        slope = found.get("slope")
        if isinstance(slope, float) and sd is not None:
            row["slope_per_sd"] = slope * sd
        yield row | found


def _fit(columns: Mapping[str, FloatArray], wins: FloatArray, cluster: IntArray) -> dict[str, Row]:
    """Fit one model of all covariates that differ, and return the figures of each."""
    used = [name for name, column in columns.items() if column.any()]
    result: dict[str, Row] = {name: {"reason": _CONSTANT} for name in columns}
    covariates = [np.ones(len(wins)), *(columns[name] for name in used)]
    fit = fit_logistic(covariates, wins)
    if isinstance(fit, Failure):
        failed: dict[str, Row] = {name: {"reason": f"not available: {fit}"} for name in used}
        return result | failed
    covariance, n_clusters = cluster_covariance(fit, covariates, wins, cluster)
    r2 = mcfadden_r2(fit, wins)
    for place, name in enumerate(used, start=1):
        slope, interval = float(fit.coefficients[place]), None
        if n_clusters >= MIN_CLUSTERS:
            half = t95(n_clusters - 1) * sqrt(max(float(covariance[place, place]), 0.0))
            interval = Interval(low=slope - half, high=slope + half)
        reason = None if interval else "interval not available: fewer than 6 clusters"
        figures = estimate("slope", slope, interval)
        result[name] = {**figures, "mcfadden_r2": r2, "reason": reason}
    return result


def _means(a: IntArray | FloatArray, b: IntArray | FloatArray) -> Row:
    return {"mean_a": float(a.mean()), "mean_b": float(b.mean())}
