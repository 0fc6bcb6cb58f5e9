"""Cohen's kappa between a judge's final verdicts and the gold labels, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

from judgebias.stats.interval import MIN_CLUSTERS, Z95, Interval, t95
from judgebias.stats.profiles import IntArray, columns, dot, gram, whole_numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class Kappa:
    """Agreement of two labellings, raw and beyond chance."""

    agreement: float | None
    """Share of equal labels; None without labels."""

    kappa: float | None
    """Cohen's kappa; None where chance alone would agree fully."""

    interval: Interval | None
    """95% bounds, not clipped; None with fewer than 6 clusters."""


def cohen_kappa(confusion: npt.ArrayLike) -> float | None:
    """Return the unweighted kappa (Cohen 1960) of a square table of counts.

    Returns
    -------
    float or None
        None for an empty table, or where both label everything alike (expected agreement 1).
    """
    table = whole_numbers(confusion, name="confusion")
    agreeing, n, by_chance = _agreement_counts(table)
    # (po - pe)/(1 - pe), multiplied by n^2 so that it is a fraction of whole numbers.
    return (n * agreeing - by_chance) / (n * n - by_chance) if n * n > by_chance else None


def kappa_with_interval(confusion_by_profile: npt.ArrayLike, multiplicity: npt.ArrayLike) -> Kappa:
    """Return agreement, kappa and its interval over clusters.

    Parameters
    ----------
    confusion_by_profile
        Whole numbers of shape (profiles, labels, labels): per profile, the cluster's pairs by
        (final verdict, gold). Clusters without a gold label do not count.
    multiplicity
        Clusters per profile.

    Raises
    ------
    ValueError
        The table is of another shape, or not of whole numbers.

    Notes
    -----
    Influence values psi_i of kappa (the delta method of Fleiss, Cohen and Everitt 1969), summed by
    cluster; z, or t with G - 1 degrees of freedom where a cluster holds several pairs.
    """
    profiles = whole_numbers(confusion_by_profile, name="confusion_by_profile")
    if profiles.ndim != 3 or profiles.shape[1] != profiles.shape[2]:
        msg = (
            f"confusion_by_profile has shape {profiles.shape}; expected (profiles, labels, labels)"
        )
        raise ValueError(msg)
    sizes, clusters = columns(sizes=profiles.sum(axis=(1, 2)), multiplicity=multiplicity)
    kept = (sizes > 0) & (clusters > 0)
    profiles, clusters = profiles[kept], clusters[kept]
    table = np.tensordot(clusters, profiles, axes=1)
    agreeing, n, _ = _agreement_counts(table)
    kappa, n_clusters = cohen_kappa(table), int(clusters.sum())
    interval = None
    if kappa is not None and n_clusters >= MIN_CLUSTERS:
        quantile = Z95 if n == n_clusters else t95(n_clusters - 1)
        half = quantile * _standard_error(profiles, clusters, table)
        interval = Interval(low=kappa - half, high=kappa + half)
    return Kappa(agreement=agreeing / n if n else None, kappa=kappa, interval=interval)


def _agreement_counts(table: IntArray) -> tuple[int, int, int]:
    """Return n po, n and n^2 pe."""
    rows, cols = table.sum(axis=1), table.sum(axis=0)
    return int(np.trace(table)), int(table.sum()), dot(rows, cols)


def _standard_error(profiles: IntArray, clusters: IntArray, table: IntArray) -> float:
    psi, denominator = _influence(table)
    flat = profiles.reshape(len(profiles), -1)
    weights = np.array(psi, dtype=object)
    return sqrt(int(weights @ gram(flat, clusters) @ weights) / denominator**2)


def _influence(table: IntArray) -> tuple[list[int], int]:
    """Return psi/n of every cell, row by row, as whole numbers over one denominator.

    With a = n po, e = n^2 pe and w = n^2 - e, the psi above times w^2/n is
    (n 1{same} - a) w - (n - a) (n (col_a + row_b) - 2 e).
    """
    rows = [int(value) for value in table.sum(axis=1)]
    cols = [int(value) for value in table.sum(axis=0)]
    agreeing, n, by_chance = _agreement_counts(table)
    left = n * n - by_chance
    psi = [
        (n * (a == b) - agreeing) * left
        - (n - agreeing) * (n * (cols[a] + rows[b]) - 2 * by_chance)
        for a in range(len(rows))
        for b in range(len(cols))
    ]
    return psi, left * left
