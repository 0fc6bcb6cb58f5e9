"""Strengths of the models, per judge and for the panel (`tables/ranking.csv`, `tables/wins.csv`).

`ranking_table` has a row per judge and model: `judge, model, basis` (``calls``: single calls, each
order by itself; ``final_verdicts``: the panel, which has no orders), `form` (``ties and order``,
``order``, ``ties``, ``plain``: what the model of the fit has besides strengths), `strength(+),
strength_se` in logits, summing to 0 in a component; `component` (1 the largest; models that a chain
of wins joins both ways), `component_size, rank` (in the component, 1 the strongest), `n` verdicts
on the model, `wins, ties, losses` of these; and of the whole fit: `n_fit` verdicts, `n_clusters`,
`log_tie, order_effect_attenuated(+)`: logits towards the first slot, pulled towards 0 because
single calls do not tell how far apart a pair is in quality (see `offset` in the summary for an
estimate free of that), and `log_likelihood`. `reason` says why a null is null.

Bounds (+) are sandwich errors by cluster with t of G - 1 degrees of freedom. Pairs of one model
with itself, or without names, say nothing here. Pairs of all tasks together.

`wins_table` has a row per judge, model and opponent that met: `judge, model, opponent, basis, n,
wins, ties, losses`, and `win_rate`, a tie as half a win.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from judgebias.biases.ballots import PANEL
from judgebias.biases.contests import Contest, contests
from judgebias.stats.comparisons import strong_components
from judgebias.stats.interval import Interval, t95
from judgebias.stats.profiles import IntArray
from judgebias.stats.ranking import Davidson, Failure, fit_davidson
from judgebias.summary.columns import Figure, Row, bounded, estimate, frame_of

RANKING_COLUMNS: Final = (
    *("judge", "model", "basis", "form", *bounded("strength"), "strength_se"),
    *("component", "component_size", "rank", "n", "wins", "ties", "losses"),
    *("n_fit", "n_clusters", "log_tie", *bounded("order_effect_attenuated"), "log_likelihood"),
    "reason",
)
"""The columns of tables/ranking.csv, in order."""

WINS_COLUMNS: Final = (
    *("judge", "model", "opponent", "basis", "n", "wins", "ties", "losses", "win_rate"),
)
"""The columns of tables/wins.csv, in order."""

_TEXT: Final = {"judge", "model", "opponent", "basis", "form", "reason"}
_WHOLE: Final = {
    *("component", "component_size", "rank", "n", "wins", "ties", "losses", "n_fit", "n_clusters"),
}
# Strengths closer than this differ by rounding only, and share a rank.
_EQUAL: Final = 1e-9


def ranking_table(verdicts: pl.LazyFrame, *, met: Sequence[Contest] | None = None) -> pl.DataFrame:
    """Rank the models by each judge, and by the panel where its rows are among the verdicts.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, with or without what `panel_verdicts` adds.
    met
        What `contests` gives for the verdicts, where that was made already.

    Returns
    -------
    DataFrame
        `RANKING_COLUMNS`, sorted by judge (the panel last), component, rank, model.
    """
    rows = [row for contest in met or contests(verdicts) for row in _ranked(contest)]
    return frame_of(rows, {name: _type(name) for name in RANKING_COLUMNS})


def wins_table(verdicts: pl.LazyFrame, *, met: Sequence[Contest] | None = None) -> pl.DataFrame:
    """Count who was preferred to whom: the win matrix, as a long table.

    Returns
    -------
    DataFrame
        `WINS_COLUMNS`, sorted by judge (the panel last), model, opponent.
    """
    parts = [_matrix(contest) for contest in met or contests(verdicts)]
    schema = {name: _type(name) for name in WINS_COLUMNS}
    return pl.concat([pl.DataFrame(schema=schema), *parts])


def _ranked(contest: Contest) -> list[Row]:
    size = len(contest.models)
    about: Row = {"judge": contest.judge, "basis": contest.basis}
    if size == 0:
        return [about | {"reason": "not available: no verdict on two named, different models"}]
    wins, ties = contest.comparisons.wins(size), contest.comparisons.ties(size)
    component = strong_components(wins, ties)
    order_effect = contest.judge != PANEL
    fit = fit_davidson(contest.comparisons, component, order_effect=order_effect)
    rows: list[Row] = []
    for place, model in enumerate(contest.models):
        record = _record(wins, ties, place)
        alone = int((component == component[place]).sum()) == 1
        figures = _outside(fit, record) if alone else _strength(fit, component, place)
        rows.append(about | {"model": model} | record | _component(component, place) | figures)
    return sorted(rows, key=_place)


def _component(component: IntArray, place: int) -> Row:
    number = int(component[place])
    return {"component": number + 1, "component_size": int((component == number).sum())}


def _outside(fit: Davidson | Failure, record: Row) -> Row:
    """Say why a model that no chain of wins joins to another both ways has no strength."""
    if record["losses"] == 0:
        words = "it never lost or tied, so its strength has no upper bound"
    elif record["wins"] == 0:
        words = "it never won or tied, so its strength has no lower bound"
    else:
        words = "no chain of wins leads both from it and to it, so nothing bounds its strength"
    shared = {} if isinstance(fit, Failure) else _of_fit(fit)
    return {**shared, "reason": f"not available: {words}"}


def _record(wins: IntArray, ties: IntArray, place: int) -> Row:
    won, lost, tied = (int(part.sum()) for part in (wins[place], wins[:, place], ties[place]))
    return {"n": won + tied + lost, "wins": won, "ties": tied, "losses": lost}


def _strength(fit: Davidson | Failure, component: IntArray, place: int) -> Row:
    if isinstance(fit, Failure):
        return {"reason": f"not available: {fit}"}
    row = _of_fit(fit)
    strength = fit.strength[place]
    rivals = fit.strength[component == component[place]]
    se = None if fit.se is None else float(fit.se[place])
    return {
        **row,
        **estimate("strength", float(strength), _interval(float(strength), se, fit.n_clusters)),
        "strength_se": se,
        "rank": 1 + int((rivals > strength + _EQUAL).sum()),
        "reason": "interval not available: fewer than 6 clusters" if se is None else None,
    }


def _of_fit(fit: Davidson) -> Row:
    parts = [
        name for name, value in (("ties", fit.log_tie), ("order", fit.offset)) if value is not None
    ]
    interval = None if fit.offset is None else _interval(fit.offset, fit.offset_se, fit.n_clusters)
    return {
        "form": " and ".join(parts) or "plain",
        "n_fit": fit.n_calls,
        "n_clusters": fit.n_clusters,
        "log_tie": fit.log_tie,
        **estimate("order_effect_attenuated", fit.offset, interval),
        "log_likelihood": fit.log_likelihood,
    }


def _interval(value: float, se: float | None, n_clusters: int) -> Interval | None:
    if se is None:
        return None
    half = t95(n_clusters - 1) * se
    return Interval(low=value - half, high=value + half)


def _place(row: Row) -> tuple[int, int, str]:
    return _whole(row["component"]), _whole(row.get("rank")), str(row["model"])


def _whole(figure: Figure) -> int:
    return figure if isinstance(figure, int) else 0


def _matrix(contest: Contest) -> pl.DataFrame:
    size = len(contest.models)
    wins, ties = contest.comparisons.wins(size), contest.comparisons.ties(size)
    met = wins + wins.T + ties
    model, opponent = np.nonzero(met)
    won, tied, n = wins[model, opponent], ties[model, opponent], met[model, opponent]
    names = np.array(contest.models, dtype=object)
    return pl.DataFrame(
        {
            "judge": [contest.judge] * n.size,
            "model": names[model].tolist(),
            "opponent": names[opponent].tolist(),
            "basis": [contest.basis] * n.size,
            "n": n,
            "wins": won,
            "ties": tied,
            "losses": n - won - tied,
            "win_rate": (2 * won + tied) / (2 * n),
        },
        {name: _type(name) for name in WINS_COLUMNS},
    )


def _type(name: str) -> pl.DataType:
    if name in _TEXT:
        return pl.String()
    return pl.Int64() if name in _WHOLE else pl.Float64()
