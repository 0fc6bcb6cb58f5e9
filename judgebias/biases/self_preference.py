"""Self-preference (`tables/self_preference.csv`): a row per judge x task and per judge over ALL.

Columns, in order; (+) is followed by `_low` and `_high`:

* `judge, task, family, own_models`: the judge's family, and its models among the answers;
* `n_own_pairs, own_win_rate, others_win_rate, raw_difference`: how often an answer of the family
  wins against others by this judge (final verdicts, a tie one half), and by judges of other
  families on the same pairs, where neither answer is of theirs. The difference is shown and never
  flagged: a judge that is only noisier has one as well;
* `n_calls, n_own_calls, n_ties, n_clusters, alpha, offset, gamma(+), p_gamma, q_gamma`: the model
  of `stats.self_preference`: decisive calls, those on pairs with one own answer, ties left out.
  q_gamma is p_gamma after Benjamini-Hochberg over the judge x task rows, or over the ALL rows;
* `self_preference`: `own` or `against own` (q_gamma < .05), `none detected`, `too few` (fewer than
  6 clusters), `not available`;
* `reason`: why what is null is null.

The strengths leave out the judge's whole family on all pairs, so that a judge is compared with
others only. gamma says what the judge adds to its family that others do not see: a love of its own
text, or a taste (for length, say) that its family serves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import polars as pl

from judgebias.biases.named_models import PAIR, NamedModels, touched_by
from judgebias.families import BUILT_IN, Families
from judgebias.stats.comparisons import TIE, Comparisons
from judgebias.stats.multiplicity import benjamini_hochberg
from judgebias.stats.self_preference import BoolArray, SelfPreference, self_preference
from judgebias.summary.columns import Figure, Row, bounded, estimate, frame_of
from judgebias.summary.profiles import ALL
from judgebias.summary.rows import SIGNIFICANT

SELF_PREFERENCE_COLUMNS: Final = (
    *("judge", "task", "family", "own_models"),
    *("n_own_pairs", "own_win_rate", "others_win_rate", "raw_difference"),
    *("n_calls", "n_own_calls", "n_ties", "n_clusters", "alpha", "offset", *bounded("gamma")),
    *("p_gamma", "q_gamma", "self_preference", "reason"),
)
"""The columns of tables/self_preference.csv, in order."""

_TEXT: Final = {"judge", "task", "family", "own_models", "self_preference", "reason"}


def self_preference_table(
    verdicts: pl.LazyFrame,
    *,
    judges: Mapping[str, str] | None = None,
    families: Families = BUILT_IN,
) -> pl.DataFrame:
    """Estimate how much each judge prefers answers of its own family.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, in any order; rows of the panel are passed over.
    judges
        Family of each judge; one that is not named here has the family of its name.
    families
        How the family of a model is told.

    Returns
    -------
    DataFrame
        `SELF_PREFERENCE_COLUMNS`, sorted by judge, task (ALL last).
    """
    world = NamedModels.of(verdicts, judges or {}, families)
    rows = _adjusted([row for judge in world.judges for row in _rows(world, judge)])
    return frame_of(rows, {name: _type(name) for name in SELF_PREFERENCE_COLUMNS})


def _type(name: str) -> pl.DataType:
    if name in _TEXT:
        return pl.String()
    return pl.Int64() if name.startswith("n_") else pl.Float64()


def _rows(world: NamedModels, judge: str) -> Iterator[Row]:
    family = world.family[judge]
    own = world.own(family)
    mine = world.said(judge)
    touched = np.flatnonzero(own).tolist()
    # Most judges judge nothing of their own: what others said of the rest is not counted for them.
    judged_own = not mine.filter(touched_by(touched)).is_empty()
    others = world.said_by_others(family) if judged_own else mine.clear()
    raw = _raw(world, judge, touched) if judged_own else pl.DataFrame()
    for task in (*world.judges[judge], ALL):
        here = pl.lit(value=True) if task == ALL else pl.col("task") == task
        said_by_others, said = (frame.filter(here) for frame in (others, mine))
        about: Row = {"judge": judge, "task": task, "family": family}
        reason = _nothing_to_say(world, said, own)
        if reason is not None:
            row: Row = {"self_preference": "not available", "reason": f"not available: {reason}"}
        else:
            met = said.select(pl.concat([pl.col("a"), pl.col("b")]).unique().sort())
            places = [place for place in met.to_series().to_list() if own[place]]
            row = {"own_models": ", ".join(world.models[place] for place in places)}
            row |= _raw_figures(raw.filter(here)) | _figures(said_by_others, said, own)
        yield about | row


def _nothing_to_say(world: NamedModels, mine: pl.DataFrame, own: BoolArray) -> str | None:
    if not world.models:
        return "the models of the answers are not known"
    if mine.is_empty():
        return "no verdict on two named, different models"
    touched = np.flatnonzero(own).tolist()
    if mine.filter(touched_by(touched)).is_empty():
        return "it judged no answer of its own family"
    return None


def _comparisons(counted: pl.DataFrame) -> Comparisons:
    names = ("a", "b", "ab", "ba", "count", "cluster")
    return Comparisons.of(**{name: counted[name].to_numpy() for name in names})


def _figures(others: pl.DataFrame, mine: pl.DataFrame, own: BoolArray) -> Row:
    tied = pl.sum_horizontal((pl.col(name) == TIE).cast(pl.Int64) for name in ("ab", "ba"))
    row: Row = {"n_ties": int(mine.select((tied * pl.col("count")).sum()).item())}
    found = self_preference(_comparisons(others), _comparisons(mine), own)
    if not isinstance(found, SelfPreference):
        words = f"gamma not available: {found}"
        return row | {"self_preference": "not available", "reason": words}
    few = None if found.interval else "interval of gamma: fewer than 6 clusters"
    return row | {
        "n_calls": found.n_calls,
        "n_own_calls": found.n_own_calls,
        "n_clusters": found.n_clusters,
        "alpha": found.alpha,
        "offset": found.offset,
        **estimate("gamma", found.gamma, found.interval),
        "p_gamma": found.p,
        "self_preference": "too few",
        "reason": few,
    }


def _adjusted(rows: list[Row]) -> list[Row]:
    """Add what needs the other rows: q-values, and the words that rest on them."""
    adjusted = [*rows]
    for total in (False, True):
        places = [place for place, row in enumerate(rows) if (row["task"] == ALL) == total]
        tested = [_number(rows[place].get("p_gamma")) for place in places]
        for place, q in zip(places, benjamini_hochberg(tested), strict=True):
            if q is not None:
                adjusted[place] = rows[place] | {
                    "q_gamma": q,
                    "self_preference": _word(rows[place], q),
                }
    return adjusted


def _word(row: Row, q: float) -> str:
    if q >= SIGNIFICANT:
        return "none detected"
    return "own" if (_number(row["gamma"]) or 0.0) > 0.0 else "against own"


def _number(figure: Figure) -> float | None:
    return float(figure) if isinstance(figure, int | float) else None


def _raw(world: NamedModels, judge: str, own: list[int]) -> pl.DataFrame:
    """Put beside each own-against-other pair of the judge what the others say, in whole numbers."""
    a, b = pl.col("a").is_in(own), pl.col("b").is_in(own)
    score = pl.when(a).then(pl.col("halves")).otherwise(2 - pl.col("halves"))

    def scored(frame: pl.DataFrame) -> pl.DataFrame:
        told = frame.filter((a != b) & pl.col("halves").is_not_null())
        return told.select(*PAIR, score=score)

    mine = scored(world.frames[judge])
    others = [scored(world.neutral(name)) for name in world.others(world.family[judge])]
    by_pair = (
        pl.concat([mine.clear(), *others])
        .group_by(PAIR)
        .agg(
            pl.col("score").cast(pl.Int64).sum().alias("others"),
            pl.len().cast(pl.Int64).alias("n_others"),
        )
    )
    return mine.join(by_pair, on=PAIR, how="left")


def _raw_figures(raw: pl.DataFrame) -> Row:
    shared = raw.drop_nulls("n_others")
    compared = shared if shared.height else raw
    n, own_score = compared.height, int(compared["score"].sum())
    rate = own_score / (2 * n) if n else None
    row: Row = {"n_own_pairs": n, "own_win_rate": rate}
    if shared.height and rate is not None:
        other_rate = int(shared["others"].sum()) / (2 * int(shared["n_others"].sum()))
        row |= {"others_win_rate": other_rate, "raw_difference": rate - other_rate}
    return row
