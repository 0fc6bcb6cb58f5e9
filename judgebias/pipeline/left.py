"""What is left to ask: calls of the design that are neither done nor given up, pair by pair."""

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
from judgebias.self_pairs import is_probed, self_digests
from judgebias.verdicts import Order

Done: TypeAlias = npt.NDArray[np.uint64]
Counts: TypeAlias = npt.NDArray[np.int64]
_BYTES_PER_CHARACTER = 4
"""At most, in UTF-8."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """Counts for each pair the calls that are neither done nor given up."""

    plan: RunPlan
    survey: Survey
    words: Words
    orders: Mapping[Order, Mask]
    done: Done

    def pairs(self, fingerprint: bytes) -> Counts:
        """Count the calls of one judge on the pairs themselves."""
        left = np.zeros(len(self.words), dtype=np.int64)
        for order, asked in self.orders.items():
            left += self._count(self.words.tobytes(), fingerprint, order, asked)
        return left

    def self_pairs(self, judge: str, items: Mapping[Order, Mask]) -> dict[Order, Counts]:
        """Count the calls of one judge on the pairs' texts that are items of the probe."""
        probed = {config.name for config in self.plan.config.judges if is_probed(config)}
        if judge not in probed:
            return {}
        fingerprint, joined = self.plan.fingerprints[judge], self.words.tobytes()
        return {
            order: self._count(self_digests(joined, order), fingerprint, order, chosen)
            for order, chosen in items.items()
            if chosen.any()
        }

    def items(self, order: Order) -> Mask:
        """Tell for each pair whether its text is an item of the probe."""
        if not self.plan.items.size:
            return np.zeros(len(self.words), dtype=bool)
        return contains(self.plan.items, self_digests(self.words.tobytes(), order))

    def n_bytes(self, pairs: Counts, items: Mapping[Order, Counts]) -> int:
        """Add up the texts that are to be sent: of pairs as they are, of self pairs at most."""
        index = self.survey.index
        sizes = index["n_bytes"].to_numpy()
        longer = (index["len_a"] - index["len_b"]).to_numpy() * _BYTES_PER_CHARACTER
        extra = {Order.AB: np.maximum(longer, 0), Order.BA: np.maximum(-longer, 0)}
        of_items = sum(int((sizes + extra[order]) @ n) for order, n in items.items())
        return int(sizes @ pairs) + of_items

    def _count(self, digests: bytes, fingerprint: bytes, order: Order, asked: Mask) -> Counts:
        left = np.zeros(len(asked), dtype=np.int64)
        for repeat in range(1, self.plan.design.repeats + 1):
            keys = call_keys(digests, call_mask(fingerprint, order, repeat))
            left += asked & ~contains(self.done, keys)
        return left
