"""Frames of calls and pairs made of a list of judged pairs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from judgebias.summary import settle_calls
from tests.summary.verdict_oracle import STEP, Judged

CALLS = {
    "judge": pl.String,
    "task": pl.String,
    "pair_id": pl.String,
    "repeat": pl.Int32,
    "order": pl.String,
    "slot": pl.String,
    "failure": pl.String,
}
PAIRS = {
    "task": pl.String,
    "pair_id": pl.String,
    "model_a": pl.String,
    "model_b": pl.String,
    "gold": pl.String,
    "cluster": pl.String,
    "len_a": pl.Int64,
    "len_b": pl.Int64,
    "identical": pl.Boolean,
}


def judged(ab: str | None, ba: str | None, n: int = 0, **about: object) -> Judged:
    """Make one pair, with what a test does not care about filled in."""
    rest = {"task": "t", "pair_id": f"{n}", "repeat": 1, "gold": None, "cluster": None}
    return Judged(ab=ab, ba=ba, **(rest | about))  # type: ignore[arg-type]


def calls_of(pairs: Sequence[Judged], judge: str = "j") -> pl.DataFrame:
    rows = [
        (
            judge,
            pair.task,
            pair.pair_id,
            pair.repeat,
            order,
            slot if slot in STEP else None,
            None if slot in STEP else "timeout",
        )
        for pair in pairs
        for order, slot in (("ab", pair.ab), ("ba", pair.ba))
        if slot is not None
    ]
    return pl.DataFrame(rows, CALLS, orient="row")


def pairs_of(pairs: Sequence[Judged]) -> pl.DataFrame:
    rows = {
        (pair.task, pair.pair_id): ("x", "y", pair.gold, pair.cluster, 3, 5, False)
        for pair in pairs
    }
    return pl.DataFrame([(*key, *rest) for key, rest in rows.items()], PAIRS, orient="row")


def settled(pairs: Sequence[Judged]) -> pl.LazyFrame:
    return settle_calls(calls_of(pairs).lazy(), pairs_of(pairs).lazy())
