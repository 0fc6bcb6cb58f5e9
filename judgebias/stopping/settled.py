"""What the journal says of a judge's units: those that are settled, in the order they are bought.

Of each call the first row that was ever written counts, a failure too: so what a look has seen
stays as it was, also when a later start asks a failed call again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.journal import read_journal
from judgebias.stopping.rule import Anytime, Rule, Units, look, settled_prefix
from judgebias.stopping.sequence import Draws
from judgebias.summary.figures import LEAN
from judgebias.verdicts import Order, Slot, settle

_NEEDED: Final = ("pair", "judge", "fingerprint", "repeat", "order", "time", "slot")
_OUTCOMES: Final = {f"{ab} {ba}": (ab, ba) for ab, ba in product(Slot, repeat=2)}
_LEAN: Final = {name: LEAN.get(settle(*slots), 0) for name, slots in _OUTCOMES.items()}
_SWING: Final = {
    name: slots.count(Slot.FIRST) - slots.count(Slot.SECOND) for name, slots in _OUTCOMES.items()
}


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitsOfRun:
    """The units of a run in the order they are bought; the same for every judge."""

    pairs: pl.DataFrame
    """`pair` (digest) and `unit` (place in the order): one row per pair that is asked."""
    sizes: npt.NDArray[np.int64]
    """Pairs of each unit."""
    repeats: int

    @classmethod
    def of(cls, digests: pl.Series, draws: Draws, *, repeats: int) -> UnitsOfRun:
        """Order the units of the pairs that are asked."""
        _, places, sizes = np.unique(draws, return_inverse=True, return_counts=True)
        pairs = pl.DataFrame({"pair": digests, "unit": places.astype(np.int64)})
        return cls(pairs=pairs, sizes=sizes.astype(np.int64), repeats=repeats)

    @property
    def largest(self) -> int:
        """Pairs times repeats of the largest unit."""
        return int(self.sizes.max(initial=1)) * self.repeats

    def prefix(self, calls: pl.DataFrame) -> Units:
        """Sum the units whose calls are all back, up to the first that is not."""
        by_unit = (
            _by_pair(calls)
            .join(self.pairs, on="pair")
            .group_by("unit")
            .agg(pl.col("lean", "swing", "complete", "ended").sum())
        )
        columns = {
            name: self._spread(by_unit["unit"], by_unit[name])
            for name in ("lean", "swing", "complete", "ended")
        }
        whole = columns["ended"] == len(Order) * self.repeats * self.sizes
        n = settled_prefix(whole)
        return Units(
            leans=columns["lean"][:n], swings=columns["swing"][:n], sizes=columns["complete"][:n]
        )

    def _spread(self, units: pl.Series, values: pl.Series) -> npt.NDArray[np.int64]:
        column = np.zeros(self.sizes.size, dtype=np.int64)
        column[units.to_numpy()] = values.to_numpy()
        return column


def look_at_journal(
    journal: Path, units: UnitsOfRun, rule: Rule, *, judge: str, fingerprint: str
) -> Anytime:
    """Look at what is settled of one judge.

    Raises
    ------
    JournalDamaged
        When a record in the middle of the journal fails its checksum.
    """
    rows = pl.DataFrame()
    if journal.is_dir():
        rows = read_journal(journal, columns=_NEEDED, judge=judge).table
        rows = rows.filter(
            pl.col("fingerprint").cast(pl.String) == fingerprint,
            pl.col("repeat") <= units.repeats,
        )
    prefix = units.prefix(rows) if rows.height else _NOTHING
    return look(rule, prefix, n_units=units.sizes.size, largest=units.largest)


_NONE: Final = np.zeros(0, dtype=np.int64)
_NOTHING: Final = Units(leans=_NONE, swings=_NONE, sizes=_NONE)


def _by_pair(calls: pl.DataFrame) -> pl.DataFrame:
    """Join the two first-written calls of each pair and repeat; both must be slots to count."""
    order, slot = pl.col("order").cast(pl.String), pl.col("slot").cast(pl.String)
    joined = (
        calls.sort("time", maintain_order=True)
        .unique(["pair", "repeat", "order"], keep="first", maintain_order=True)
        .group_by("pair", "repeat")
        .agg(
            slot.filter(order == Order.AB.value).first().alias("ab"),
            slot.filter(order == Order.BA.value).first().alias("ba"),
            pl.len().cast(pl.Int64).alias("ended"),
        )
    )
    outcome = pl.concat_str("ab", "ba", separator=" ")
    return joined.select(
        "pair",
        "ended",
        outcome.replace_strict(_LEAN, default=0, return_dtype=pl.Int64).alias("lean"),
        outcome.replace_strict(_SWING, default=0, return_dtype=pl.Int64).alias("swing"),
        outcome.is_not_null().cast(pl.Int64).alias("complete"),
    )
