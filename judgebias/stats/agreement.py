"""Krippendorff's alpha: how far several raters agree beyond chance, labels missing or not."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from judgebias.stats.interval import MIN_CLUSTERS, Interval, t95
from judgebias.stats.profiles import IntArray, columns, whole_numbers

FloatArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Alpha:
    """Agreement of any number of raters."""

    alpha: float | None
    """Krippendorff's alpha; None without a unit that has two labels, or with one label only."""

    interval: Interval | None
    """95% bounds, not clipped; None where alpha is, and with fewer than 6 clusters."""

    n_units: int
    """Units with at least two labels; the others say nothing about agreement."""

    n_clusters: int
    """Clusters that hold such a unit."""


def krippendorff_alpha(
    labels: npt.ArrayLike, units: npt.ArrayLike, profile: npt.ArrayLike, multiplicity: npt.ArrayLike
) -> Alpha:
    """Return the nominal alpha of raters, with an interval over clusters of units.

    Parameters
    ----------
    labels
        (rows, labels) how many raters gave each label to a unit. Rows in a fixed order give the
        same bits each time.
    units
        (rows,) units of a cluster that got just these labels.
    profile
        (rows,) the cluster profile that the row belongs to, from 0.
    multiplicity
        (profiles,) clusters per profile.

    Raises
    ------
    ValueError
        The tables do not fit together, or are not of whole numbers.

    Notes
    -----
    Krippendorff (2011): alpha = 1 - (n - 1) D/(n^2 - sum_k n_k^2) with
    D = sum_u (m_u^2 - sum_k n_uk^2)/(m_u - 1) over the units u with m_u >= 2 labels, and n and n_k
    the labels there. The interval leaves out one cluster at a time (the delete-one jackknife, Tukey
    1958, Efron and Stein 1981): se^2 = (G - 1)/G sum_c (alpha_(-c) - mean)^2, with t of G - 1
    degrees of freedom. The customary bootstrap of units (Hayes and Krippendorff 2007) would ignore
    clusters and need a seed.
    """
    table = whole_numbers(labels, name="labels")
    if table.ndim != 2:
        msg = f"labels has shape {table.shape}; expected (rows, labels)"
        raise ValueError(msg)
    raters, n_units, place = columns(raters=table.sum(axis=1), units=units, profile=profile)
    clusters = whole_numbers(multiplicity, name="multiplicity")
    paired = raters >= 2
    table, raters, n_units, place = (part[paired] for part in (table, raters, n_units, place))
    used = np.isin(np.arange(clusters.size), place[n_units > 0]) & (clusters > 0)
    clusters = np.where(used, clusters, 0)
    sums = _cluster_sums(table, raters, n_units, place, clusters.size)
    total = clusters.astype(np.float64) @ sums
    alpha, n_clusters = _alpha(total[None, :])[0], int(clusters.sum())
    known = bool(np.isfinite(alpha))
    return Alpha(
        alpha=float(alpha) if known else None,
        interval=_jackknife(float(alpha), sums[used], clusters[used], total) if known else None,
        n_units=int((n_units * clusters[place]).sum()),
        n_clusters=n_clusters,
    )


def _cluster_sums(
    table: IntArray, raters: IntArray, units: IntArray, place: IntArray, profiles: int
) -> FloatArray:
    """Return per cluster its disagreement D and its labels of each kind: (profiles, 1 + labels)."""
    disagreement = (raters**2 - (table**2).sum(axis=1)) / (raters - 1)
    rows = np.column_stack([disagreement, table]) * units[:, None]
    return np.column_stack([_added(place, column, profiles) for column in rows.T])


def _added(place: IntArray, weights: FloatArray, profiles: int) -> FloatArray:
    return np.bincount(place, weights=weights, minlength=profiles).astype(np.float64)


def _alpha(sums: FloatArray) -> FloatArray:
    """Return alpha per row of sums; NaN where all labels are alike, or there are none."""
    n = sums[:, 1:].sum(axis=1)
    by_chance = n**2 - (sums[:, 1:] ** 2).sum(axis=1)
    observed = (n - 1.0) * sums[:, 0]
    unlike = by_chance > 0.0
    ratio = np.divide(observed, by_chance, out=np.full(n.shape, np.nan), where=unlike)
    return 1.0 - ratio


def _jackknife(
    alpha: float, sums: FloatArray, clusters: IntArray, total: FloatArray
) -> Interval | None:
    n_clusters = int(clusters.sum())
    if n_clusters < MIN_CLUSTERS:
        return None
    left_out = _alpha(total[None, :] - sums)
    if not np.isfinite(left_out).all():
        return None
    mean = float((clusters * left_out).sum()) / n_clusters
    squares = float((clusters * (left_out - mean) ** 2).sum())
    half = t95(n_clusters - 1) * sqrt((n_clusters - 1) / n_clusters * squares)
    return Interval(low=alpha - half, high=alpha + half)
