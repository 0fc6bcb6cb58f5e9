"""The figures that two raters make together, as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from judgebias.biases.clusters import LABELS, Counted, count_kinds
from judgebias.stats.clustered import agreement_rate
from judgebias.stats.interval import MIN_CLUSTERS
from judgebias.stats.kappa import kappa_with_interval
from judgebias.summary.columns import Row, bounded, estimate

CONFUSION: Final = tuple(f"n_{x}_{y}" for x in LABELS for y in LABELS)
"""Pairs by (first rater's label, second rater's label)."""

AGREEMENT: Final = ("n", "n_clusters", *bounded("agreement"), *bounded("kappa"), *CONFUSION)
"""The columns that `agreement_figures` fills, but for `reason`."""


def confusion(frame: pl.DataFrame, x: pl.Expr, y: pl.Expr) -> Counted:
    """Count pairs by two label numbers (0: no label, the pair is left out)."""
    both = (x > 0) & (y > 0)
    kind = (x.cast(pl.Int64) - 1) * len(LABELS) + y.cast(pl.Int64) - 1
    return count_kinds(frame, pl.when(both).then(kind), len(LABELS) ** 2)


def agreement_figures(counted: Counted) -> Row:
    """Compute raw agreement and kappa of two raters, and say why what is missing is missing."""
    k = len(LABELS)
    tables = counted.counts.reshape(-1, k, k)
    sizes, agreeing = tables.sum(axis=(1, 2)), tables.trace(axis1=1, axis2=2)
    rate, _ = agreement_rate(agreeing, sizes, counted.multiplicity)
    kappa = kappa_with_interval(tables, counted.multiplicity)
    total = (tables * counted.multiplicity[:, None, None]).sum(axis=0)
    return {
        "n": counted.n,
        "n_clusters": counted.n_clusters,
        **estimate("agreement", kappa.agreement, rate),
        **estimate("kappa", kappa.kappa, kappa.interval),
        **dict(zip(CONFUSION, total.ravel().tolist(), strict=True)),
        "reason": _why(counted, total.sum(axis=1).tolist(), total.sum(axis=0).tolist()),
    }


def _why(counted: Counted, first: Sequence[int], second: Sequence[int]) -> str | None:
    if counted.n == 0:
        return "not available: no pair has both labels"
    constant = [sum(n > 0 for n in labels) == 1 for labels in (first, second)]
    if all(constant) and first == second:
        return "kappa not available: both give the same one label throughout"
    few = counted.n_clusters < MIN_CLUSTERS
    notes = ["interval not available: fewer than 6 clusters"] if few else []
    if any(constant):
        notes.append(
            "one of the two gives one label throughout: kappa is 0 whatever the other does"
        )
    return "; ".join(notes) or None
