"""Contests: what each judge said about which models, counted.

Models are numbers here, in the order of their names; a pair stands with the model first that sorts
first. The panel's verdicts name an answer and no slot: they count as calls of one order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from judgebias.biases.ballots import PANEL
from judgebias.biases.clusters import label_number, with_cluster_id
from judgebias.biases.equal_rows import Digit, count_equal
from judgebias.stats.comparisons import FIRST, NONE, OWN, SECOND, TIE, Comparisons
from judgebias.verdicts import Slot

_SLOT: Final = {str(Slot.FIRST): FIRST, str(Slot.SECOND): SECOND, str(Slot.TIE): TIE}
_SLOTS: Final = len(_SLOT) + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Contest:
    """What one judge said about the models."""

    judge: str
    models: tuple[str, ...]
    """Sorted names of all models that met."""
    comparisons: Comparisons
    """Models by their place in `models`."""

    @property
    def basis(self) -> str:
        """Name what a verdict is here."""
        return "final_verdicts" if self.judge == PANEL else "calls"


def contests(verdicts: pl.LazyFrame) -> Iterator[Contest]:
    """Count the comparisons of models, judge by judge; a judge without any has no models."""
    judges = verdicts.select(pl.col("judge").cast(pl.String).unique().sort()).collect()["judge"]
    counted, names = _counted(verdicts, judges)
    numbered = sorted(enumerate(judges), key=lambda pair: (pair[1] == PANEL, pair[1]))
    for number, judge in numbered:
        part = counted.filter(pl.col("judge") == number)
        a, b = part["a"].to_numpy(), part["b"].to_numpy()
        met = np.unique(np.concatenate([a, b]))
        rest = {name: part[name].to_numpy() for name in ("ab", "ba", "count", "cluster")}
        yield Contest(
            judge=judge,
            models=tuple(names[place] for place in met.tolist()),
            comparisons=Comparisons.of(
                a=np.searchsorted(met, a), b=np.searchsorted(met, b), **rest
            ),
        )


def _counted(verdicts: pl.LazyFrame, judges: pl.Series) -> tuple[pl.DataFrame, list[str]]:
    """Count pairs by judge, cluster, models (A the one that sorts first) and verdicts.

    Returns the counts, judges and models as places in their sorted names, and the models' names.
    """
    panel = pl.col("judge").cast(pl.String) == PANEL
    named = {name: pl.col(name).cast(pl.String) for name in ("judge", "model_a", "model_b")}
    # The panel's verdict names an answer: as if it were asked once, and no order had an effect.
    answers = label_number("final") - 1
    said = {
        "ab": pl.when(panel).then(answers).otherwise(_slot_number("slot_ab")),
        "ba": pl.when(panel).then(NONE).otherwise(_slot_number("slot_ba")),
    }
    met = pl.col("model_a") != pl.col("model_b")
    heard = (pl.col("ab") != NONE) | (pl.col("ba") != NONE)
    pairs = verdicts.select("task", "pair_id", "repeat", "cluster", **named, **said)
    numbered = with_cluster_id(pairs.filter(met & heard).collect())
    names = pl.concat([numbered["model_a"].unique(), numbered["model_b"].unique()]).unique().sort()
    coded = numbered.select(
        _place("judge", judges).alias("judge"),
        pl.col("cluster_id").fill_null(OWN).alias("cluster"),
        _place("model_a", names).alias("a"),
        _place("model_b", names).alias("b"),
        *("ab", "ba"),
        turn=pl.col("model_a") > pl.col("model_b"),
    ).select("judge", "cluster", *_turned("a", "b"), *_turned("ab", "ba"))
    digits = (
        Digit(name="judge", least=0, base=len(judges)),
        Digit.of("cluster", coded["cluster"], least=OWN),
        *(Digit(name=side, least=0, base=len(names)) for side in ("a", "b")),
        *(Digit(name=order, least=NONE, base=_SLOTS) for order in ("ab", "ba")),
    )
    return count_equal(coded, digits), names.to_list()


def _place(name: str, names: pl.Series) -> pl.Expr:
    return pl.col(name).cast(pl.Enum(names)).to_physical().cast(pl.Int64)


def _turned(one: str, other: str) -> list[pl.Expr]:
    turn = pl.col("turn")
    return [
        pl.when(turn).then(pl.col(other)).otherwise(pl.col(one)).alias(one),
        pl.when(turn).then(pl.col(one)).otherwise(pl.col(other)).alias(other),
    ]


def _slot_number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).replace_strict(_SLOT, default=NONE, return_dtype=pl.Int8)
