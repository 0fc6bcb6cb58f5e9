"""Small sets of verdicts, written down call by call."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from judgebias.summary import settle_calls

Judged = tuple[str, str, str | None, str | None]
"""judge, pair, slot in ab, slot in ba; None where the call failed."""

A, B, TIE = ("first", "second"), ("second", "first"), ("tie", "tie")
STUCK, HALF = ("first", "first"), ("first", "tie")


def settled(
    judged: Iterable[Judged],
    *,
    gold: dict[str, str] | None = None,
    models: dict[str, tuple[str | None, str | None]] | None = None,
    clusters: dict[str, str] | None = None,
    repeats: dict[str, int] | None = None,
    orders: tuple[str, ...] = ("ab", "ba"),
) -> pl.LazyFrame:
    """Settle what judges said; `repeats` says how often each judge said it."""
    rows = list(judged)
    calls = [
        {
            "judge": judge,
            "task": "t",
            "pair_id": pair,
            "repeat": repeat,
            "order": order,
            "slot": slot,
        }
        for judge, pair, ab, ba in rows
        for repeat in range(1, (repeats or {}).get(judge, 1) + 1)
        for order, slot in (("ab", ab), ("ba", ba))
        if order in orders
    ]
    names = sorted({pair for _, pair, _, _ in rows})
    pairs = pl.LazyFrame(
        {
            "task": ["t"] * len(names),
            "pair_id": names,
            "model_a": [(models or {}).get(name, (None, None))[0] for name in names],
            "model_b": [(models or {}).get(name, (None, None))[1] for name in names],
            "gold": [(gold or {}).get(name) for name in names],
            "cluster": [(clusters or {}).get(name) for name in names],
            "len_a": [1] * len(names),
            "len_b": [1] * len(names),
        },
        {
            **dict.fromkeys(
                ("task", "pair_id", "model_a", "model_b", "gold", "cluster"), pl.String
            ),
            "len_a": pl.Int64,
            "len_b": pl.Int64,
        },
    )
    schema = {
        **dict.fromkeys(("judge", "task", "pair_id"), pl.String),
        "repeat": pl.Int32,
        "order": pl.String,
        "slot": pl.String,
    }
    return settle_calls(pl.LazyFrame(calls, schema), pairs)


def votes(judge: str, *said: tuple[str | None, str | None]) -> list[Judged]:
    """What a judge says about pairs p0, p1, ..."""
    return [(judge, f"p{number}", *slots) for number, slots in enumerate(said)]
