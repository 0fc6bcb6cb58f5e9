"""Verdicts made of columns: what each judge said about each pair, settled as always."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from judgebias.summary import settle_calls

CALLS = {
    **dict.fromkeys(("judge", "task", "pair_id"), pl.String),
    "repeat": pl.Int32,
    **dict.fromkeys(("order", "slot"), pl.String),
}
PAIRS = {
    **dict.fromkeys(("task", "pair_id", "model_a", "model_b", "gold", "cluster"), pl.String),
    **dict.fromkeys(("len_a", "len_b"), pl.Int64),
}
Said = tuple[str, str, str | None, str | None]
"""Judge, pair_id, slot in ab, slot in ba; "failed" is a failure and None a call not asked."""


def pair(pair_id: str, *, task: str = "t", **about: object) -> dict[str, object]:
    """Make a pair; what is not named is not known."""
    return {**dict.fromkeys(PAIRS), "task": task, "pair_id": pair_id, **about}


def verdicts(
    pairs: Iterable[dict[str, object]], said: Iterable[Said], *, repeat: int = 1
) -> pl.LazyFrame:
    """Settle what judges said."""
    frame = pl.DataFrame(list(pairs), PAIRS)
    tasks = dict(frame.select("pair_id", "task").iter_rows())
    calls = [
        (judge, tasks[pair_id], pair_id, repeat, order, None if slot == "failed" else slot)
        for judge, pair_id, ab, ba in said
        for order, slot in (("ab", ab), ("ba", ba))
        if slot is not None
    ]
    return settle_calls(pl.DataFrame(calls, CALLS, orient="row").lazy(), frame.lazy())


def winner(name: str) -> tuple[str, str]:
    """Return the slots of a judge whose orders agree on A, B or a tie."""
    return {"A": ("first", "second"), "B": ("second", "first"), "tie": ("tie", "tie")}[name]
