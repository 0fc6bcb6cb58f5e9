"""tables/flips.csv: direction against noise, from calls that were repeated.

A *flip* is two calls on one pair that name different winners. Two calls in the same order flip by
the judge's own wavering; two calls in different orders flip by that and by whatever the position
does, in any direction. The difference is the position effect of any direction: its expectation is
half the squared distance between the winners' distributions in the two orders, so never negative.
"""

from __future__ import annotations

from math import lcm
from typing import Final

import polars as pl

from judgebias.stats.clustered import mean_interval
from judgebias.summary.clusters import ClusterSums, cluster_sums
from judgebias.summary.columns import (
    NUMBER,
    TEXT,
    WHOLE,
    Row,
    bounded,
    estimate,
    frame_of,
    place,
    typed,
)
from judgebias.summary.profiles import ALL, Group
from judgebias.summary.settle import SLOTS
from judgebias.verdicts import Order, Winner, unswap

FLIP_COLUMNS: Final = {
    **typed(TEXT, "judge", "task"),
    **typed(WHOLE, "n_pairs", "n_repeated", "n_clusters"),
    **bounded("flip_rate_between"),
    **bounded("flip_rate_within"),
    **typed(NUMBER, "flip_rate_within_ab", "flip_rate_within_ba"),
    **bounded("position_effect"),
    **typed(TEXT, "reason"),
}
"""The columns of tables/flips.csv."""
_PAIR: Final = ("judge", "task", "pair_id", "cluster")
_FLIPS: Final = ("between", "within_ab", "within_ba", "effect")
# Unequal numbers of repeats have large common denominators; beyond this, sums might not fit.
_ROOM: Final = 2**61
_FINEST: Final = 2**32


def flips_table(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute flip rates per judge x task and per judge over ALL tasks, ALL last.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns: one row per pair and repeat.

    Returns
    -------
    DataFrame
        `FLIP_COLUMNS`. `n_repeated` pairs have at least two verdicts in each order and carry all
        figures; with none of them the figures are null and `reason` says so.

    Notes
    -----
    Per pair with r_ab and r_ba verdicts, and a_w and b_w of them for winner w: between
    1 - sum_w a_w b_w/(r_ab r_ba), within 1 - sum_w a_w (a_w - 1)/(r_ab (r_ab - 1)), and likewise
    for ba: U-statistics (Hoeffding 1948), unbiased whatever the number of repeats. Means over pairs
    with the t interval over clusters of the summary.
    """
    several = bool(verdicts.select(pl.col("repeat").n_unique() > 1).collect().item())
    # Millions of pairs that were judged once need not be counted one by one.
    pairs = _counted(verdicts if several else verdicts.limit(0))
    repeated = pairs.filter((pl.col("r_ab") > 1) & (pl.col("r_ba") > 1))
    scale = _scale(repeated)
    sums = cluster_sums(repeated.select(*_PAIR, *_flips(scale)), [*_FLIPS, "n"])
    n_pairs = _pairs(verdicts, pl.struct(_PAIR).n_unique() if several else pl.len())
    rows = [_row(group, n, sums.get(group), scale) for group, n in n_pairs.items()]
    return frame_of(sorted(rows, key=place), FLIP_COLUMNS)


def _counted(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Count per pair its verdicts for each winner in each order."""
    counts = [
        (pl.col(f"state_{order}") == state)
        .cast(pl.Int64)
        .sum()
        .alias(f"{order}_{unswap(slot, order)}")
        for order in Order
        for slot, state in SLOTS.items()
    ]
    totals = {
        f"r_{order}": pl.sum_horizontal(f"{order}_{winner}" for winner in Winner) for order in Order
    }
    return verdicts.group_by(_PAIR).agg(counts).with_columns(**totals).collect()


def _pairs(verdicts: pl.LazyFrame, number: pl.Expr) -> dict[Group, int]:
    by_task = verdicts.group_by("judge", "task").agg(number.cast(pl.Int64).alias("n")).collect()
    by_task = by_task.with_columns(pl.col("task").cast(pl.String))
    whole = by_task.group_by("judge").agg(pl.col("n").sum(), task=pl.lit(ALL))
    counted = pl.concat([by_task, whole.select(by_task.columns)])
    return {(judge, task): int(n) for judge, task, n in counted.iter_rows()}


def _scale(repeated: pl.DataFrame) -> int:
    """Find the denominator that makes every pair's figures whole."""
    whole, largest = 2, 1
    for ab, ba in repeated.select("r_ab", "r_ba").unique().iter_rows():
        whole = lcm(whole, ab * ba, 2 * ab * (ab - 1), 2 * ba * (ba - 1))
        largest = max(largest, ab, ba)
    return whole if whole * largest**2 * max(1, repeated.height) < _ROOM else _FINEST


def _flips(scale: int) -> list[pl.Expr]:
    r_ab, r_ba = pl.col("r_ab"), pl.col("r_ba")
    same = sum((pl.col(f"ab_{w}") * pl.col(f"ba_{w}") for w in Winner), pl.lit(0, pl.Int64))
    between = (r_ab * r_ba - same) * scale // (r_ab * r_ba)
    within = {order: _within(order, scale) for order in Order}
    effect = between - (within[Order.AB] + within[Order.BA]) // 2
    return [
        between.alias("between"),
        within[Order.AB].alias("within_ab"),
        within[Order.BA].alias("within_ba"),
        effect.alias("effect"),
        pl.lit(1, pl.Int64).alias("n"),
    ]


def _within(order: Order, scale: int) -> pl.Expr:
    r = pl.col(f"r_{order}")
    counts = [pl.col(f"{order}_{winner}") for winner in Winner]
    same = sum((n * (n - 1) for n in counts), pl.lit(0, pl.Int64))
    return (r * (r - 1) - same) * scale // (r * (r - 1))


def _row(group: Group, n_pairs: int, sums: ClusterSums | None, scale: int) -> Row:
    about: Row = {"judge": group[0], "task": group[1], "n_pairs": n_pairs}
    if sums is None:
        reason = "not available: no pair has two verdicts in each order (repeats)"
        return about | {"n_repeated": 0, "n_clusters": 0, "reason": reason}
    within = sums.sums["within_ab"] + sums.sums["within_ba"]
    figures = {
        "flip_rate_between": (sums.sums["between"], scale, 0),
        "flip_rate_within": (within, 2 * scale, 0),
        "position_effect": (sums.sums["effect"], scale, -1),
    }
    n = sums.total("n")
    row = about | {"n_repeated": n, "n_clusters": sums.n_clusters}
    for name, (values, unit, low) in figures.items():
        interval = mean_interval(
            values, sums.sums["n"], sums.multiplicity, scale=unit, low=low, high=1
        )
        row |= estimate(name, int(values @ sums.multiplicity) / (unit * n), interval)
    for order in Order:
        row[f"flip_rate_within_{order}"] = sums.total(f"within_{order}") / (scale * n)
    few = row["position_effect_low"] is None
    return row | {"reason": "interval not available: fewer than 6 clusters" if few else None}
