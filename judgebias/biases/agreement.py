"""Who agrees with whom: judges, the panel and people (`tables/agreement.csv`).

A row is one comparison of two raters, or of all of a kind:

============================ ================ ======================= ========================
`comparison`                 `rater_a`        `rater_b`               `basis`
============================ ================ ======================= ========================
``judges``                   a judge          a judge after it        ``both_orders``
``judge_panel_of_others``    a judge          ``panel_of_others``     ``both_orders``
``judges_alpha``             null             null                    ``both_orders``
``judge_people``             judge or panel   ``gold``                see `people`
``people``, ``people_alpha`` a person         a person                ``label``
============================ ================ ======================= ========================

Columns: `comparison, rater_a, rater_b, basis, n, n_clusters, agreement(+), kappa(+), alpha(+)`, the
confusion table `n_<label of a>_<label of b>` (nine counts), `reason`. (+) is followed by `_low` and
`_high`. `n` counts pairs with both labels (alpha: with two or more); each repeat of a pair counts,
in its pair's cluster. `reason` says why a null is null. Pairs of all tasks together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final

import numpy as np
import polars as pl

from judgebias.biases.ballots import (
    Ballots,
    ballots_of,
    default_quorum,
    label_of,
    majority_label,
    tally,
)
from judgebias.biases.figures import AGREEMENT, CONFUSION, agreement_figures, confusion
from judgebias.biases.people import judge_people_rows, people_ballots
from judgebias.stats.agreement import Alpha, krippendorff_alpha
from judgebias.stats.profiles import IntArray
from judgebias.summary.columns import Row, bounded, estimate, frame_of

PANEL_OF_OTHERS: Final = "panel_of_others"
_TEXT: Final = ("comparison", "rater_a", "rater_b", "basis")
_NUMBERS: Final = (*AGREEMENT[:8], *bounded("alpha"), *CONFUSION)

AGREEMENT_COLUMNS: Final = (*_TEXT, *_NUMBERS, "reason")
"""The columns of tables/agreement.csv, in order."""


def agreement_table(
    verdicts: pl.LazyFrame,
    *,
    quorum: int = 0,
    people: pl.LazyFrame | None = None,
    ballots: Ballots | None = None,
) -> pl.DataFrame:
    """Compare every judge with every other, with the panel of the others, and with people.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns; rows of the panel are passed over.
    quorum
        Votes that a panel needs; 0: half of its judges, rounded up, and at least 2.
    people
        task, pair_id, person, label (A, B, tie): what several people said, one row each, where
        they are known one by one; `gold` in the verdicts is what they said together.

    Returns
    -------
    DataFrame
        `AGREEMENT_COLUMNS`, in the order of the table above, then by name.
    """
    ballots = ballots or ballots_of(verdicts)
    rows = [
        *_pairwise(ballots, "judges", "both_orders"),
        *_against_others(ballots, quorum),
        _alpha_row(ballots, "judges_alpha", "both_orders"),
        *judge_people_rows(verdicts, ballots, quorum),
    ]
    if people is not None:
        labels = people_ballots(people, ballots)
        rows += [*_pairwise(labels, "people", "label"), _alpha_row(labels, "people_alpha", "label")]
    return frame_of(rows, {name: _type(name) for name in AGREEMENT_COLUMNS})


def _type(name: str) -> pl.DataType:
    if name in _TEXT or name == "reason":
        return pl.String()
    return pl.Int64() if name.startswith("n_") or name == "n" else pl.Float64()


def _pairwise(ballots: Ballots, comparison: str, basis: str) -> Iterator[Row]:
    named = zip(ballots.judges, ballots.votes, strict=True)
    for (a, vote_a), (b, vote_b) in combinations(named, 2):
        counted = confusion(ballots.frame, label_of(vote_a), label_of(vote_b))
        yield _about(comparison, a, b, basis) | agreement_figures(counted)


def _against_others(ballots: Ballots, quorum: int) -> Iterator[Row]:
    others = len(ballots.judges) - 1
    need = quorum or default_quorum(others)
    for judge, vote in zip(ballots.judges, ballots.votes, strict=True):
        about = _about("judge_panel_of_others", judge, PANEL_OF_OTHERS, "both_orders")
        if others < need:
            words = f"not available: {others} other judges, and a panel needs {need}"
            yield about | {"n": 0, "n_clusters": 0, "reason": words}
            continue
        votes = ballots.frame.with_columns(**tally(ballots.votes, without=vote))
        counted = confusion(votes, label_of(vote), majority_label(need))
        yield about | agreement_figures(counted)


def _alpha_row(ballots: Ballots, comparison: str, basis: str) -> Row:
    alpha = alpha_of(ballots)
    reason = None
    if alpha.n_units == 0:
        reason = "not available: no pair has two labels"
    elif alpha.alpha is None:
        reason = "alpha not available: one label throughout"
    elif alpha.interval is None:
        reason = "interval not available: fewer than 6 clusters, or one carries all other labels"
    return {
        **_about(comparison, None, None, basis),
        "n": alpha.n_units,
        "n_clusters": alpha.n_clusters,
        **estimate("alpha", alpha.alpha, alpha.interval),
        "reason": reason,
    }


def alpha_of(ballots: Ballots) -> Alpha:
    """Compute Krippendorff's alpha over the final verdicts of all judges, missing allowed."""
    names = ["votes_a", "votes_b", "votes_tie"]
    voted = ballots.frame.select("cluster_id", **tally(ballots.votes))
    units = (
        voted.filter(pl.sum_horizontal(names) >= 2)
        .group_by("cluster_id", *names)
        .agg(pl.len().cast(pl.Int64).alias("units"))
        .sort("cluster_id", *names, nulls_last=True)
    )
    lone = units["cluster_id"].is_null().to_numpy()
    sizes = units["units"].to_numpy()
    first = np.diff(units["cluster_id"].fill_null(-1).to_numpy(), prepend=-2) != 0
    begins: IntArray = (lone | first).astype(np.int64)
    # Units alone in their cluster are one profile per kind, and as many clusters as units.
    return krippendorff_alpha(
        units.select(names).to_numpy().astype(np.int64).reshape(-1, len(names)),
        np.where(lone, 1, sizes),
        np.cumsum(begins) - 1,
        np.where(lone, sizes, 1)[begins > 0],
    )


def _about(comparison: str, a: str | None, b: str | None, basis: str) -> Row:
    return {"comparison": comparison, "rater_a": a, "rater_b": b, "basis": basis}
