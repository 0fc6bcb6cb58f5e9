"""tables/sampled.csv: one order for all pairs, both orders for some of them, or for none.

Where a sample has both orders, its cells, its consistency and the verdict on position bias are
those of the summary over the sample; swing and win rate join sample and rest. Where no pair has
both, what single calls can tell is told, under its own name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from judgebias.stats.clustered import mean_interval
from judgebias.stats.sampling import Estimate, first_call_p, sampled_swing, sampled_win_rate
from judgebias.summary.clusters import ClusterSums, cluster_sums
from judgebias.summary.columns import (
    NUMBER,
    TEXT,
    WHOLE,
    Row,
    Schema,
    bounded,
    estimate,
    frame_of,
    place,
    typed,
)
from judgebias.summary.first_calls import CallCounts, call_counts, first_scores
from judgebias.summary.profiles import Group
from judgebias.summary.rows import compare, rows_of
from judgebias.summary.settle import ABSENT
from judgebias.verdicts import Cell, Order


def _joined(name: str) -> Schema:
    return {
        **typed(NUMBER, name, f"{name}_se", f"{name}_low", f"{name}_high", f"{name}_weight"),
    }


_OF_SAMPLE: Final = {
    **typed(WHOLE, *(str(cell) for cell in Cell)),
    **bounded("consistency"),
    **bounded("offset"),
    **typed(WHOLE, "lean_first", "lean_second"),
    **typed(NUMBER, "p_paired", "p_position"),
    **typed(WHOLE, "n_leaning_clusters"),
    **typed(NUMBER, "q_position"),
    **typed(TEXT, "position_bias"),
    **typed(NUMBER, "detectable_offset"),
}
"""Figures of the summary, over the pairs asked in both orders."""

SAMPLED_COLUMNS: Final = {
    **typed(TEXT, "judge", "task"),
    **typed(WHOLE, "n_pairs", "n_both", "n_single", "n_incomplete", "n_calls", "n_failed"),
    **typed(WHOLE, "first_call_first", "first_call_decisive"),
    **typed(NUMBER, "first_call_rate", "first_call_p"),
    **typed(TEXT, "first_call_reads"),
    **_joined("swing"),
    **_joined("win_rate_a"),
    **bounded("single_win_rate_a"),
    **typed(TEXT, "single_win_rate_reads"),
    **_OF_SAMPLE,
    **typed(TEXT, "note"),
}
"""The columns of tables/sampled.csv."""


def sampled_table(verdicts: pl.LazyFrame) -> pl.DataFrame:
    """Compute the half-cost estimates per judge x task and per judge over ALL tasks, ALL last."""
    return compare_sampled(sampled_rows(verdicts))


def sampled_rows(verdicts: pl.LazyFrame) -> list[Row]:
    """Compute the rows of the half-cost design, each by itself.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, with `first_order` (ab or ba): which call of the pair is its
        first. A pair in one order may leave it null.

    Raises
    ------
    ValueError
        A pair asked in both orders has no first order.

    Notes
    -----
    `n_pairs` = n_both + n_single + n_incomplete. A pair of the sample that lost one of its calls is
    incomplete: counted as a single it would make the rest no random part of the pairs.
    """
    frame = verdicts.collect()
    both = (pl.col("state_ab") != ABSENT) & (pl.col("state_ba") != ABSENT)
    sample = {
        (str(row["judge"]), str(row["task"])): row for row in rows_of(frame.filter(both).lazy())
    }
    scores = cluster_sums(first_scores(frame), ["score", "n"])
    rows = [
        _row(group, counts, scores.get(group), sample.get(group))
        for group, counts in call_counts(frame).items()
    ]
    return sorted(rows, key=place)


def compare_sampled(rows: Sequence[Row]) -> pl.DataFrame:
    """Make the table of the rows of all judges; q is over its rows with pairs in both orders."""
    sampled = [number for number, row in enumerate(rows) if row["n_both"]]
    # Whether lean and swing are at odds is told over the sample, as everything on position bias.
    family = compare(
        [{**rows[number], "swing": rows[number]["sample_swing"]} for number in sampled]
    )
    compared = [*rows]
    for number, row in zip(sampled, family, strict=True):
        found = {name: row[name] for name in ("q_position", "position_bias")}
        compared[number] = {**rows[number], **found}
    return frame_of(compared, SAMPLED_COLUMNS)


def _row(group: Group, counts: CallCounts, scores: ClusterSums | None, sample: Row | None) -> Row:
    judge, task = group
    return {
        **_sample(sample if counts.n_both else None),
        "judge": judge,
        "task": task,
        "n_pairs": counts.n_both + counts.n_single + counts.n_incomplete,
        "n_both": counts.n_both,
        "n_single": counts.n_single,
        "n_incomplete": counts.n_incomplete,
        "n_calls": counts.n_calls,
        "n_failed": counts.n_failed,
        **_first_calls(counts),
        **_estimate("swing", sampled_swing(counts.both, counts.rest)),
        **_estimate("win_rate_a", sampled_win_rate(counts.both, counts.rest)),
        **_single_calls(scores),
        "single_win_rate_reads": _SINGLE_READS[counts.shown_first] if scores else None,
        "note": _note(counts, scores),
    }


def _sample(sample: Row | None) -> Row:
    """Take the figures of the sample, with what `compare` asks for beside them."""
    taken: Row = {name: sample.get(name) if sample else None for name in (*_OF_SAMPLE, "lean_rate")}
    return taken | {"sample_swing": sample["swing"] if sample else None}


def _first_calls(counts: CallCounts) -> Row:
    firsts, decisive = counts.firsts
    return {
        "first_call_first": firsts,
        "first_call_decisive": decisive,
        "first_call_rate": firsts / decisive if decisive else None,
        "first_call_p": first_call_p(firsts, decisive),
        "first_call_reads": _FIRST_READS[counts.shown_first] if decisive else None,
    }


def _estimate(name: str, found: Estimate | None) -> Row:
    if found is None:
        return dict.fromkeys(_joined(name))
    return {
        **estimate(name, found.value, found.interval),
        f"{name}_se": found.se,
        f"{name}_weight": found.weight,
    }


def _single_calls(scores: ClusterSums | None) -> Row:
    """Compute the win rate of A in the first calls alone, as a mean over clusters."""
    if scores is None:
        return estimate("single_win_rate_a", None, None)
    sums, sizes = scores.sums["score"], scores.sums["n"]
    interval = mean_interval(sums, sizes, scores.multiplicity, scale=2, low=0, high=1)
    value = scores.total("score") / (2 * scores.total("n"))
    return estimate("single_win_rate_a", value, interval)


_FIRST_READS: Final = {
    None: (
        "tests that the slot has no effect at all, and is conservative otherwise; position bias is "
        "told by p_position of the pairs in both orders"
    ),
    Order.AB: "A was shown first throughout: a pull of the slot and a preference for A look alike",
    Order.BA: "B was shown first throughout: a pull of the slot and a preference for B look alike",
}
_SINGLE_READS: Final = {
    None: "single calls in mixed orders: what one order alone would report",
    Order.AB: "single calls, where A was shown first throughout: holds whatever the slot does to A",
    Order.BA: "single calls, where B was shown first throughout: holds whatever the slot does to A",
}


def _note(counts: CallCounts, scores: ClusterSums | None) -> str | None:
    notes: list[str] = []
    if counts.n_both == 0:
        notes.append("consistency not available: no pair has verdicts in both orders")
    elif counts.n_both < 2 or counts.n_single == 1:
        notes.append("swing and win rate not available: under 2 pairs in both orders, or 1 in one")
    elif scores and scores.total("n") > scores.n_clusters:
        notes.append(
            "intervals of swing and win rate are for independent pairs, and here clusters hold "
            "several"
        )
    if counts.n_incomplete:
        notes.append(f"{counts.n_incomplete} pairs failed or are pending and are left out")
    return "; ".join(notes) or None
