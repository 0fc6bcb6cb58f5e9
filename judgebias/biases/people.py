"""Judges against people: what both orders buy over one, and whether stuck pairs agree less.

`basis` says which verdict of the judge is compared with `gold`, on which pairs:

* ``both_orders``: the final verdict; ``order_ab``, ``order_ba``: what that order alone would have
  said. All three on the complete pairs; for a judge without any, each order on its calls.
* ``agreed``, ``stuck``, ``half`` and the seven cells: the final verdict on pairs of these cells.
  A stuck or half pair has a tie for its final verdict, so `agreement` is there the share of pairs
  that people call a tie.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from judgebias.biases.ballots import (
    PANEL,
    Ballots,
    ballots_of,
    default_quorum,
    majority_label,
    tally,
)
from judgebias.biases.clusters import LABELS, label_number, with_cluster_id
from judgebias.biases.figures import agreement_figures, confusion
from judgebias.summary.columns import Row, bounded
from judgebias.verdicts import Cell, Order, Slot, unswap

GOLD: Final = "gold"
_GROUPS: Final = {
    group: [str(cell) for cell in Cell if cell.startswith(group)]
    for group in ("agreed", "stuck", "half")
}
_ONE_LABEL: Final = "kappa not available: the final verdict is one and the same in this cell"


def judge_people_rows(verdicts: pl.LazyFrame, ballots: Ballots, quorum: int) -> Iterator[Row]:
    """Compare each judge and the panel with the gold labels."""
    for judge in ballots.judges:
        mine = _labelled(verdicts.filter(pl.col("judge").cast(pl.String) == judge))
        whole = mine.filter(pl.col("cell").is_not_null())
        views = whole if whole.height else mine
        for basis in ("both_orders", "order_ab", "order_ba"):
            yield _row(judge, basis, views)
        for basis, cells in _GROUPS.items():
            yield _row(judge, basis, whole.filter(pl.col("cell").is_in(cells)))
        for cell in Cell:
            yield _row(judge, str(cell), whole.filter(pl.col("cell") == str(cell)))
    need = quorum or default_quorum(len(ballots.judges))
    if len(ballots.judges) >= need:
        votes = ballots.frame.with_columns(**tally(ballots.votes))
        counted = confusion(votes, majority_label(need), pl.col("gold_label"))
        yield _about(PANEL, "both_orders") | agreement_figures(counted)


def people_ballots(people: pl.LazyFrame, ballots: Ballots) -> Ballots:
    """Put the labels of several people side by side, in the clusters of the judged pairs."""
    pairs = ballots.frame.unique(["task", "pair_id"]).drop("repeat", "cluster_id", "gold_label")
    said = people.select(
        pl.col("person").cast(pl.String).alias("judge"),
        *(pl.col(name).cast(pl.String) for name in ("task", "pair_id")),
        repeat=pl.lit(1, pl.Int32),
        final=pl.col("label").cast(pl.String),
        cell=pl.lit(None, pl.String),
    )
    return ballots_of(said.join(pairs.lazy(), on=["task", "pair_id"], how="inner"))


def _labelled(verdicts: pl.LazyFrame) -> pl.DataFrame:
    frame = verdicts.select(
        pl.col("cell").cast(pl.String),
        *("task", "pair_id", "repeat", "cluster"),
        both_orders=label_number("final"),
        order_ab=_said(Order.AB),
        order_ba=_said(Order.BA),
        gold_label=label_number("gold"),
    )
    # Clusters are numbered before pairs without gold go: whether repeats exist is theirs to say.
    return with_cluster_id(frame.collect()).filter(pl.col("gold_label") > 0)


def _said(order: Order) -> pl.Expr:
    winners = {str(slot): LABELS[str(unswap(slot, order))] for slot in Slot}
    slot = pl.col(f"slot_{order}").cast(pl.String)
    return slot.replace_strict(winners, default=0, return_dtype=pl.Int8)


def _row(judge: str, basis: str, frame: pl.DataFrame) -> Row:
    view = basis if basis.startswith("order_") else "both_orders"
    figures = agreement_figures(confusion(frame, pl.col(view), pl.col("gold_label")))
    if basis not in (view, "agreed") and figures["n"]:
        figures |= dict.fromkeys(bounded("kappa"))
        figures["reason"] = _ONE_LABEL
    return _about(judge, basis) | figures


def _about(judge: str, basis: str) -> Row:
    return {"comparison": "judge_people", "rater_a": judge, "rater_b": GOLD, "basis": basis}
