"""Soft verdicts: how far a judge leans, from the probabilities of its verdict's words.

Per order d = ln P(first) - ln P(second), from the log-probabilities themselves. A pair's position
part is the two orders' average, (d_ab + d_ba)/2; its score for A is the average of P(A) + P(tie)/2
over the words that are known. A word outside the alternatives that a server lists has only a bound:
a pair in which that is so of a slot's word is counted and left out; a tie's word is counted, and
left out of the sum.

Sums are of whole billionths, so that the order of the calls changes no bit.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from judgebias.stats.clustered import mean_interval, plain_mean_interval
from judgebias.summary.clusters import ClusterSums, cluster_sums
from judgebias.summary.columns import NUMBER, WHOLE, bounded, estimate, typed
from judgebias.summary.figures import Row
from judgebias.summary.profiles import ALL, Group
from judgebias.summary.settle import KEY, is_numbered

SOFT_COLUMNS: Final = {
    **typed(WHOLE, "n_soft", "n_soft_bounds", "n_soft_no_tie"),
    **bounded("win_rate_a_soft"),
    **bounded("offset_soft"),
    **typed(NUMBER, "offset_soft_median"),
}
"""The last columns of summary.*: pairs with probabilities in both orders; those left out because a
slot's word has only a bound (not among `n_soft`); those of `n_soft` whose tie has; the figures.
`offset_soft` is on another scale than `offset`, and not to be compared with it."""
WORDS: Final = ("p_first", "p_second", "p_tie")
_SCALE: Final = 10**9


def soft_rows(calls: pl.LazyFrame, pairs: pl.LazyFrame) -> dict[Group, Row]:
    """Compute `SOFT_COLUMNS` per (judge, task) and (judge, ALL) that has probabilities at all.

    Parameters
    ----------
    calls
        judge, task, pair_id, repeat, order, slot and `WORDS`: one row per call that ended.
    pairs
        task, pair_id, cluster.
    """
    asked = _of_soft_judges(calls)
    key = ["pair_id"] if is_numbered(pairs) else ["task", "pair_id"]
    told = _in_both_orders(asked).join(pairs.select(*key, "cluster"), on=key, how="left")
    frame = _whole(told).collect()
    if frame.is_empty():
        return {}
    used = _with_repeats_together(frame.filter(pl.col("lean").is_not_null()))
    sums = cluster_sums(used, ["lean", "score", "one"])
    return {group: _row(part, sums.get(group)) for group, part in sorted(_groups(frame).items())}


def with_soft(summary: pl.DataFrame, rows: dict[Group, Row]) -> pl.DataFrame:
    """Add `SOFT_COLUMNS` to the summary; without probabilities counts are 0 and figures null."""
    none: Row = dict.fromkeys(SOFT_COLUMNS) | dict.fromkeys(list(SOFT_COLUMNS)[:3], 0)
    groups = summary.select("judge", "task").iter_rows()
    found = [rows.get((judge, task), none) for judge, task in groups]
    data = [[row[name] for name in SOFT_COLUMNS] for row in found]
    return pl.concat([summary, pl.DataFrame(data, SOFT_COLUMNS, orient="row")], how="horizontal")


def _of_soft_judges(calls: pl.LazyFrame) -> pl.LazyFrame:
    """Keep the verdicts of judges with any probability: one without is a bound, like a word."""
    told = pl.any_horizontal(pl.col(WORDS).is_not_null())
    soft = calls.filter(told).select(pl.col("judge").cast(pl.String).unique()).collect()
    mine = pl.col("judge").cast(pl.String).is_in(soft["judge"].to_list())
    return calls.filter(mine & pl.col("slot").is_not_null())


def _in_both_orders(calls: pl.LazyFrame) -> pl.LazyFrame:
    told = calls.with_columns(
        pl.col(KEY[:2]).cast(pl.String),
        pl.col("order").cast(pl.String),
        # What is so unlikely that it is 0 is a bound too.
        *(pl.when(pl.col(word) > 0).then(pl.col(word)).alias(word) for word in WORDS),
    )
    sides = [
        told.filter(pl.col("order") == order).select(
            *KEY,
            (pl.col("p_first").log() - pl.col("p_second").log()).alias(f"d_{order}"),
            _score(a="p_first" if order == "ab" else "p_second").alias(f"y_{order}"),
            pl.col("p_tie").is_null().alias(f"no_tie_{order}"),
        )
        for order in ("ab", "ba")
    ]
    return sides[0].join(sides[1], on=KEY, how="inner")


def _score(*, a: str) -> pl.Expr:
    tie = pl.col("p_tie").fill_null(0.0)
    return (pl.col(a) + tie / 2) / (pl.col("p_first") + pl.col("p_second") + tie)


def _whole(told: pl.LazyFrame) -> pl.LazyFrame:
    lean = (pl.col("d_ab") + pl.col("d_ba")) / 2
    score = (pl.col("y_ab") + pl.col("y_ba")) / 2
    return told.select(
        *KEY,
        "cluster",
        (lean * _SCALE).round().cast(pl.Int64).alias("lean"),
        (score * _SCALE).round().cast(pl.Int64).alias("score"),
        pl.lit(1, pl.Int64).alias("one"),
        (pl.col("no_tie_ab") | pl.col("no_tie_ba")).alias("no_tie"),
    )


def _with_repeats_together(frame: pl.DataFrame) -> pl.DataFrame:
    """Give the repeats of a pair without a cluster one: they are not independent."""
    if frame["repeat"].n_unique() < 2:
        return frame
    own = pl.concat_str(pl.lit("\0"), "task", pl.lit("\0"), "pair_id")
    if frame["cluster"].dtype.is_integer():
        # Numbers of pairs and of clusters both begin at 0.
        own = -1 - pl.col("pair_id").cast(pl.Int64)
    return frame.with_columns(pl.coalesce("cluster", own).alias("cluster"))


def _groups(frame: pl.DataFrame) -> dict[Group, pl.DataFrame]:
    frame = frame.with_columns(pl.col("task").cast(pl.String))
    whole = frame.with_columns(task=pl.lit(ALL))
    parts = pl.concat([frame, whole]).partition_by("judge", "task", as_dict=True)
    return {(str(judge), str(task)): part for (judge, task), part in parts.items()}


def _row(part: pl.DataFrame, sums: ClusterSums | None) -> Row:
    used = part.filter(pl.col("lean").is_not_null())
    row: Row = dict.fromkeys(SOFT_COLUMNS)
    row |= {
        "n_soft": used.height,
        "n_soft_bounds": part.height - used.height,
        "n_soft_no_tie": int(used["no_tie"].sum()),
    }
    if sums is None:
        return row
    n, sizes, clusters = sums.total("one"), sums.sums["one"], sums.multiplicity
    score = mean_interval(sums.sums["score"], sizes, clusters, scale=_SCALE, low=0, high=1)
    lean = plain_mean_interval(sums.sums["lean"], sizes, clusters, scale=_SCALE)
    row |= estimate("win_rate_a_soft", sums.total("score") / (n * _SCALE), score)
    row |= estimate("offset_soft", sums.total("lean") / (n * _SCALE), lean)
    median = used["lean"].median()
    return row | {"offset_soft_median": float(str(median)) / _SCALE}
