"""What a run asks of its survey: single columns of the index, read without holding the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.config import RunConfig
from judgebias.design import Orders, Words, question_words
from judgebias.pairs import Survey
from judgebias.pairs.index import INDEX
from judgebias.self_pairs import ITEM_COLUMNS


def models_of(survey: Survey) -> list[str]:
    """Name the models whose answers the pairs show, in the order of their names."""
    sides = [
        survey.rows.scan.select(pl.col(side).alias("model")) for side in ("model_a", "model_b")
    ]
    named = pl.concat(sides).unique().collect(engine="streaming")["model"]
    return named.drop_nulls().sort().to_list()


def questions_of(survey: Survey, orders: Orders) -> Words | None:
    """Give the digests of the pairs' questions where the orders depend on them."""
    if orders != "sampled":
        return None
    parts = [
        question_words(part["question_id"], orders) for part in survey.rows.parts("question_id")
    ]
    return np.concatenate([np.empty((0, 2), np.uint64), *(p for p in parts if p is not None)])


def rows_of_items(survey: Survey, config: RunConfig) -> pl.DataFrame:
    """Give what the items of the probe are drawn by; no row where none is asked for."""
    if not config.self_pair:
        return pl.DataFrame(schema={name: INDEX[name] for name in ITEM_COLUMNS})
    return survey.rows.scan.select(ITEM_COLUMNS).collect()


def numbers_of(survey: Survey, column: str) -> npt.NDArray[np.int64]:
    """Give a column of whole numbers, eight bytes a pair."""
    parts = [part[column].to_numpy() for part in survey.rows.parts(column)]
    return np.concatenate([np.empty(0, np.int64), *parts])
