"""Strengths of models from who was preferred to whom: Davidson's model with an order effect.

The log-likelihood (see `davidson`) is concave, so Newton's method finds its one maximum, where
there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg

from judgebias.stats.comparisons import FIRST, SECOND, TIE, Comparisons
from judgebias.stats.davidson import CallCounts, DavidsonModel
from judgebias.stats.interval import MIN_CLUSTERS
from judgebias.stats.profiles import IntArray
from judgebias.stats.scores import Scores, squared_scores

FloatArray: TypeAlias = npt.NDArray[np.float64]

_MAX_STEPS = 100
# Newton doubles the digits with each step: after one this small the error is below 1e-12. On a way
# that leads to infinity every step has a length of about 1, so none is ever this small.
_STEP = 1e-7
_SINGULAR = 1e-13


class Failure(StrEnum):
    """Why there are no strengths."""

    NO_CALLS = "no model both won and lost against the others"
    NOT_DECISIVE = "all calls are ties"
    NOT_IDENTIFIED = "the order effect and the strengths cannot be told apart: one order only"
    SEPARATED = "separated: the likelihood has no finite maximum"


@dataclass(frozen=True, kw_only=True, slots=True)
class Davidson:
    """A fit that converged; strengths sum to 0 in every component."""

    strength: FloatArray
    """(models,) in logits; NaN for models outside the fit."""

    se: FloatArray | None
    """(models,) sandwich standard errors; None with fewer than 6 clusters."""

    offset: float | None
    """Order effect: logits towards the first slot. It ignores how pairs differ in quality, so it is
    pulled towards 0. None where the verdicts have no order."""

    offset_se: float | None
    """None where `offset` or `se` is."""

    log_tie: float | None
    """Log weight of a tie; None for the model without ties."""

    log_likelihood: float
    """At the maximum."""

    n_calls: int
    """Calls that entered the fit."""

    n_clusters: int
    """Clusters that entered the fit."""


def fit_davidson(
    comparisons: Comparisons, component: npt.ArrayLike, *, order_effect: bool = True
) -> Davidson | Failure:
    """Fit strengths by maximum likelihood, with standard errors over clusters.

    Parameters
    ----------
    comparisons
        Counted comparisons of models numbered from 0.
    component
        (models,) the strongly connected set each model is in (see `strong_components`). Comparisons
        between two of them are left out: their outcome is certain in the limit, where they say
        nothing. Models alone in theirs are left out too.
    order_effect
        Whether a verdict names a slot; False for verdicts about answers, which have no order.

    Returns
    -------
    Davidson or Failure
        Without any tie the model without the tie term is fitted (Bradley and Terry 1952).

    Notes
    -----
    Davidson (1970); order effect of Davidson and Beaver (1977), additive in logits. Covariance
    pinv(H) B pinv(H) G/(G - 1), B from scores summed by cluster (Liang and Zeger 1986).
    """
    groups = np.asarray(component, dtype=np.int64)
    kept = comparisons.where(groups[comparisons.a] == groups[comparisons.b])
    calls = CallCounts.of(kept, groups.size)
    if calls.first.size == 0:
        return Failure.NO_CALLS
    if not calls.counts[:, :2].any():
        return Failure.NOT_DECISIVE
    model = DavidsonModel(
        n_models=groups.size, order=order_effect, ties=bool(calls.counts[:, 2].any()), groups=groups
    )
    start = np.zeros(model.size)
    if _singular(model.hessian(calls, start)):
        return Failure.NOT_IDENTIFIED
    best = _maximum(model, calls, start)
    return Failure.SEPARATED if best is None else _fitted(model, calls, kept, best)


def _maximum(model: DavidsonModel, calls: CallCounts, start: FloatArray) -> FloatArray | None:
    """Climb to the maximum; None where it is not reached, or is no point but a ridge."""
    at, value = start, model.log_likelihood(calls, start)
    for _ in range(_MAX_STEPS):
        step = _solve(model.hessian(calls, at), model.gradient(calls, at))
        if step is None:
            return None
        at, value = _climb(model, calls, at, step, value)
        if np.abs(step).max() < _STEP:
            return None if _singular(model.hessian(calls, at)) else at
    return None


def _climb(
    model: DavidsonModel, calls: CallCounts, at: FloatArray, step: FloatArray, value: float
) -> tuple[FloatArray, float]:
    """Go the whole step, or as much of it as does not lead down."""
    share = 1.0
    while share > 1e-6:
        there = at + share * step
        higher = model.log_likelihood(calls, there)
        # Near the top a sum of millions of logarithms is level up to its last digits.
        if higher >= value - 1e-12 * abs(value):
            return there, higher
        share /= 2.0
    return at, value


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray | None:
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(matrix), right))
    except linalg.LinAlgError:
        return None


def _singular(matrix: FloatArray) -> bool:
    """Whether a direction has no information, whatever the scale of the parameters."""
    information = matrix.diagonal()
    if not (information > 0.0).all():
        return True
    scale = 1.0 / np.sqrt(information)
    values = linalg.eigvalsh(matrix * scale[:, None] * scale[None, :])
    return bool(values[0] < _SINGULAR * values[-1])


def _fitted(
    model: DavidsonModel, calls: CallCounts, comparisons: Comparisons, at: FloatArray
) -> Davidson | Failure:
    m = model.n_models
    sums, n_clusters = squared_scores(_scores(model, comparisons, at), comparisons, model.size)
    inverse = _solve(model.hessian(calls, at), np.eye(model.size))
    if inverse is None:
        return Failure.SEPARATED
    se = None
    if n_clusters >= MIN_CLUSTERS:
        variance = (inverse @ sums @ inverse).diagonal() * n_clusters / (n_clusters - 1)
        se = np.sqrt(np.maximum(variance, 0.0))
    inside = np.zeros(m, dtype=bool)
    inside[np.concatenate([calls.first, calls.second])] = True
    return Davidson(
        strength=np.where(inside, _centred(at[:m], model.groups), np.nan),
        se=None if se is None else np.where(inside, se[:m], np.nan),
        offset=float(at[m]) if model.order else None,
        offset_se=float(se[m]) if model.order and se is not None else None,
        log_tie=float(at[-1]) if model.ties else None,
        log_likelihood=model.log_likelihood(calls, at),
        n_calls=int(calls.counts.sum()),
        n_clusters=n_clusters,
    )


def _centred(strength: FloatArray, groups: IntArray) -> FloatArray:
    """Take off what rounding has added to sums that are 0."""
    sizes = np.maximum(np.bincount(groups), 1)
    return strength - (np.bincount(groups, weights=strength) / sizes)[groups]


def _scores(model: DavidsonModel, comparisons: Comparisons, at: FloatArray) -> Scores:
    """Return where each row's score is not 0 and what it is there, for one pair of the row."""
    a, b = comparisons.a, comparisons.b
    lean, tie = _scores_of_calls(model, at)
    # NONE is the last place of the tables, which holds 0.
    at_ab, at_ba = (a, b, comparisons.ab), (b, a, comparisons.ba)
    both = lean[at_ab], lean[at_ba]
    places, values = [a, b], [both[0] - both[1], both[1] - both[0]]
    if model.order:
        places.append(np.full_like(a, model.n_models))
        values.append(both[0] + both[1])
    if model.ties:
        places.append(np.full_like(a, model.size - 1))
        values.append(tie[at_ab] + tie[at_ba])
    return Scores(places=np.stack(places, axis=1), values=np.stack(values, axis=1))


def _scores_of_calls(model: DavidsonModel, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return tables (first, second, said) of the derivatives by the logit and by the tie."""
    m = model.n_models
    first, second = np.divmod(np.arange(m * m), m)
    p = model.shares(first, second, at).reshape(m, m, 3)
    lean, tie = np.zeros((m, m, 4)), np.zeros((m, m, 4))
    step, tied = np.zeros(3), np.zeros(3)
    step[[FIRST, SECOND]], tied[TIE] = (1.0, -1.0), 1.0
    lean[:, :, :3] = (step - (p[:, :, FIRST] - p[:, :, SECOND])[:, :, None]) / 2.0
    tie[:, :, :3] = tied - p[:, :, TIE, None]
    return lean, tie
