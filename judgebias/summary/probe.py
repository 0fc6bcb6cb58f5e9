"""tables/self_pair.csv: what each judge made of two identical texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from judgebias.stats.probe import ProbeFigures, probe_figures
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
from judgebias.verdicts import Slot

FLAG: Final = "often prefers one of two identical texts; cannot resolve small differences"
NO_FLAG: Final = "no flag"

PROBE_COLUMNS: Final = {
    **typed(TEXT, "judge", "task"),
    **typed(WHOLE, "n_items", "n_items_judged", "n_calls"),
    **typed(WHOLE, "n_slot1", "n_slot2", "n_tie", "n_failed"),
    **bounded("tie_rate"),
    **typed(NUMBER, "slot1_pull", "slot2_pull", "p_value", "p_items", "offset"),
    **typed(TEXT, "flag", "reason"),
}
"""The columns of tables/self_pair.csv."""
NO_CALLS: Final = pl.LazyFrame(schema=dict.fromkeys(("judge", "task", "item", "slot"), pl.String))
_SUMS: Final = {"n_slot1": Slot.FIRST, "n_slot2": Slot.SECOND, "n_tie": Slot.TIE, "n_failed": None}


def probe_table(
    calls: pl.LazyFrame, has_tie: Mapping[str, bool | None] | None = None
) -> pl.DataFrame:
    """Compute the self-pair probe per judge x task and per judge over ALL tasks, ALL last.

    Parameters
    ----------
    calls
        judge, task, item, slot: one row per call that ended on a pair of identical texts, slot null
        where it failed. An item is known by (task, item), and its calls are one cluster.
    has_tie
        Judge -> whether its template lets it call a tie. Unknown (absent or None): the tie rate is
        available only where a tie was called.

    Returns
    -------
    DataFrame
        `PROBE_COLUMNS`. `n_calls` = n_slot1 + n_slot2 + n_tie + n_failed; rates are over verdicts.
        `flag` is null where it cannot be told, and `reason` says what is missing and why.
    """
    options = has_tie or {}
    groups = cluster_sums(_items(calls), [*_SUMS])
    rows = [_row(*group, sums, options.get(group[0])) for group, sums in groups.items()]
    return frame_of(sorted(rows, key=place), PROBE_COLUMNS)


def _items(calls: pl.LazyFrame) -> pl.DataFrame:
    slot = pl.col("slot").cast(pl.String)
    ends = [
        (slot.is_null() if said is None else slot == str(said)).cast(pl.Int64).sum().alias(name)
        for name, said in _SUMS.items()
    ]
    key = [pl.col(name).cast(pl.String) for name in ("judge", "task", "item")]
    items = calls.group_by(key).agg(ends)
    return items.with_columns(cluster=pl.lit(None, pl.String)).collect()


def _row(judge: str, task: str, items: ClusterSums, option: bool | None) -> Row:  # noqa: FBT001
    has_tie = items.total("n_tie") > 0 if option is None else option
    told = ("n_slot1", "n_slot2", "n_tie")
    first, second, ties = (items.sums[name] for name in told)
    found = probe_figures(first, second, ties, items.multiplicity, has_tie=has_tie)
    n_failed = items.total("n_failed")
    return {
        "judge": judge,
        "task": task,
        "n_items": items.n_clusters,
        "n_items_judged": found.n_items,
        "n_calls": found.n_calls + n_failed,
        **{name: items.total(name) for name in told},
        "n_failed": n_failed,
        **estimate("tie_rate", found.tie_rate, found.tie_interval),
        "slot1_pull": found.slot1_pull,
        "slot2_pull": found.slot2_pull,
        "p_value": found.p_value,
        "p_items": found.p_items,
        "offset": found.offset,
        "flag": None if found.flagged is None else FLAG if found.flagged else NO_FLAG,
        "reason": _why(found, option=option, has_tie=has_tie),
    }


def _why(found: ProbeFigures, *, option: bool | None, has_tie: bool) -> str | None:
    if found.n_calls == 0:
        return "not available: no verdict on identical texts"
    missing: list[str] = []
    if not has_tie:
        known = "the template has no tie option"
        unknown = "no tie was called, and whether the template has that option is not known"
        missing.append(f"tie rate not available: {unknown if option is None else known}")
    elif found.tie_interval is None:
        missing.append("interval not available: fewer than 6 items, some with several verdicts")
    if found.p_value is None:
        missing.append("p and offset not available: no verdict for either slot")
    elif found.p_items is None:
        missing.append("p over items not available: the pulls cancel within every item")
    return "; ".join(missing) or None
