"""Verdicts on two named, different models as numbers, with who is of which family.

A pair with what two calls said of it travels as one number; see `equal_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from judgebias.biases.ballots import PANEL
from judgebias.biases.clusters import LABELS, label_number, slot_number, with_cluster_id
from judgebias.biases.equal_rows import Digit, add_counts, number_of, read_numbers
from judgebias.families import Families
from judgebias.stats.comparisons import NONE
from judgebias.stats.self_preference import BoolArray
from judgebias.verdicts import Slot

PAIR: Final = ("task", "pair_id", "repeat")


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedModels:
    """Who said what of whose models."""

    judges: Mapping[str, list[str]]
    """Each judge and its tasks, sorted."""
    models: tuple[str, ...]
    """Sorted; columns `a` and `b` are places in it."""
    family: Mapping[str, str]
    """Of each judge."""
    model_family: tuple[str, ...]
    frames: Mapping[str, pl.DataFrame]
    """Judge -> task, pair_id, repeat, cluster, a, b, ab, ba, halves. `halves` is the final score of
    A in halves, null where the pair is not complete."""
    counts: Mapping[str, pl.DataFrame]
    """Judge -> its pairs with a call as numbers, counted, those without its family's answers."""
    digits: tuple[Digit, ...]
    """How pairs are written as numbers; `task` is a place in `tasks`."""
    tasks: tuple[str, ...]
    """Sorted."""

    @classmethod
    def of(cls, verdicts: pl.LazyFrame, told: Mapping[str, str], families: Families) -> NamedModels:
        """Gather the verdicts of all judges; `told` names families that a judge's name does not."""
        named = {name: pl.col(name).cast(pl.String) for name in ("judge", "task")}
        real = verdicts.with_columns(**named).filter(pl.col("judge") != PANEL)
        tasks: dict[str, list[str]] = {}
        groups = real.select("judge", "task").unique().sort("judge", "task").collect()
        for judge, task in groups.iter_rows():
            tasks.setdefault(judge, []).append(task)
        frame, models = _numbered(real)
        named = tuple(sorted({task for known in tasks.values() for task in known}))
        family = {judge: told.get(judge) or families.family(judge) for judge in tasks}
        model_family = tuple(families.family(model) for model in models)
        digits = _digits(frame, len(named), len(models))
        frames = frame.partition_by("judge", as_dict=True, include_key=False)
        by_judge = {judge: frames.get((judge,), frame.drop("judge").clear()) for judge in tasks}
        own = {
            judge: [place for place, other in enumerate(model_family) if other == mine]
            for judge, mine in family.items()
        }
        return cls(
            judges=tasks,
            models=models,
            family=family,
            model_family=model_family,
            frames=by_judge,
            counts={
                judge: _numbers(rows.filter(~touched_by(own[judge])), digits, named)
                for judge, rows in by_judge.items()
            },
            digits=digits,
            tasks=named,
        )

    def own(self, family: str) -> BoolArray:
        """Tell the models of a family."""
        return np.array([other == family for other in self.model_family], dtype=np.bool_)

    def said(self, judge: str) -> pl.DataFrame:
        """Count what a judge said of all pairs."""
        return self._named(add_counts([_numbers(self.frames[judge], self.digits, self.tasks)]))

    def said_by_others(self, family: str) -> pl.DataFrame:
        """Count what judges of other families said about pairs without their own."""
        nobody = [counted.clear() for counted in self.counts.values()][:1]
        others = [self.counts[judge] for judge in self.others(family)]
        return self._named(add_counts([*nobody, *others]))

    def others(self, family: str) -> list[str]:
        """Name the judges of other families."""
        return [judge for judge, other in self.family.items() if other != family]

    def neutral(self, judge: str) -> pl.DataFrame:
        """Return what a judge said about pairs without its own family."""
        own = np.flatnonzero(self.own(self.family[judge])).tolist()
        return self.frames[judge].filter(~touched_by(own))

    def _named(self, counted: pl.DataFrame) -> pl.DataFrame:
        rows = read_numbers(counted, self.digits)
        names = pl.Series(self.tasks, dtype=pl.String)
        return rows.with_columns(names.gather(rows["task"]).alias("task"))


def touched_by(own: list[int]) -> pl.Expr:
    """Tell the pairs with an answer of one of these models."""
    return pl.col("a").is_in(own) | pl.col("b").is_in(own)


def _digits(frame: pl.DataFrame, n_tasks: int, n_models: int) -> tuple[Digit, ...]:
    return (
        Digit(name="task", least=0, base=n_tasks),
        Digit.of("cluster", frame["cluster"]),
        *(Digit(name=side, least=0, base=n_models) for side in ("a", "b")),
        *(Digit(name=order, least=NONE, base=len(Slot) + 1) for order in ("ab", "ba")),
    )


def _numbers(frame: pl.DataFrame, digits: Sequence[Digit], tasks: Sequence[str]) -> pl.DataFrame:
    """Write the pairs with a call as numbers, each with its count."""
    heard = (pl.col("ab") != NONE) | (pl.col("ba") != NONE)
    place = pl.col("task").cast(pl.Enum(tasks)).to_physical()
    rows = frame.filter(heard).with_columns(task=place)
    return rows.group_by(number=number_of(digits)).agg(pl.len().cast(pl.Int64).alias("count"))


def _numbered(verdicts: pl.LazyFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Turn names into numbers that follow their order; the same pair has one cluster everywhere."""
    sides = {f"model_{side}": pl.col(f"model_{side}").cast(pl.String) for side in ("a", "b")}
    score = {LABELS["A"]: 2, LABELS["tie"]: 1, LABELS["B"]: 0}
    rows = (
        verdicts.select(
            *("judge", *PAIR, "cluster"),
            *sides.values(),
            ab=slot_number("slot_ab"),
            ba=slot_number("slot_ba"),
            halves=label_number("final").replace_strict(score, default=None, return_dtype=pl.Int8),
        )
        .filter(pl.col("model_a") != pl.col("model_b"))
        .collect()
    )
    names = pl.concat([rows["model_a"], rows["model_b"]]).unique().sort()
    coded = _with_clusters(rows).with_columns(
        pl.col(f"model_{side}").cast(pl.Enum(names)).to_physical().alias(side)
        for side in ("a", "b")
    )
    kept = ("judge", *PAIR, "cluster", "a", "b", "ab", "ba", "halves")
    return coded.select(kept), tuple(names.to_list())


def _with_clusters(rows: pl.DataFrame) -> pl.DataFrame:
    numbered = with_cluster_id(rows)
    alone = numbered.filter(pl.col("cluster_id").is_null()).select("task", "pair_id").unique()
    pairs = alone.sort("task", "pair_id").with_row_index("lone")
    used = numbered["cluster_id"].max()
    above = int(used) + 1 if isinstance(used, int) else 0
    return numbered.join(
        pairs, on=["task", "pair_id"], how="left", maintain_order="left"
    ).with_columns(cluster=pl.coalesce("cluster_id", pl.col("lone").cast(pl.Int64) + above))
