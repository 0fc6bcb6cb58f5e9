"""Pairs as numbers: they sort as names do, and become names again."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from judgebias.cli.coded import CodedPairs

NAMES = st.sampled_from(["a", "b", "B", "aa", "é", "10", "9", "0"])
ROWS = st.dictionaries(
    st.tuples(NAMES, NAMES),
    st.tuples(st.none() | NAMES, st.none() | NAMES, st.none() | NAMES),
    max_size=20,
)


def frame_of(rows: dict[tuple[str, str], tuple[str | None, ...]]) -> pl.DataFrame:
    names = ("task", "pair_id", "model_a", "model_b", "cluster")
    data = [(*key, *rest) for key, rest in rows.items()]
    schema = dict.fromkeys(names, pl.String)
    told = pl.DataFrame(data, schema, orient="row").with_row_index("len_a")
    return told.with_columns(
        pl.lit(None, pl.String).alias("gold"),
        pl.col("len_a").cast(pl.Int64),
        len_b=pl.lit(None, pl.Int64),
    )


@given(ROWS)
def test_numbers_sort_as_names_do_and_become_names_again(
    rows: dict[tuple[str, str], tuple[str | None, ...]],
) -> None:
    given_pairs = frame_of(rows)
    coded = CodedPairs.of(given_pairs.lazy())
    ordered = given_pairs.sort("task", "pair_id")
    assert coded.pairs["pair_id"].to_list() == list(range(len(rows)))
    texts = pl.col("task", "model_a", "model_b", "gold").cast(pl.String)
    named = coded.names()(coded.pairs).with_columns(texts).select(ordered.columns)
    assert named.equals(ordered)
    # What was given in this order has these numbers.
    by_number = given_pairs.with_columns(number=coded.numbers).sort("number").drop("number")
    assert by_number.equals(ordered)
    names = ordered["cluster"].drop_nulls().unique(maintain_order=True).to_list()
    numbers = {name: number for number, name in enumerate(names)}
    clusters = [None if name is None else numbers[name] for name in ordered["cluster"]]
    assert coded.pairs["cluster"].to_list() == clusters


def test_what_few_tables_need_is_read_again() -> None:
    pairs = frame_of({("t", "b"): (None,) * 3, ("t", "a"): (None,) * 3})
    coded = CodedPairs.of(pairs.with_columns(leaks_a=pl.Series(["of b", "of a"])).lazy())
    assert coded.told(["leaks_b"]) is None
    told = coded.told(["leaks_a"])
    assert told is not None
    assert told.collect().sort("pair_id").rows() == [(0, "of a"), (1, "of b")]
