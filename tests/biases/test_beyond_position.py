"""What the tables beyond position owe to poor input: a reason, and no number that is none."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.biases.length import length_table
from judgebias.biases.length_bands import length_bands_table
from judgebias.biases.self_preference import self_preference_table
from judgebias.biases.tone import tone_table
from judgebias.tone import DENSITY_COLUMNS
from tests.biases.judged_world import pair, verdicts

SLOTS = st.sampled_from(["first", "second", "tie", "failed", None])
MODELS = st.sampled_from([None, "gpt-4", "claude", "bard"])
LENGTHS = st.sampled_from([None, 0, 1, 100, 105, 4000])
PAIR = st.fixed_dictionaries(
    {
        "model_a": MODELS,
        "model_b": MODELS,
        "len_a": LENGTHS,
        "len_b": LENGTHS,
        "gold": st.sampled_from([None, "A", "B", "tie"]),
        "cluster": st.sampled_from([None, "x", "y"]),
        "task": st.sampled_from(["s", "t"]),
    }
)
JUDGES = ("gpt-4", "claude", "panel")


def densities(settled: pl.LazyFrame) -> pl.LazyFrame:
    keys = settled.select("task", "pair_id").unique()
    values = [pl.col("pair_id").str.len_chars().cast(pl.Float64) % 3 for _ in DENSITY_COLUMNS]
    return keys.with_columns(v.alias(n) for n, v in zip(DENSITY_COLUMNS, values, strict=True))


def tone(settled: pl.LazyFrame) -> pl.DataFrame:
    return tone_table(settled, densities(settled))


TABLES: list[Callable[[pl.LazyFrame], pl.DataFrame]] = [
    length_table,
    length_bands_table,
    self_preference_table,
    tone,
    tone_table,
]


def sound(table: pl.DataFrame) -> None:
    numbers = table.select(pl.col(pl.Float64)).unpivot()["value"].drop_nulls()
    assert numbers.is_finite().all()
    assert table["reason"].drop_nulls().str.len_chars().min() != 0


@pytest.mark.parametrize("make", TABLES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_verdicts_make_a_sound_table(
    make: Callable[[pl.LazyFrame], pl.DataFrame], data: st.DataObject
) -> None:
    about = data.draw(st.lists(PAIR, min_size=1, max_size=14))
    pairs = [pair(f"{k}", **facts) for k, facts in enumerate(about)]
    said = [
        (judge, f"{k}", data.draw(SLOTS), data.draw(SLOTS))
        for k in range(len(pairs))
        for judge in JUDGES
    ]
    sound(make(verdicts(pairs, said)))


@pytest.mark.parametrize("make", TABLES)
def test_no_verdicts_make_an_empty_table(make: Callable[[pl.LazyFrame], pl.DataFrame]) -> None:
    settled = verdicts([pair("1")], [("j", "1", "first", "first")]).collect().clear()
    table = make(settled.lazy())
    assert table.height == 0
    assert table.columns == make(verdicts([pair("1")], [("j", "1", "first", "first")])).columns


@pytest.mark.parametrize("make", TABLES)
def test_one_judge_one_model_no_gold_no_texts(make: Callable[[pl.LazyFrame], pl.DataFrame]) -> None:
    pairs = [pair(f"{k}", model_a="gpt-4", model_b="gpt-4") for k in range(20)]
    said = [("gpt-4", str(p["pair_id"]), "first", "second") for p in pairs]
    table = make(verdicts(pairs, said))
    assert table["reason"].str.contains("not available").all()
    sound(table)


@pytest.mark.parametrize("make", TABLES)
def test_repeats_of_a_pair_share_its_cluster(make: Callable[[pl.LazyFrame], pl.DataFrame]) -> None:
    about = {"model_a": "gpt-4", "model_b": "claude", "gold": "A", "len_a": 9, "len_b": 5}
    pairs = [pair(f"{k}", **about) for k in range(5)]
    said = [("j", f"{k}", *(("first", "second"), ("second", "first"))[k % 2]) for k in range(5)]
    repeats = [verdicts(pairs, said, repeat=repeat) for repeat in (1, 2)]
    table = make(pl.concat(repeats))
    sound(table)
    for name in ("excess_clusters", "n_clusters"):
        if name in table.columns:
            assert set(table[name].drop_nulls()) <= {0, 5}
