"""Contests: what each judge said about which models, counted.

Models are numbers here, in the order of their names; a pair stands with the model first that sorts
first. The panel's verdicts name an answer and no slot: they count as calls of one order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import polars as pl

from judgebias.biases.ballots import PANEL
from judgebias.biases.clusters import label_number, slot_number, with_cluster_id
from judgebias.biases.equal_rows import Digit, count_equal
from judgebias.stats.comparisons import NONE, OWN, Comparisons
from judgebias.verdicts import Slot

_SLOTS: Final = len(Slot) + 1


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
    name = pl.col("judge").cast(pl.String)
    judges = verdicts.select(name.unique()).collect()["judge"].to_list()
    for judge in sorted(judges, key=lambda judge: (judge == PANEL, judge)):
        counted, names = _counted(verdicts.filter(name == judge), panel=judge == PANEL)
        a, b = counted["a"].to_numpy(), counted["b"].to_numpy()
        rest = {name: counted[name].to_numpy() for name in ("ab", "ba", "count", "cluster")}
        yield Contest(
            judge=judge, models=tuple(names), comparisons=Comparisons.of(a=a, b=b, **rest)
        )


def _counted(verdicts: pl.LazyFrame, *, panel: bool) -> tuple[pl.DataFrame, list[str]]:
    """Count a judge's pairs by cluster, models (A the one that sorts first) and verdicts.

    Returns the counts, models as places in their sorted names, and these names.
    """
    said = {"ab": slot_number("slot_ab"), "ba": slot_number("slot_ba")}
    if panel:
        # Its verdict names an answer: as if it were asked once, and no order had an effect.
        said = {"ab": label_number("final") - 1, "ba": pl.lit(NONE, pl.Int8)}
    models = {name: pl.col(name).cast(pl.String) for name in ("model_a", "model_b")}
    met = pl.col("model_a") != pl.col("model_b")
    heard = (pl.col("ab") != NONE) | (pl.col("ba") != NONE)
    pairs = verdicts.select("task", "pair_id", "repeat", "cluster", **models, **said)
    numbered = with_cluster_id(pairs.filter(met & heard).collect())
    names = pl.concat([numbered["model_a"].unique(), numbered["model_b"].unique()]).unique().sort()
    coded = numbered.select(
        pl.col("cluster_id").fill_null(OWN).alias("cluster"),
        _place("model_a", names).alias("a"),
        _place("model_b", names).alias("b"),
        *("ab", "ba"),
        turn=pl.col("model_a") > pl.col("model_b"),
    ).select("cluster", *_turned("a", "b"), *_turned("ab", "ba"))
    digits = (
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
