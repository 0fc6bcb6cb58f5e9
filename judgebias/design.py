"""Which calls a run asks: the sample of pairs, and the orders of each.

Every choice is a seeded draw on the pair's digest, so it is the same in the driver, in every worker
and after a resume, and a larger sample contains the smaller one.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its arrays are unknown to the checker wherever they are passed on.

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from judgebias.calls import KEY_BYTES
from judgebias.verdicts import Order

Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

_ALL = 2**64 - 1
_SALTS = {"pairs": 1, "swap": 2, "order": 3, "self_pair": 4}
Orders: TypeAlias = Literal["both", "sampled", "ab", "ba", "random"]
Salt: TypeAlias = Literal["pairs", "swap", "order", "self_pair"]


def draws(digests: Words, *, seed: int, salt: Salt) -> Words:
    """Give each pair one uniform 64-bit number, by its digest, the seed and the salt.

    Parameters
    ----------
    digests
        Pair digests as (n, 2) little-endian words.
    seed, salt
        Different salts give independent draws under one seed.

    Notes
    -----
    The finalizer of splitmix64 (Steele, Lea and Flood 2014) over the digest's words.
    """
    start = np.uint64((seed * 0x9E3779B97F4A7C15 + _SALTS[salt] * 0xD1B54A32D192ED03) & _ALL)
    return _mix(_mix(digests[:, 0] ^ start) ^ digests[:, 1])


def _mix(words: Words) -> Words:
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def cutoff(values: Words, count: int) -> int:
    """Find the bound below which exactly `count` values lie (all of them when fewer exist)."""
    if count >= len(values):
        return _ALL + 1
    return int(np.partition(values, count)[count])


@dataclass(frozen=True, kw_only=True, slots=True)
class Design:
    """The rule that says, for any pair, whether and in which orders it is asked."""

    orders: Orders = "both"
    seed: int = 0
    repeats: int = 1
    pairs_below: int = _ALL + 1
    """Pairs whose draw is below are in the sample (`--limit`)."""
    swap_below: int = 0
    """Pairs of `sampled` whose question's draw is below get both orders: pairs of one question are
    not independent, so a whole question is in or out."""

    def asked(self, digests: Words, questions: Words | None = None) -> dict[Order, Mask]:
        """Tell for each pair whether each order is asked.

        Parameters
        ----------
        digests
            Pair digests as (n, 2) words.
        questions
            Digests of their questions, likewise; needed for `sampled`.
        """
        chosen = self.chosen(digests)
        wants = self._wants(digests, questions)
        return {order: chosen & wants[order] for order in Order}

    def chosen(self, digests: Words) -> Mask:
        """Tell for each pair whether it is asked in any order."""
        return _below(draws(digests, seed=self.seed, salt="pairs"), self.pairs_below)

    def ab_first(self, digests: Words) -> Mask:
        """Tell for each pair whether its first call shows A first."""
        if self.orders in ("ab", "ba"):
            return np.full(len(digests), self.orders == "ab")
        return draws(digests, seed=self.seed, salt="order") % np.uint64(2) == 0

    def _wants(self, digests: Words, questions: Words | None) -> dict[Order, Mask]:
        n = len(digests)
        yes, no = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        if self.orders in ("both", "ab", "ba"):
            return {order: yes if self.orders in ("both", order.value) else no for order in Order}
        ab_first = self.ab_first(digests)
        if self.orders == "random":
            return {Order.AB: ab_first, Order.BA: ~ab_first}
        if questions is None:
            msg = "the sample is drawn by question: expected the digests of the questions"
            raise ValueError(msg)
        both = _below(draws(questions, seed=self.seed, salt="swap"), self.swap_below)
        return {Order.AB: ab_first | both, Order.BA: ~ab_first | both}


def words_of(digests: bytes) -> Words:
    """View concatenated 16-byte digests as (n, 2) words."""
    return np.frombuffer(digests, dtype="<u8").reshape(-1, 2)


def digest_words(digests: pl.Series) -> Words:
    """View a column of 16-byte digests as (n, 2) words."""
    column = digests.to_arrow(compat_level=pl.CompatLevel.oldest())
    return array_words(column.cast(pa.binary(KEY_BYTES)))


def array_words(digests: pa.FixedSizeBinaryArray) -> Words:
    """View an Arrow column of 16 bytes each as (n, 2) words."""
    data = digests.buffers()[1]
    if data is None:
        return np.empty((0, 2), np.uint64)
    words = np.frombuffer(data, dtype="<u8").reshape(-1, 2)
    return words[digests.offset : digests.offset + len(digests)]


def question_words(question_ids: Iterable[str], orders: Orders) -> Words | None:
    """View the index's `question_id` (hexadecimal) as words where the orders depend on them."""
    return words_of(bytes.fromhex("".join(question_ids))) if orders == "sampled" else None


def _below(values: Words, bound: int) -> Mask:
    if bound > _ALL:
        return np.ones(len(values), dtype=bool)
    return values < np.uint64(bound)
