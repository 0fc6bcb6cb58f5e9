"""Self-preference (`tables/self_preference.csv`): a row per judge x task and per judge over ALL.

Columns, in order; (+) is followed by `_low` and `_high`:

* `judge, task, family, own_models`: the judge's family, and its models among the answers;
* `n_own_pairs, own_win_rate, others_win_rate, raw_difference`: how often an answer of the family
  wins against others by this judge (final verdicts, a tie one half), and by judges of other
  families on the same pairs, where neither answer is of theirs. The difference is shown and never
  flagged: a judge that is only noisier has one as well;
* `n_calls, n_own_calls, n_ties, n_clusters, alpha, offset, gamma(+), p_gamma, q_gamma`: the model
  of `stats.self_preference`: decisive calls, those on pairs with one own answer, ties left out.
  q_gamma is p_gamma after Benjamini-Hochberg over the judge x task rows, or over the ALL rows;
* `self_preference`: `own` or `against own` (q_gamma < .05), `none detected`, `too few` (fewer than
  6 clusters), `not available`;
* `reason`: why what is null is null.

The strengths leave out the judge's whole family on all pairs, so that a judge is compared with
others only. gamma says what the judge adds to its family that others do not see: a love of its own
text, or a taste (for length, say) that its family serves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from judgebias.biases.ballots import PANEL
from judgebias.biases.clusters import LABELS, label_number, with_cluster_id
from judgebias.biases.equal_rows import Digit, add_counts, number_of, read_numbers
from judgebias.families import BUILT_IN, Families
from judgebias.stats.comparisons import FIRST, NONE, SECOND, TIE, Comparisons
from judgebias.stats.multiplicity import benjamini_hochberg
from judgebias.stats.self_preference import BoolArray, SelfPreference, self_preference
from judgebias.summary.columns import Figure, Row, bounded, estimate, frame_of
from judgebias.summary.profiles import ALL
from judgebias.summary.rows import SIGNIFICANT
from judgebias.verdicts import Slot

SELF_PREFERENCE_COLUMNS: Final = (
    *("judge", "task", "family", "own_models"),
    *("n_own_pairs", "own_win_rate", "others_win_rate", "raw_difference"),
    *("n_calls", "n_own_calls", "n_ties", "n_clusters", "alpha", "offset", *bounded("gamma")),
    *("p_gamma", "q_gamma", "self_preference", "reason"),
)
"""The columns of tables/self_preference.csv, in order."""

_TEXT: Final = {"judge", "task", "family", "own_models", "self_preference", "reason"}
_SLOT: Final = {str(Slot.FIRST): FIRST, str(Slot.SECOND): SECOND, str(Slot.TIE): TIE}
_PAIR: Final = ("task", "pair_id", "repeat")


def self_preference_table(
    verdicts: pl.LazyFrame,
    *,
    judges: Mapping[str, str] | None = None,
    families: Families = BUILT_IN,
) -> pl.DataFrame:
    """Estimate how much each judge prefers answers of its own family.

    Parameters
    ----------
    verdicts
        What `settle_calls` returns, in any order; rows of the panel are passed over.
    judges
        Family of each judge; one that is not named here has the family of its name.
    families
        How the family of a model is told.

    Returns
    -------
    DataFrame
        `SELF_PREFERENCE_COLUMNS`, sorted by judge, task (ALL last).
    """
    world = _World.of(verdicts, judges or {}, families)
    rows = _adjusted([row for judge in world.judges for row in _rows(world, judge)])
    return frame_of(rows, {name: _type(name) for name in SELF_PREFERENCE_COLUMNS})


def _type(name: str) -> pl.DataType:
    if name in _TEXT:
        return pl.String()
    return pl.Int64() if name.startswith("n_") else pl.Float64()


@dataclass(frozen=True, kw_only=True, slots=True)
class _World:
    """All verdicts on two named, different models, with who is of which family."""

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
    def of(cls, verdicts: pl.LazyFrame, told: Mapping[str, str], families: Families) -> _World:
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
                judge: _numbers(rows.filter(~_touched(own[judge])), digits, named)
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
        return self.frames[judge].filter(~_touched(own))

    def _named(self, counted: pl.DataFrame) -> pl.DataFrame:
        rows = read_numbers(counted, self.digits)
        names = pl.Series(self.tasks, dtype=pl.String)
        return rows.with_columns(names.gather(rows["task"]).alias("task"))


def _touched(own: list[int]) -> pl.Expr:
    return pl.col("a").is_in(own) | pl.col("b").is_in(own)


def _digits(frame: pl.DataFrame, n_tasks: int, n_models: int) -> tuple[Digit, ...]:
    return (
        Digit(name="task", least=0, base=n_tasks),
        Digit.of("cluster", frame["cluster"]),
        *(Digit(name=side, least=0, base=n_models) for side in ("a", "b")),
        *(Digit(name=order, least=NONE, base=len(_SLOT) + 1) for order in ("ab", "ba")),
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
            *("judge", *_PAIR, "cluster"),
            *sides.values(),
            ab=_slot_number("slot_ab"),
            ba=_slot_number("slot_ba"),
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
    kept = ("judge", *_PAIR, "cluster", "a", "b", "ab", "ba", "halves")
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


def _slot_number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).replace_strict(_SLOT, default=NONE, return_dtype=pl.Int8)


def _rows(world: _World, judge: str) -> Iterator[Row]:
    family = world.family[judge]
    own = world.own(family)
    mine = world.said(judge)
    touched = np.flatnonzero(own).tolist()
    # Most judges judge nothing of their own: what others said of the rest is not counted for them.
    judged_own = not mine.filter(_touched(touched)).is_empty()
    others = world.said_by_others(family) if judged_own else mine.clear()
    raw = _raw(world, judge, touched) if judged_own else pl.DataFrame()
    for task in (*world.judges[judge], ALL):
        here = pl.lit(value=True) if task == ALL else pl.col("task") == task
        said_by_others, said = (frame.filter(here) for frame in (others, mine))
        about: Row = {"judge": judge, "task": task, "family": family}
        reason = _nothing_to_say(world, said, own)
        if reason is not None:
            row: Row = {"self_preference": "not available", "reason": f"not available: {reason}"}
        else:
            met = said.select(pl.concat([pl.col("a"), pl.col("b")]).unique().sort())
            places = [place for place in met.to_series().to_list() if own[place]]
            row = {"own_models": ", ".join(world.models[place] for place in places)}
            row |= _raw_figures(raw.filter(here)) | _figures(said_by_others, said, own)
        yield about | row


def _nothing_to_say(world: _World, mine: pl.DataFrame, own: BoolArray) -> str | None:
    if not world.models:
        return "the models of the answers are not known"
    if mine.is_empty():
        return "no verdict on two named, different models"
    touched = np.flatnonzero(own).tolist()
    if mine.filter(pl.col("a").is_in(touched) | pl.col("b").is_in(touched)).is_empty():
        return "it judged no answer of its own family"
    return None


def _comparisons(counted: pl.DataFrame) -> Comparisons:
    names = ("a", "b", "ab", "ba", "count", "cluster")
    return Comparisons.of(**{name: counted[name].to_numpy() for name in names})


def _figures(others: pl.DataFrame, mine: pl.DataFrame, own: BoolArray) -> Row:
    tied = pl.sum_horizontal((pl.col(name) == TIE).cast(pl.Int64) for name in ("ab", "ba"))
    row: Row = {"n_ties": int(mine.select((tied * pl.col("count")).sum()).item())}
    found = self_preference(_comparisons(others), _comparisons(mine), own)
    if not isinstance(found, SelfPreference):
        words = f"gamma not available: {found}"
        return row | {"self_preference": "not available", "reason": words}
    few = None if found.interval else "interval of gamma: fewer than 6 clusters"
    return row | {
        "n_calls": found.n_calls,
        "n_own_calls": found.n_own_calls,
        "n_clusters": found.n_clusters,
        "alpha": found.alpha,
        "offset": found.offset,
        **estimate("gamma", found.gamma, found.interval),
        "p_gamma": found.p,
        "self_preference": "too few",
        "reason": few,
    }


def _adjusted(rows: list[Row]) -> list[Row]:
    """Add what needs the other rows: q-values, and the words that rest on them."""
    adjusted = [*rows]
    for total in (False, True):
        places = [place for place, row in enumerate(rows) if (row["task"] == ALL) == total]
        tested = [_number(rows[place].get("p_gamma")) for place in places]
        for place, q in zip(places, benjamini_hochberg(tested), strict=True):
            if q is not None:
                adjusted[place] = rows[place] | {
                    "q_gamma": q,
                    "self_preference": _word(rows[place], q),
                }
    return adjusted


def _word(row: Row, q: float) -> str:
    if q >= SIGNIFICANT:
        return "none detected"
    return "own" if (_number(row["gamma"]) or 0.0) > 0.0 else "against own"


def _number(figure: Figure) -> float | None:
    return float(figure) if isinstance(figure, int | float) else None


def _raw(world: _World, judge: str, own: list[int]) -> pl.DataFrame:
    """Put beside each own-against-other pair of the judge what the others say, in whole numbers."""
    a, b = pl.col("a").is_in(own), pl.col("b").is_in(own)
    score = pl.when(a).then(pl.col("halves")).otherwise(2 - pl.col("halves"))

    def scored(frame: pl.DataFrame) -> pl.DataFrame:
        told = frame.filter((a != b) & pl.col("halves").is_not_null())
        return told.select(*_PAIR, score=score)

    mine = scored(world.frames[judge])
    others = [scored(world.neutral(name)) for name in world.others(world.family[judge])]
    by_pair = (
        pl.concat([mine.clear(), *others])
        .group_by(_PAIR)
        .agg(
            pl.col("score").cast(pl.Int64).sum().alias("others"),
            pl.len().cast(pl.Int64).alias("n_others"),
        )
    )
    return mine.join(by_pair, on=_PAIR, how="left")


def _raw_figures(raw: pl.DataFrame) -> Row:
    shared = raw.drop_nulls("n_others")
    compared = shared if shared.height else raw
    n, own_score = compared.height, int(compared["score"].sum())
    rate = own_score / (2 * n) if n else None
    row: Row = {"n_own_pairs": n, "own_win_rate": rate}
    if shared.height and rate is not None:
        other_rate = int(shared["others"].sum()) / (2 * int(shared["n_others"].sum()))
        row |= {"others_win_rate": other_rate, "raw_difference": rate - other_rate}
    return row
