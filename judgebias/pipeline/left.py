"""What is left to ask: calls of the design that are neither done nor given up, judge by judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from judgebias.calls import call_keys, call_mask
from judgebias.design import Mask, Words
from judgebias.journal import contains
from judgebias.pairs import Survey
from judgebias.pipeline.plan import RunPlan
from judgebias.pipeline.surveyed import numbers_of
from judgebias.self_pairs import is_probed, self_digests
from judgebias.verdicts import Order

Done: TypeAlias = npt.NDArray[np.uint64]
Counts: TypeAlias = npt.NDArray[np.int32]
Numbers: TypeAlias = npt.NDArray[np.int64]
PAIRS_AT_ONCE = 65_536
"""Pairs whose keys are looked up together: what that takes does not grow with the input."""
_BYTES_PER_CHARACTER = 4
"""At most, in UTF-8."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOfJudge:
    """What is left to ask one judge."""

    parts: Numbers
    """Calls of each part of the run."""
    n_bytes: int
    """Bytes of the questions and answers in them."""

    @property
    def calls(self) -> int:
        """Calls in all."""
        return int(self.parts.sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """Counts the calls that are neither done nor given up."""

    plan: RunPlan
    survey: Survey
    digests: Words
    """Of the survey, read once."""
    orders: Mapping[Order, Mask]
    done: Done

    def of_judge(
        self,
        judge: str,
        items: Mapping[Order, Mask],
        parts: Numbers | None,
        n_parts: int,
        *,
        concluded: bool,
    ) -> LeftOfJudge:
        """Count what is left of one judge.

        Parameters
        ----------
        judge
            Its name.
        items
            For each pair, whether its text is an item of the probe.
        parts
            The part of the run that each pair is asked in; None = its block.
        n_parts
            How many there are; the calls of the probe are in the part numbered as their block.
        concluded
            Whether only the probe is left.
        """
        block = self.survey.block_of
        pairs = self._pairs(judge) if not concluded else np.zeros(len(block), dtype=np.int32)
        of_items = self._self_pairs(judge, items)
        counts = _by_part(block if parts is None else parts, pairs, n_parts)
        for calls in of_items.values():
            counts += _by_part(block, calls, n_parts)
        return LeftOfJudge(parts=counts, n_bytes=self._n_bytes(pairs, of_items))

    def items(self, order: Order) -> Mask:
        """Tell for each pair whether its text is an item of the probe."""
        if not self.plan.items.size:
            return np.zeros(self.survey.n_pairs, dtype=bool)
        return contains(self.plan.items, self_digests(self.digests.tobytes(), order))

    def _pairs(self, judge: str) -> Counts:
        """Count the calls on the pairs themselves."""
        left = np.zeros(self.survey.n_pairs, dtype=np.int32)
        for order, asked in self.orders.items():
            self._count(left, judge, order, asked)
        return left

    def _self_pairs(self, judge: str, items: Mapping[Order, Mask]) -> dict[Order, Counts]:
        """Count the calls on the pairs' texts that are items of the probe."""
        probed = {config.name for config in self.plan.config.judges if is_probed(config)}
        found: dict[Order, Counts] = {}
        for order, chosen in items.items():
            if judge in probed and chosen.any():
                found[order] = np.zeros(self.survey.n_pairs, dtype=np.int32)
                self._count(found[order], judge, order, chosen, of_items=True)
        return found

    def _n_bytes(self, pairs: Counts, items: Mapping[Order, Counts]) -> int:
        """Add up the texts that are to be sent: of pairs as they are, of self pairs at most."""
        sizes = numbers_of(self.survey, "n_bytes")
        total = int(sizes @ pairs)
        if items:
            lengths = numbers_of(self.survey, "len_a") - numbers_of(self.survey, "len_b")
            longer = lengths * _BYTES_PER_CHARACTER
            extra = {Order.AB: np.maximum(longer, 0), Order.BA: np.maximum(-longer, 0)}
            total += sum(int((sizes + extra[order]) @ n) for order, n in items.items())
        return total

    def _count(
        self, left: Counts, judge: str, order: Order, asked: Mask, *, of_items: bool = False
    ) -> None:
        """Add to each pair its calls in one order that are asked and not done."""
        fingerprint = self.plan.fingerprints[judge]
        for first in range(0, len(left), PAIRS_AT_ONCE):
            some = slice(first, first + PAIRS_AT_ONCE)
            digests = self.digests[some].tobytes()
            named = self_digests(digests, order) if of_items else digests
            for repeat in range(1, self.plan.design.repeats + 1):
                keys = call_keys(named, call_mask(fingerprint, order, repeat))
                left[some] += asked[some] & ~contains(self.done, keys)


def _by_part(parts: npt.NDArray[np.integer], calls: Counts, n_parts: int) -> Numbers:
    return np.bincount(parts, weights=calls, minlength=n_parts).astype(np.int64)
