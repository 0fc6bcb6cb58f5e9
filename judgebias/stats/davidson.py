"""The likelihood of Davidson's model with an order effect, and its derivatives.

A call shows model i first and model j second; the weights of `first`, `second` and `tie` are
exp((t_i - t_j + offset)/2), exp(-(t_i - t_j + offset)/2) and exp(log_tie).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from judgebias.stats.comparisons import Comparisons
from judgebias.stats.profiles import IntArray

FloatArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallCounts:
    """Calls by ordered pair of models: all the likelihood depends on."""

    first: IntArray
    """(ordered pairs,) the model shown first."""
    second: IntArray
    """(ordered pairs,) the model shown second."""
    counts: FloatArray
    """(ordered pairs, 3) verdicts first, second, tie."""

    @classmethod
    def of(cls, comparisons: Comparisons, n_models: int) -> CallCounts:
        """Take pairs apart into their calls, and count them."""
        shown = [
            (comparisons.a * n_models + comparisons.b, comparisons.ab),
            (comparisons.b * n_models + comparisons.a, comparisons.ba),
        ]
        counts = np.zeros((n_models * n_models, 3))
        for pair, slot in shown:
            for place in range(3):
                said = slot == place
                counts[:, place] += np.bincount(
                    pair[said], weights=comparisons.count[said], minlength=len(counts)
                )
        asked = np.flatnonzero(counts.any(axis=1))
        return cls(first=asked // n_models, second=asked % n_models, counts=counts[asked])


@dataclass(frozen=True, kw_only=True, slots=True)
class DavidsonModel:
    """Where parameters lie: strengths, then the order effect, then the tie, as far as present."""

    n_models: int
    order: bool
    """Whether there is an order effect."""
    ties: bool
    """Whether there is a tie term; without it there are no ties."""
    groups: IntArray
    """(models,) the component of each; strengths sum to 0 there."""

    @property
    def size(self) -> int:
        """Count the parameters."""
        return self.n_models + self.order + self.ties

    def shares(self, first: IntArray, second: IntArray, at: FloatArray) -> FloatArray:
        """Return the probabilities of first, second and tie, by call."""
        return np.exp(self.log_shares(first, second, at))

    def log_shares(self, first: IntArray, second: IntArray, at: FloatArray) -> FloatArray:
        """Return their logarithms; that of a tie is -inf in the model without ties."""
        half = (at[first] - at[second] + (at[self.n_models] if self.order else 0.0)) / 2.0
        tie = np.full(half.shape, at[-1] if self.ties else -np.inf)
        weights = np.column_stack([half, -half, tie])
        top = weights.max(axis=1)
        return weights - (top + np.log(np.exp(weights - top[:, None]).sum(axis=1)))[:, None]

    def log_likelihood(self, calls: CallCounts, at: FloatArray) -> float:
        """Return the log-likelihood of all calls."""
        shares = self.log_shares(calls.first, calls.second, at)
        # A model without ties gives them log share -inf, which no call asks for.
        said = calls.counts > 0
        return float((calls.counts[said] * shares[said]).sum())

    def gradient(self, calls: CallCounts, at: FloatArray) -> FloatArray:
        """Return its first derivatives."""
        expected = calls.counts.sum(axis=1)[:, None] * self.shares(calls.first, calls.second, at)
        gap = calls.counts - expected
        lean, tie = (gap[:, 0] - gap[:, 1]) / 2.0, gap[:, 2]
        result = np.zeros(self.size)
        result[: self.n_models] = self._by_model(calls.first, lean) - self._by_model(
            calls.second, lean
        )
        if self.order:
            result[self.n_models] = lean.sum()
        if self.ties:
            result[-1] = tie.sum()
        return result

    def hessian(self, calls: CallCounts, at: FloatArray) -> FloatArray:
        """Return minus the second derivatives, with the free sum of each component pinned.

        Scores sum to 0 in a component, so pinning changes no Newton step, and the inverse gives the
        same sandwich as the pseudo-inverse of the unpinned matrix.
        """
        n, m = calls.counts.sum(axis=1), self.n_models
        p = self.shares(calls.first, calls.second, at)
        lean = p[:, 0] - p[:, 1]
        slot = n * (p[:, 0] + p[:, 1] - lean**2) / 4.0
        mixed, tie = -n * lean * p[:, 2] / 2.0, n * p[:, 2] * (1.0 - p[:, 2])
        result = np.zeros((self.size, self.size))
        pairs = np.zeros((m, m))
        pairs[calls.first, calls.second] = slot
        pairs = pairs + pairs.T
        result[:m, :m] = np.diag(pairs.sum(axis=1)) - pairs
        borders = [(m, slot)] if self.order else []
        borders += [(self.size - 1, mixed)] if self.ties else []
        for place, weight in borders:
            border = self._by_model(calls.first, weight) - self._by_model(calls.second, weight)
            result[:m, place] = result[place, :m] = border
        if self.order:
            result[m, m] = slot.sum()
        if self.ties:
            result[-1, -1] = tie.sum()
        if self.order and self.ties:
            result[m, -1] = result[-1, m] = mixed.sum()
        return self._pinned(result)

    def _by_model(self, place: IntArray, weights: FloatArray) -> FloatArray:
        summed = np.bincount(place, weights=weights, minlength=self.n_models)
        return summed.astype(np.float64)

    def _pinned(self, hessian: FloatArray) -> FloatArray:
        m = self.n_models
        together = self.groups[:, None] == self.groups[None, :]
        # On the way to infinity all information may vanish, and then there is nothing to scale by.
        information = hessian.diagonal()[:m].sum()
        scale = float(information) / m or 1.0
        hessian[:m, :m] += scale * together / together.sum(axis=1)[:, None]
        return hessian
