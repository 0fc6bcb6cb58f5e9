"""Recorded calls of one judge on many pairs, made up but drawn once and for all by a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from judgebias.summary.settle import PAIR_COLUMNS
from judgebias.verdicts import Order, Slot

JUDGE = "j"
TASKS = 20
FAILURES = 0.01
LEAN = 0.02
"""Pull to the first slot, small enough that the p-value of a million pairs is a double."""
SEED = 20261130


def make_calls(pairs: int) -> pl.DataFrame:
    """Draw both calls of so many pairs: judge, task, pair_id, repeat, order, slot."""
    draw = np.random.default_rng(SEED)
    gap = draw.normal(size=pairs)
    frames = [
        pl.DataFrame(
            {
                "judge": JUDGE,
                "task": _tasks(pairs),
                "pair_id": _names(pairs),
                "repeat": 1,
                "order": str(order),
                "slot": _slots(draw, gap if order is Order.AB else -gap),
            }
        )
        for order in Order
    ]
    return pl.concat(frames)


def make_pairs(pairs: int) -> pl.DataFrame:
    """List the pairs with the attributes that the summary joins, none of them known."""
    unknown = {name: pl.lit(None, pl.String) for name in PAIR_COLUMNS}
    lengths = {name: pl.lit(100, pl.Int64) for name in ("len_a", "len_b")}
    frame = pl.DataFrame({"task": _tasks(pairs), "pair_id": _names(pairs)})
    return frame.with_columns(**{**unknown, **lengths})


def write_calls(folder: Path, pairs: int) -> Path:
    """Write both frames as Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    make_calls(pairs).write_parquet(folder / "calls.parquet")
    make_pairs(pairs).write_parquet(folder / "pairs.parquet")
    return folder


def _tasks(pairs: int) -> list[str]:
    return [f"task{number % TASKS:02d}" for number in range(pairs)]


def _names(pairs: int) -> list[str]:
    return [f"{number:08d}" for number in range(pairs)]


def _slots(draw: np.random.Generator, gap: np.ndarray) -> pl.Series:
    """Turn quality gaps in slot order into slots; a failed call has none."""
    x = gap + LEAN + draw.logistic(size=len(gap))
    words = np.where(np.abs(x) < 0.2, str(Slot.TIE), np.where(x > 0, Slot.FIRST, Slot.SECOND))
    slots = pl.Series(words.astype(str).tolist(), dtype=pl.String)
    failed = pl.Series(draw.random(len(gap)) < FAILURES)
    return pl.select(pl.when(~failed).then(slots)).to_series()
