"""How the panel voted, pair by pair, and its verdicts as those of one more judge."""

from __future__ import annotations

from typing import Final

import polars as pl

from judgebias.biases.ballots import (
    PAIR_KEY,
    PANEL,
    Ballots,
    ballots_of,
    default_quorum,
    majority,
    majority_label,
    tally,
)
from judgebias.biases.clusters import LABELS
from judgebias.summary import VERDICT_COLUMNS

VOTE_COLUMNS: Final = (
    *PAIR_KEY,
    *("votes_a", "votes_b", "votes_tie", "votes_order_made", "votes"),
    *("majority", "not_order_made", "mean_preference"),
)
"""The columns of `panel_votes`, in order."""


def panel_verdicts(
    verdicts: pl.LazyFrame, *, quorum: int = 0, ballots: Ballots | None = None
) -> pl.LazyFrame:
    """Return the panel as one more judge, named ``panel``: rows to add to the verdicts.

    Its `final` is the majority, null below the quorum. It is asked nothing itself, so its slots and
    cell are null and its states absent. No rows where there are fewer judges than the quorum.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns.
    quorum, ballots
        As in `panel_table`.

    Returns
    -------
    LazyFrame
        The columns and types of `verdicts`, sorted by pair.
    """
    ballots = ballots or ballots_of(verdicts)
    need = quorum or default_quorum(len(ballots.judges))
    schema = verdicts.collect_schema()
    decided = decided_ballots(ballots, need)
    if len(ballots.judges) < need:
        decided = decided.clear()
    rows = decided.with_columns(
        judge=pl.lit(PANEL),
        final=_word(pl.col("majority")),
        **{name: pl.lit(None) for name in ("slot_ab", "slot_ba", "cell")},
        **{name: pl.lit(0) for name in ("state_ab", "state_ba") if name in schema},
    )
    states = [name for name in ("state_ab", "state_ba") if name in schema]
    return rows.select(
        pl.col(name).cast(schema[name]) for name in (*VERDICT_COLUMNS, *states)
    ).lazy()


def panel_votes(verdicts: pl.LazyFrame, *, quorum: int = 0) -> pl.DataFrame:
    """Return pair by pair how the panel voted.

    Returns
    -------
    DataFrame
        `VOTE_COLUMNS`, sorted by pair; verdicts as A, B, tie, null where there is none.
    """
    ballots = ballots_of(verdicts)
    decided = decided_ballots(ballots, quorum or default_quorum(len(ballots.judges)))
    return decided.with_columns(
        votes=all_votes(),
        majority=_word(pl.col("majority")),
        not_order_made=_word(pl.col("not_order_made")),
        mean_preference=half_points() / (2 * all_votes().replace(0, None)),
    ).select(VOTE_COLUMNS)


def decided_ballots(ballots: Ballots, need: int) -> pl.DataFrame:
    """Add votes and, as label numbers (0: none), the verdicts of the variants."""
    voted = ballots.frame.with_columns(**tally(ballots.votes))
    a, b, tie, made = (pl.col(f"votes_{name}") for name in ("a", "b", "tie", "order_made"))
    enough = all_votes() >= need
    sides = pl.when(a > b).then(LABELS["A"]).when(b > a).then(LABELS["B"]).otherwise(LABELS["tie"])
    left = enough & (all_votes() > made)
    return voted.with_columns(
        majority=majority_label(need),
        not_order_made=pl.when(left).then(majority(a, b, tie - made)).otherwise(0),
        mean_preference=pl.when(enough).then(sides).otherwise(0),
    )


def all_votes() -> pl.Expr:
    """Count the votes of a pair."""
    return pl.col("votes_a") + pl.col("votes_b") + pl.col("votes_tie")


def half_points() -> pl.Expr:
    """Return what the votes give to A: two for A, one for a tie."""
    return 2 * pl.col("votes_a") + pl.col("votes_tie")


def _word(label: pl.Expr) -> pl.Expr:
    words = {place: name for name, place in LABELS.items()}
    return label.replace_strict(words, default=None, return_dtype=pl.String)
