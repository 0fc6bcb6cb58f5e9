"""The seeded order in which pairs are bought under a stop rule, cut into waves.

The order is one of units, that is of whole clusters, by a number that a hash draws for each. So any
prefix of it is a random sample of the clusters, whatever the order of the rows in the input. A
*wave* is a stretch of that order: a block of pairs is asked in as many parts as it has waves in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from judgebias.calls import KEY_BYTES, Pair

Draws: TypeAlias = npt.NDArray[np.uint64]

FIRST_PAIRS: Final = 64
"""Pairs of the first wave of a small set."""
FIRST_SHARE: Final = 1 / 500
"""Share of a large set that is its first wave."""
GROWTH: Final = 1.25
"""What is settled grows by this from wave to wave: a stop comes at most so much too late."""
MOST_PARTS: Final = 2000
"""Parts of all blocks for one judge: each is read and handed out by itself."""
LEAST_WAVES: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class BuyingOrder:
    """The order of a run's units."""

    seed: int
    cluster: str
    """What names a unit: question, pair, or a column."""
    starts: tuple[int, ...]
    """The smallest draw of each wave, ascending."""

    @property
    def n_waves(self) -> int:
        """Waves in all."""
        return len(self.starts)

    def waves(self, draws: Draws) -> npt.NDArray[np.int64]:
        """Tell the wave of each pair by its draw."""
        starts = np.array(self.starts, dtype=np.uint64)
        return np.searchsorted(starts, draws, side="right").astype(np.int64) - 1

    def waves_of(self, pairs: Sequence[Pair]) -> npt.NDArray[np.int64]:
        """Tell the wave of each pair as a worker reads it."""
        names = [cluster_of(pair, self.cluster) for pair in pairs]
        digests = [pair.digest() for pair in pairs]
        return self.waves(unit_draws(names, digests, seed=self.seed))


def buying_order(draws: Draws, *, seed: int, cluster: str, n_blocks: int) -> BuyingOrder:
    """Cut the units of a set into waves.

    Parameters
    ----------
    draws
        One number a pair that is asked, equal within a unit.
    seed, cluster
        Of the run.
    n_blocks
        Blocks of the input: each is read anew in every wave.
    """
    units, sizes = np.unique(draws, return_counts=True)
    if not units.size:
        return BuyingOrder(seed=seed, cluster=cluster, starts=(0,))
    before = np.cumsum(sizes) - sizes
    # The first unit that starts at or behind each target; a unit is never cut.
    places = np.unique(np.searchsorted(before, _targets(int(sizes.sum()), n_blocks)))
    inside = places[(places > 0) & (places < units.size)]
    return BuyingOrder(
        seed=seed, cluster=cluster, starts=(0, *(int(unit) for unit in units[inside]))
    )


def unit_draws(clusters: Iterable[str | None], digests: Iterable[bytes], *, seed: int) -> Draws:
    """Draw the place of each pair's unit: a number of 64 bits by the seed and the unit's name.

    A pair without a cluster is its own unit, by its digest.
    """
    salt = (seed % 2**64).to_bytes(8, "little")
    return np.array(
        [
            int.from_bytes(_hash(digest if name is None else name.encode(), salt), "little")
            for name, digest in zip(clusters, digests, strict=True)
        ],
        dtype=np.uint64,
    )


def cluster_of(pair: Pair, rule: str) -> str | None:
    """Name the cluster of a pair as the index of the input does."""
    if rule == "question":
        return blake2b(pair.question.encode(), digest_size=KEY_BYTES).hexdigest()
    return None if rule == "pair" else pair.cluster


def _hash(name: bytes, salt: bytes) -> bytes:
    return blake2b(name, digest_size=8, salt=salt, person=b"buying order").digest()


def _targets(n_pairs: int, n_blocks: int) -> list[int]:
    """Pairs after which a wave ends: growing steps, fewer where blocks are many."""
    first = max(FIRST_PAIRS, round(n_pairs * FIRST_SHARE))
    waves = max(LEAST_WAVES, MOST_PARTS // max(1, n_blocks))
    growth = max(GROWTH, (max(n_pairs, first) / first) ** (1.0 / waves))
    targets = [first]
    while targets[-1] < n_pairs:
        targets.append(max(targets[-1] + 1, round(targets[-1] * growth)))
    return targets
