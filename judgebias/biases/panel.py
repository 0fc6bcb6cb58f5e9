"""The panel of all judges: its verdicts, and what it buys (`tables/panel.csv`).

A panel's verdict is the label that more than half of its voters gave, else a tie; with fewer voters
than the quorum there is none. Voters are the judges with a final verdict on the pair. Rows:

====================== ==========================================================================
`panel`                how it decides
====================== ==========================================================================
``majority``           strict majority of the final verdicts: the judge named ``panel``
``not_order_made``     the same among votes that are not order-made ties (stuck, half); the quorum
                       is over all votes; no verdict where no such vote is left
``mean_preference``    the side of 1/2 that the mean preference (A 1, tie 1/2, B 0) is on
``family_balanced``    each family has one vote, the strict majority of its judges, else a tie
``without``            ``majority`` without the judge in `judge`, one row each
====================== ==========================================================================

Columns: `panel, judge, n_judges` (families, where those vote), `quorum, n_pairs, n_no_verdict,
wins_a, wins_b, ties`; `n_no_majority` (ties for want of a majority), `n_unanimous`, `mean_votes`,
`mean_preference` (of pairs with a verdict); `n_gold, agreement(+), kappa(+)` against people.

`best_judge` is the single judge with the highest agreement with gold where the panel has a verdict
too, of those with at least half of the panel's gold pairs. It is chosen on the pairs it is measured
on, so it is flattered and the panel's gain understated. `n_common, best_agreement, panel_agreement`
are on their common pairs, and `gain(+)` is the second less the first.

For ``without``: `n_changed` and `share_changed` of the panel's verdicts; `closest_judge`, the one
whose final verdicts have the highest kappa with the judge's, and `closest_kappa(+)`; `redundant`:
its lower bound is at least 0.8 ("almost perfect", Landis and Koch 1977).

`reason` says why a null is null. (+) is followed by `_low` and `_high`. Pairs of all tasks
together; each repeat of a pair counts, in its pair's cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import polars as pl

from judgebias.biases.ballots import (
    Ballots,
    ballots_of,
    default_quorum,
    label_of,
    majority,
    majority_label,
    tally,
)
from judgebias.biases.clusters import LABELS, count_kinds
from judgebias.biases.figures import agreement_figures, confusion
from judgebias.biases.panel_verdicts import all_votes, decided_ballots, half_points
from judgebias.stats.clustered import mean_interval
from judgebias.summary.columns import Row, bounded, estimate, frame_of

REDUNDANT_FROM: Final = 0.8

_TEXT: Final = ("panel", "judge", "best_judge", "closest_judge", "reason")
_RATES: Final = {
    *("mean_votes", "mean_preference", *bounded("agreement"), *bounded("kappa")),
    *("best_agreement", "panel_agreement", *bounded("gain")),
    *("share_changed", *bounded("closest_kappa")),
}
PANEL_COLUMNS: Final = (
    *("panel", "judge", "n_judges", "quorum", "n_pairs", "n_no_verdict"),
    *("wins_a", "wins_b", "ties", "n_no_majority", "n_unanimous", "mean_votes", "mean_preference"),
    *("n_gold", *bounded("agreement"), *bounded("kappa")),
    *("best_judge", "n_common", "best_agreement", "panel_agreement", *bounded("gain")),
    *("n_changed", "share_changed", "closest_judge", *bounded("closest_kappa"), "redundant"),
    "reason",
)
"""The columns of tables/panel.csv, in order."""


def panel_table(
    verdicts: pl.LazyFrame,
    *,
    quorum: int = 0,
    families: Mapping[str, str] | None = None,
    ballots: Ballots | None = None,
) -> pl.DataFrame:
    """Describe the panel, its variants, and the panel without each judge.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns; rows of the panel are passed over.
    quorum
        Votes that a verdict needs; 0: half of the judges, rounded up, and at least 2. Families
        always have the latter rule.
    families
        Judge -> its family; a judge that is missing is a family of its own. None: not known.
    ballots
        What `ballots_of` gives for the verdicts, where that was made already.

    Returns
    -------
    DataFrame
        `PANEL_COLUMNS`, in the order above.
    """
    ballots = ballots or ballots_of(verdicts)
    need = quorum or default_quorum(len(ballots.judges))
    voted = decided_ballots(ballots, need)
    rows = [
        _row(ballots, voted, _Variant(panel=name, voters=len(ballots.judges), quorum=need))
        for name in ("majority", "not_order_made", "mean_preference")
    ]
    rows.append(_family_row(ballots, voted, families))
    rows += _without_rows(ballots, voted, quorum)
    return frame_of(rows, {name: _type(name) for name in PANEL_COLUMNS})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Variant:
    panel: str
    voters: int
    quorum: int
    judge: str | None = None

    @property
    def about(self) -> Row:
        return {
            "panel": self.panel,
            "judge": self.judge,
            "n_judges": self.voters,
            "quorum": self.quorum,
        }


def _row(ballots: Ballots, voted: pl.DataFrame, variant: _Variant) -> Row:
    """Describe one way to decide, whose verdicts are in the column named after it."""
    if variant.voters < variant.quorum:
        return variant.about | {"reason": _too_few(variant)}
    verdict = pl.col(variant.panel)
    row = variant.about | _counts(voted, verdict)
    against = agreement_figures(confusion(voted, verdict, pl.col("gold_label")))
    row |= {"n_gold": against["n"]}
    row |= {name: against[name] for name in (*bounded("agreement"), *bounded("kappa"))}
    if row["n_no_verdict"] == row["n_pairs"]:
        return row | {"reason": "not available: no pair has enough votes"}
    if against["n"] == 0:
        return row | {"reason": "agreement and gain not available: no gold labels"}
    return row | _gain(ballots, voted, verdict) | {"reason": against["reason"]}


def _too_few(variant: _Variant) -> str:
    return f"not available: {variant.voters} voters, and a panel needs {variant.quorum}"


def _counts(voted: pl.DataFrame, verdict: pl.Expr) -> Row:
    names = ("votes_a", "votes_b", "votes_tie")
    kinds = voted.group_by(verdict.alias("verdict"), *names).len().sort("verdict", *names)
    decided = kinds.filter(pl.col("verdict") > 0)
    n = int(decided["len"].sum())

    def pairs(rule: pl.Expr) -> int:
        return int(decided.filter(rule)["len"].sum())

    most = pl.max_horizontal(*names)
    # Kinds are sorted and few, so that sums over them have the same bits each time.
    shares = decided.select(
        votes=all_votes() * pl.col("len"), liking=half_points() / (2 * all_votes()) * pl.col("len")
    )
    won = {label: pairs(pl.col("verdict") == place) for label, place in LABELS.items()}
    return {
        "n_pairs": voted.height,
        "n_no_verdict": voted.height - n,
        "wins_a": won["A"],
        "wins_b": won["B"],
        "ties": won["tie"],
        "n_no_majority": pairs(2 * most <= all_votes()),
        "n_unanimous": pairs(most == all_votes()),
        "mean_votes": int(shares["votes"].sum()) / n if n else None,
        "mean_preference": float(shares["liking"].sum()) / n if n else None,
    }


def _gain(ballots: Ballots, voted: pl.DataFrame, verdict: pl.Expr) -> Row:
    """Compare a panel with the best single judge, on the pairs where both and gold are known."""
    gold = pl.col("gold_label")
    judged = voted.filter((verdict > 0) & (gold > 0))
    right = [(label_of(vote) == gold).sum().alias(vote) for vote in ballots.votes]
    known = [(pl.col(vote) > 0).sum().alias(vote) for vote in ballots.votes]
    rights, sizes = judged.select(right).row(0), judged.select(known).row(0)
    places = [place for place, n in enumerate(sizes) if n and 2 * n >= judged.height]
    if not places:
        return {}
    best = max(places, key=lambda place: (rights[place] / sizes[place], -place))
    vote = pl.col(ballots.votes[best])
    ahead = (verdict == gold).cast(pl.Int64) - (label_of(ballots.votes[best]) == gold)
    counted = count_kinds(judged, pl.when(vote > 0).then(ahead + 1), 3)
    sums, n = counted.counts[:, 2] - counted.counts[:, 0], counted.n
    lead = int((sums * counted.multiplicity).sum())
    interval = mean_interval(
        sums, counted.counts.sum(axis=1), counted.multiplicity, scale=1, low=-1, high=1
    )
    return {
        "best_judge": ballots.judges[best],
        "n_common": n,
        "best_agreement": rights[best] / n,
        "panel_agreement": (rights[best] + lead) / n,
        **estimate("gain", lead / n, interval),
    }


def _family_row(ballots: Ballots, voted: pl.DataFrame, families: Mapping[str, str] | None) -> Row:
    if families is None:
        words = "not available: the families of the judges are not known"
        return {"panel": "family_balanced", "reason": words}
    members: dict[str, list[str]] = {}
    for judge, vote in zip(ballots.judges, ballots.votes, strict=True):
        members.setdefault(families.get(judge, judge), []).append(vote)
    need = default_quorum(len(members))
    spoken = voted.select(
        "gold_label",
        "cluster_id",
        *ballots.votes,
        *(_family_vote(votes).alias(f"family_{n}") for n, votes in enumerate(members.values())),
    )
    names = [f"family_{n}" for n in range(len(members))]
    decided = spoken.with_columns(**tally(names)).with_columns(family_balanced=majority_label(need))
    variant = _Variant(panel="family_balanced", voters=len(members), quorum=need)
    return _row(ballots, decided, variant)


def _family_vote(votes: list[str]) -> pl.Expr:
    counts = tally(votes)
    a, b, tie = counts["votes_a"], counts["votes_b"], counts["votes_tie"]
    return pl.when(a + b + tie > 0).then(majority(a, b, tie)).otherwise(0)


def _without_rows(ballots: Ballots, voted: pl.DataFrame, quorum: int) -> Iterator[Row]:
    closest = _closest(ballots)
    voters = len(ballots.judges) - 1
    need = quorum or default_quorum(voters)
    for judge, vote in zip(ballots.judges, ballots.votes, strict=True):
        fewer = voted.with_columns(**tally(ballots.votes, without=vote))
        fewer = fewer.with_columns(without=majority_label(need))
        variant = _Variant(panel="without", judge=judge, voters=voters, quorum=need)
        row = _row(ballots, fewer, variant) | closest.get(judge, {})
        if voters >= need:
            row |= _changes(fewer)
        yield row


def _changes(fewer: pl.DataFrame) -> Row:
    decided = fewer.filter(pl.col("majority") > 0)
    changed = int((decided["majority"] != decided["without"]).sum())
    share = changed / decided.height if decided.height else None
    return {"n_changed": changed, "share_changed": share}


def _closest(ballots: Ballots) -> dict[str, Row]:
    """Find for each judge the one whose final verdicts are most like its own."""
    found: dict[str, tuple[float, Row]] = {}
    voters = list(zip(ballots.judges, ballots.votes, strict=True))
    for (a, vote_a), (b, vote_b) in combinations(voters, 2):
        counted = confusion(ballots.frame, label_of(vote_a), label_of(vote_b))
        figures = agreement_figures(counted)
        kappa = figures["kappa"]
        if not isinstance(kappa, float):
            continue
        for judge, other in ((a, b), (b, a)):
            if judge not in found or kappa > found[judge][0]:
                found[judge] = kappa, _likeness(other, figures)
    return {judge: row for judge, (_, row) in found.items()}


def _likeness(other: str, figures: Row) -> Row:
    low = figures["kappa_low"]
    return {
        "closest_judge": other,
        **{f"closest_{name}": figures[name] for name in bounded("kappa")},
        "redundant": low >= REDUNDANT_FROM if isinstance(low, float) else None,
    }


def _type(name: str) -> pl.DataType:
    if name in _TEXT:
        return pl.String()
    if name == "redundant":
        return pl.Boolean()
    return pl.Float64() if name in _RATES else pl.Int64()
