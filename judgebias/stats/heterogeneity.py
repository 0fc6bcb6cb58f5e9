"""Whether tasks differ in the direction their pairs lean."""

from __future__ import annotations

import numpy.typing as npt
from scipy import special

from judgebias.stats.profiles import columns


def directions_differ_p(
    first_by_task: npt.ArrayLike, second_by_task: npt.ArrayLike
) -> float | None:
    """Return the p-value of a chi-square test of direction by task.

    Parameters
    ----------
    first_by_task, second_by_task
        Per task, the pairs that lean to the first and to the second slot.

    Returns
    -------
    float or None
        None with fewer than two tasks that have leaning pairs, or with one direction empty.

    Notes
    -----
    Pearson (1900), without continuity correction: with F, S and N the totals, the statistic is
    sum_t (N f_t - n_t F)^2 / (n_t F S).
    """
    first, second = columns(first_by_task=first_by_task, second_by_task=second_by_task)
    rows = [(f, f + s) for f, s in zip(first.tolist(), second.tolist(), strict=True) if f + s]
    n_first, n = sum(f for f, _ in rows), sum(size for _, size in rows)
    if len(rows) < 2 or n_first in (0, n):
        return None
    statistic = sum((n * f - size * n_first) ** 2 / size for f, size in rows)
    return float(special.chdtrc(len(rows) - 1, statistic / (n_first * (n - n_first))))
