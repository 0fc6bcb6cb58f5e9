"""Self-preference: how much a judge prefers its own family beyond what others think of it.

Two steps. Strengths theta of the models come from judges whose family is in neither answer, by
Davidson's model. Then the judge's own calls follow
logit P(A) = alpha (theta_A - theta_B) +- b + gamma (own_A - own_B), + where A is shown first: gamma
is the preference, alpha how sharply the judge sees the differences that others see, b its order
effect. A noisier judge has a smaller alpha, and for that no gamma.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

import numpy as np
import numpy.typing as npt
from scipy import linalg, special

from judgebias.stats import logistic, ranking
from judgebias.stats.comparisons import FIRST, NONE, SECOND, TIE, Comparisons, strong_components
from judgebias.stats.davidson import CallCounts, DavidsonModel
from judgebias.stats.interval import MIN_CLUSTERS, Interval, t95
from judgebias.stats.logistic import FloatArray, Logistic, cluster_sums, fit_logistic, products
from judgebias.stats.profiles import IntArray
from judgebias.stats.ranking import Davidson, fit_davidson

BoolArray = npt.NDArray[np.bool_]


class Unavailable(StrEnum):
    """Why there is no gamma."""

    NO_OTHERS = "no judge of another family judged answers of other families than its own"
    NOT_JOINED = "no chain of wins joins its family's models to others both ways"
    NO_NEUTRAL_PAIRS = "no decisive call on a pair without its family"
    NO_OWN_CALLS = "no decisive call on a pair with one answer of its family"


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfPreference:
    """What a judge adds to answers of its own family."""

    gamma: float
    """Logits of the judge's calls."""
    interval: Interval | None
    """gamma +- t se; None with fewer than 6 clusters."""
    p: float | None
    """Two-sided p-value of gamma = 0, None where the interval is."""
    alpha: float
    """The judge's slope on the strengths that others give."""
    offset: float
    """Its order effect in this model, logits towards the first slot."""
    n_calls: int
    """Decisive calls in the fit."""
    n_own_calls: int
    """Those on a pair with just one answer of its family."""
    n_clusters: int


def self_preference(
    others: Comparisons, judged: Comparisons, own: BoolArray
) -> SelfPreference | Unavailable | ranking.Failure | logistic.Failure:
    """Estimate gamma of one judge.

    Parameters
    ----------
    others
        What judges of other families said about pairs without their own family. Were the judge's
        own calls on other pairs among them, its sharpness would stretch the strengths there and not
        on pairs with its family, and gamma would take up the difference.
    judged
        What the judge said. Clusters are numbered as in `others`, none is `OWN`.
    own
        (models,) whether a model is of the judge's family.

    Returns
    -------
    SelfPreference, or why there is none

    Notes
    -----
    gamma, like alpha, is that of calls pooled over pairs: quality that varies between answers of
    one model pulls both towards 0. Ties enter the strengths, and are left out of the second step:
    in Davidson's model the odds of a decisive call do not depend on how likely a tie is. The two
    steps are solved as one set of estimating equations (Murphy and Topel 1985, Newey and McFadden
    1994): the sandwich over clusters holds the errors of the strengths and what both steps share of
    a cluster, times G/(G - 1), with t of G - 1 degrees of freedom.
    """
    if others.a.size == 0:
        return Unavailable.NO_OTHERS
    component = strong_components(others.wins(own.size), others.ties(own.size))
    strengths = fit_davidson(others, component)
    if not isinstance(strengths, Davidson):
        return strengths
    calls = _calls(judged, component, strengths.strength, own)
    lacking = _lacking(calls)
    if lacking is not None:
        return lacking
    fit = fit_logistic(list(calls.design.T), calls.a_wins)
    if not isinstance(fit, Logistic):
        return fit
    kept = others.where(component[others.a] == component[others.b])
    variance, n_clusters = _variance(calls, fit, _FirstStep.of(kept, component, strengths))
    alpha, offset, gamma = fit.coefficients.tolist()
    interval = p = None
    if n_clusters >= MIN_CLUSTERS and variance > 0.0:
        se = sqrt(variance)
        half = t95(n_clusters - 1) * se
        interval = Interval(low=gamma - half, high=gamma + half)
        p = 2.0 * float(special.stdtr(n_clusters - 1, -abs(gamma) / se))
    return SelfPreference(
        gamma=gamma,
        interval=interval,
        p=p,
        alpha=alpha,
        offset=offset,
        n_calls=int(calls.a_wins.size),
        n_own_calls=int(np.count_nonzero(calls.design[:, 2])),
        n_clusters=n_clusters,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Calls:
    """Decisive calls of the judge, one a row, on pairs whose strengths can be compared."""

    a: IntArray
    b: IntArray
    design: FloatArray
    """(calls, 3) difference of strengths, order, own family."""
    a_wins: FloatArray
    cluster: IntArray
    neutral: BoolArray
    """Neither answer is of the judge's family."""


def _calls(judged: Comparisons, component: IntArray, theta: FloatArray, own: BoolArray) -> _Calls:
    joined = (component[judged.a] == component[judged.b]) & np.isfinite(theta[judged.a])
    rows = judged.where(joined)
    parts: list[tuple[IntArray, ...]] = []
    for said, first_is_a in ((rows.ab, 1), (rows.ba, -1)):
        decisive = (said == FIRST) | (said == SECOND)
        times = rows.count[decisive]
        wins = (said[decisive] == FIRST) == (first_is_a == 1)
        order = np.full(wins.size, first_is_a)
        columns = (rows.a[decisive], rows.b[decisive], wins, order, rows.cluster[decisive])
        parts.append(tuple(np.repeat(column, times) for column in columns))
    a, b, wins, order, cluster = (np.concatenate(column) for column in zip(*parts, strict=True))
    gap = own[a].astype(np.float64) - own[b]
    return _Calls(
        a=a,
        b=b,
        design=np.column_stack([theta[a] - theta[b], order, gap]),
        a_wins=wins.astype(np.float64),
        cluster=cluster,
        neutral=~(own[a] | own[b]),
    )


def _lacking(calls: _Calls) -> Unavailable | None:
    if calls.a_wins.size == 0:
        return Unavailable.NOT_JOINED
    if not calls.design[:, 2].any():
        return Unavailable.NO_OWN_CALLS
    return None if calls.neutral.any() else Unavailable.NO_NEUTRAL_PAIRS


@dataclass(frozen=True, kw_only=True, slots=True)
class _FirstStep:
    """The fit of the strengths, with what its errors do to the second step."""

    comparisons: Comparisons
    model: DavidsonModel
    at: FloatArray
    inverse: FloatArray
    """(parameters, parameters) inverse information."""

    @classmethod
    def of(cls, comparisons: Comparisons, component: IntArray, fit: Davidson) -> _FirstStep:
        order, ties = fit.offset is not None, fit.log_tie is not None
        model = DavidsonModel(n_models=component.size, order=order, ties=ties, groups=component)
        rest = [value for value in (fit.offset, fit.log_tie) if value is not None]
        at = np.concatenate([np.nan_to_num(fit.strength), rest])
        hessian = model.hessian(CallCounts.of(comparisons, component.size), at)
        return cls(
            comparisons=comparisons, model=model, at=at, inverse=np.asarray(linalg.inv(hessian))
        )

    def influence(self, slopes: FloatArray) -> FloatArray:
        """Return slopes @ inverse @ score of each row, times its pairs: (rows, len(slopes))."""
        # The bread of a few small matrices; only sums over rows need a fixed order.
        weight = slopes @ self.inverse
        rows, m = self.comparisons, self.model.n_models
        order = weight[:, m] if self.model.order else np.zeros(len(weight))
        tie = weight[:, -1] if self.model.ties else np.zeros(len(weight))
        total = np.zeros((rows.a.size, len(weight)))
        for first, second, said in ((rows.a, rows.b, rows.ab), (rows.b, rows.a, rows.ba)):
            shares = self.model.shares(first, second, self.at)
            heard = said != NONE
            step = (said == FIRST).astype(np.float64) - (said == SECOND)
            lean = heard * (step - (shares[:, FIRST] - shares[:, SECOND])) / 2.0
            tied = heard * ((said == TIE) - shares[:, TIE])
            along = weight[:, first] - weight[:, second] + order[:, None]
            total += (along * lean + tie[:, None] * tied).T
        return total * rows.count[:, None]


def _variance(calls: _Calls, fit: Logistic, first: _FirstStep) -> tuple[float, int]:
    """Return the variance of gamma, errors of the strengths included, and the clusters."""
    alpha = float(fit.coefficients[0])
    residual = calls.a_wins - fit.mean
    spread = fit.mean * (1.0 - fit.mean)
    # d score/d theta_A of a call; by theta_B it is the same with the other sign.
    slope = -alpha * spread[:, None] * calls.design
    slope[:, 0] += residual
    slopes = np.zeros((3, first.at.size))
    for place, column in enumerate(slope.T):
        for model, sign in ((calls.a, 1.0), (calls.b, -1.0)):
            slopes[place] += sign * np.bincount(model, weights=column, minlength=first.at.size)
    scores = np.concatenate([calls.design * residual[:, None], first.influence(slopes)])
    sums = cluster_sums(scores.T, np.concatenate([calls.cluster, first.comparisons.cluster]))
    n_clusters = np.unique(calls.cluster).size
    if n_clusters < 2:
        return float("nan"), n_clusters
    middle = products(sums, np.ones(len(sums))) * (n_clusters / (n_clusters - 1))
    return float((fit.covariance @ middle @ fit.covariance)[2, 2]), n_clusters
