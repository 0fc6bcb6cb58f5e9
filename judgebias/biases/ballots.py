"""Ballots: each pair with the final verdict of every judge, side by side.

A judge's vote is a small number: 0 none, 1 A, 2 B, 3 a tie that both orders agree on, 4 a tie made
by the orders (stuck or half). It stands in the column `vote_<place>` of the judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from judgebias.biases.clusters import LABELS, label_number, with_cluster_id
from judgebias.summary.settle import in_order, pair_key
from judgebias.verdicts import Cell

PANEL: Final = "panel"
"""The name of the panel among the judges; no judge may have it."""
PAIR_KEY: Final = ("task", "pair_id", "repeat")
ORDER_MADE: Final = 4
_ATTRIBUTES: Final = ("model_a", "model_b", "gold", "cluster", "len_a", "len_b")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ballots:
    """All votes on all pairs."""

    judges: tuple[str, ...]
    """Sorted; the panel is not among them."""
    frame: pl.DataFrame
    """task, pair_id, repeat (sorted by these), what pairs have, `gold_label`, `cluster_id`, votes.
    """

    @property
    def votes(self) -> list[str]:
        """The vote columns, in the order of the judges."""
        return [vote_column(place) for place in range(len(self.judges))]


def vote_column(place: int) -> str:
    """Name the column of the judge in this place."""
    return f"vote_{place}"


def ballots_of(verdicts: pl.LazyFrame) -> Ballots:
    """Put the final verdicts of the judges side by side; rows of the panel are passed over."""
    judge = pl.col("judge").cast(pl.String)
    real = verdicts.filter(judge != PANEL)
    judges = tuple(real.select(judge.unique().sort()).collect()["judge"].to_list())
    parts = [
        real.filter(judge == name).select(
            *PAIR_KEY, *_ATTRIBUTES, _vote().alias(vote_column(place))
        )
        for place, name in enumerate(judges)
    ]
    wide = _beside(pl.collect_all(parts), list(map(vote_column, range(len(judges)))))
    numbered = with_cluster_id(wide.with_columns(gold_label=label_number("gold")))
    return Ballots(judges=judges, frame=numbered)


def _beside(judges: Sequence[pl.DataFrame], votes: Sequence[str]) -> pl.DataFrame:
    """Join the judges' votes by pair: one row a pair that any of them judged, sorted."""
    if not judges:
        words = dict.fromkeys(("task", "pair_id", *_ATTRIBUTES), pl.String)
        return pl.DataFrame(schema={**words, "repeat": pl.Int32})
    key = list(pair_key(judges[0]))
    wide = in_order(judges[0])
    for judge, vote in zip(judges[1:], votes[1:], strict=True):
        ordered = in_order(judge)
        if ordered.select(key).equals(wide.select(key)):
            # Judges that are asked the same pairs have them in the same places.
            wide = wide.with_columns(ordered[vote])
            continue
        known = wide.join(judge.select(*key, vote), on=key, how="left")
        new = judge.join(wide.select(key), on=key, how="anti")
        wide = pl.concat([known, new], how="diagonal").sort(key)
    return wide.with_columns(pl.col(votes).fill_null(0))


def tally(votes: Sequence[str], *, without: str | None = None) -> dict[str, pl.Expr]:
    """Count a pair's votes: votes_a, votes_b, votes_tie (order-made or not), votes_order_made."""
    names = [name for name in votes if name != without]
    wanted = {"votes_a": (1,), "votes_b": (2,), "votes_tie": (3, 4), "votes_order_made": (4,)}
    return {name: _sum(pl.col(v).is_in(values) for v in names) for name, values in wanted.items()}


def majority(a: pl.Expr, b: pl.Expr, tie: pl.Expr) -> pl.Expr:
    """Return the label with more than half of the votes, else a tie, as a label number."""
    total = a + b + tie
    return (
        pl.when(2 * a > total)
        .then(LABELS["A"])
        .when(2 * b > total)
        .then(LABELS["B"])
        .otherwise(LABELS["tie"])
    )


def label_of(vote: str) -> pl.Expr:
    """Read a vote as a label: a tie is a tie, whoever made it."""
    return pl.min_horizontal(pl.col(vote), pl.lit(LABELS["tie"], pl.Int8))


def majority_label(need: int) -> pl.Expr:
    """Return the majority as a label number, 0 below the quorum; needs the columns of `tally`."""
    a, b, tie = (pl.col(f"votes_{name}") for name in ("a", "b", "tie"))
    return pl.when(a + b + tie >= need).then(majority(a, b, tie)).otherwise(0)


def default_quorum(voters: int) -> int:
    """Return how many must have voted: at least half, and at least two."""
    return max(2, -(-voters // 2))


def _vote() -> pl.Expr:
    agreed = pl.col("cell").cast(pl.Enum(Cell)).fill_null(Cell.AGREED_TIE) == Cell.AGREED_TIE
    label = label_number("final")
    made = (label == LABELS["tie"]) & ~agreed
    return pl.when(made).then(ORDER_MADE).otherwise(label).cast(pl.Int8)


def _sum(parts: Iterable[pl.Expr]) -> pl.Expr:
    return pl.sum_horizontal([pl.lit(0, pl.Int32), *(part.cast(pl.Int32) for part in parts)])
