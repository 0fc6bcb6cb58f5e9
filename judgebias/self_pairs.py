"""The self-pair probe: one text in both slots, how its calls are named, and which texts are taken.

A self-pair call has an order too: it says whose text stands in both slots, the one that this order
would show first. So the calls of the probe have the columns of any call, and their digest, which is
the pair's XOR a constant of the order, can meet no digest of an ordinary pair.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa

from judgebias.calls import KEY_BYTES, Pair, call_keys
from judgebias.config import JudgeConfig, ReplayJudge, SimulatedJudge, WireJudge
from judgebias.design import Words, draws, words_of
from judgebias.verdicts import Order

ITEM_COLUMNS = ("task", "digest", "question_id", "text_id_a", "text_id_b", "identical")
"""Columns of the index that items are drawn by."""
_TEXTS = {Order.AB: "text_id_a", Order.BA: "text_id_b"}
_MASKS = {
    order: hashlib.blake2b(
        b"judgebias self pair\0" + order.encode(), digest_size=KEY_BYTES
    ).digest()
    for order in Order
}


def is_probed(judge: JudgeConfig) -> bool:
    """Whether a judge can be shown a self pair: records hold what was asked and nothing else."""
    return not isinstance(judge, ReplayJudge)


def has_tie(judge: JudgeConfig) -> bool | None:
    """Whether a judge can call a tie; None where only its verdicts can tell."""
    if isinstance(judge, SimulatedJudge):
        return judge.tie_width > 0
    # Every template ends in our own instruction, which offers the tie.
    return True if isinstance(judge, WireJudge) else None


def self_digests(digests: bytes, order: Order) -> bytes:
    """Name the self pairs of a block, from its pairs' digests; applied twice it gives them back."""
    return call_keys(digests, _MASKS[order])


def self_pair(pair: Pair, order: Order) -> Pair:
    """Put the text that the order would show first into both slots."""
    takes_a = order is Order.AB
    text = pair.answer_a if takes_a else pair.answer_b
    model = pair.model_a if takes_a else pair.model_b
    quality = pair.quality_a if takes_a else pair.quality_b
    return replace(
        pair,
        answer_a=text,
        answer_b=text,
        model_a=model,
        model_b=model,
        quality_a=quality,
        quality_b=quality,
        gold=None,
    )


def draw_items(index: pl.DataFrame, *, count: int, seed: int) -> pl.DataFrame:
    """Draw the texts of the probe from the answers of an input.

    Parameters
    ----------
    index
        The columns of `ITEM_COLUMNS`, one row per pair.
    count
        Items over all tasks, which get equally many as far as they have them; fewer where the
        input holds fewer distinct answers.
    seed
        A larger count under one seed contains the smaller one, whatever the order of the rows.

    Returns
    -------
    DataFrame
        task, order, and the digest of each self pair as two words (`first`, `last`), sorted by
        them. A text that stands in several pairs of a question is one item; pairs whose answers
        are identical are in the probe already and give none.
    """
    pairs = index.select(*ITEM_COLUMNS).filter(~pl.col("identical") & (count > 0))
    digests = b"".join(pairs["digest"])
    candidates = pl.concat(_candidates(pairs, digests, order, seed) for order in Order)
    # Of millions of texts only those with small draws can be items: the others stay unsorted.
    most = 2 * count
    while True:
        near = _smallest(candidates, most)
        distinct = _distinct(near, pairs, digests)
        if near.height == candidates.height or _enough(distinct, candidates, count, most):
            break
        most *= 4
    in_turn = distinct.with_columns(turn=pl.int_range(pl.len()).over("task"))
    chosen = in_turn.sort("turn", "draw", "first", "last").head(count)
    return chosen.select("task", "order", "first", "last").sort("first", "last")


def item_words(items: pl.DataFrame) -> Words:
    """Give the items' digests with shape (2, n), sorted as the keys of finished calls are."""
    return np.ascontiguousarray(items.select("first", "last").to_numpy().T)


def item_digests(items: pl.DataFrame) -> pl.Series:
    """Give the items' digests as the journal has them."""
    words = np.ascontiguousarray(items.select("first", "last").to_numpy())
    return binary(words.tobytes())


def binary(digests: bytes) -> pl.Series:
    """Make a column of sixteen bytes each, without a loop over them."""
    buffers = [None, pa.py_buffer(digests)]
    n = len(digests) // KEY_BYTES
    array = pa.FixedSizeBinaryArray.from_buffers(pa.binary(KEY_BYTES), n, buffers)
    return pl.Series("pair", array.cast(pa.large_binary()), dtype=pl.Binary)


def _candidates(pairs: pl.DataFrame, digests: bytes, order: Order, seed: int) -> pl.DataFrame:
    names = words_of(self_digests(digests, order))
    return pairs.select(
        "task",
        pl.lit(str(order)).alias("order"),
        pl.int_range(pl.len(), dtype=pl.UInt32).alias("row"),
        pl.Series("draw", draws(names, seed=seed, salt="self_pair")),
    )


def _smallest(candidates: pl.DataFrame, most: int) -> pl.DataFrame:
    """Keep of each task the candidates with the smallest draws."""
    bounds = candidates.group_by("task").agg(pl.col("draw").bottom_k(most).max().alias("bound"))
    return candidates.join(bounds, on="task").filter(pl.col("draw") <= pl.col("bound"))


def _distinct(near: pl.DataFrame, pairs: pl.DataFrame, digests: bytes) -> pl.DataFrame:
    """Keep of each text of a question the place with the smallest draw."""
    sides = [_named(near, pairs, digests, order) for order in Order]
    ordered = pl.concat(sides).sort("draw", "first", "last")
    return ordered.unique(["task", "question_id", "text"], keep="first", maintain_order=True)


def _named(near: pl.DataFrame, pairs: pl.DataFrame, digests: bytes, order: Order) -> pl.DataFrame:
    mine = near.filter(pl.col("order") == str(order))
    rows = mine["row"].to_numpy()
    names = words_of(self_digests(digests, order))[rows]
    texts = pairs.select("question_id", pl.col(_TEXTS[order]).alias("text"))[rows]
    return (
        mine.select("task", "order", "draw")
        .hstack(texts)
        .with_columns(
            pl.Series("first", np.ascontiguousarray(names[:, 0])),
            pl.Series("last", np.ascontiguousarray(names[:, 1])),
        )
    )


def _enough(distinct: pl.DataFrame, candidates: pl.DataFrame, count: int, most: int) -> bool:
    """Whether no task could have more items if more of its candidates were looked at."""
    found = distinct.group_by("task").agg(found=pl.len())
    sizes = candidates.group_by("task").agg(size=pl.len()).join(found, on="task")
    return bool(sizes.select(((pl.col("found") >= count) | (pl.col("size") <= most)).all()).item())
