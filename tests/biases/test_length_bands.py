from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from judgebias.biases.length_bands import FIXED_EDGES, LENGTH_BAND_COLUMNS, length_bands_table
from judgebias.summary import summarize
from tests.biases.judged_world import pair, verdicts
from tests.biases.test_length_table import recorded

CELLS = ["agreed_a", "agreed_b", "agreed_tie", "stuck_first", "stuck_second", "half_first"]


def reversing(n: int = 79) -> pl.LazyFrame:
    """A judge that is stuck on the first slot below 2000 characters, on the second above."""
    lengths = [25 + 25 * k for k in range(n)]
    pairs = [pair(f"{k:03}", len_a=x, len_b=x) for k, x in enumerate(lengths)]
    slots = ["first" if 2 * x < 2000 else "second" for x in lengths]
    said = [("j", str(p["pair_id"]), s, s) for p, s in zip(pairs, slots, strict=True)]
    return verdicts(pairs, said)


@pytest.mark.parametrize(
    ("bands", "crossing"),
    [
        ("quartiles", "first up to 2000 characters, second from 2001"),
        ("fixed", "first up to 1999 characters, second from 2000"),
    ],
)
def test_a_direction_that_reverses_is_named(bands: str, crossing: str) -> None:
    table = length_bands_table(reversing()).filter(task="ALL", bands=bands)
    assert table["crossing"].unique().to_list() == [crossing]
    assert (table["position_bias"][0], table["position_bias"][-1]) == ("first", "second")
    assert table["p_bands_differ"].max() < 1e-9


def test_bands_are_in_the_order_of_length_and_not_of_their_names() -> None:
    pairs = [pair(f"{k:03}", len_a=13 * k, len_b=13 * k) for k in range(1, 81)]
    slots = ["first" if int(str(p["len_a"])) <= 520 else "second" for p in pairs]
    said = [("j", str(p["pair_id"]), s, s) for p, s in zip(pairs, slots, strict=True)]
    table = length_bands_table(verdicts(pairs, said)).filter(task="ALL", bands="quartiles")
    assert table["band"].to_list() == ["0-520", "521-1040", "1041-1560", "1561+"]
    assert table["crossing"].unique().to_list() == ["first up to 1040 characters, second from 1041"]


def test_a_whole_that_reverses_shows_nothing() -> None:
    assert summarize(reversing()).filter(task="ALL")["position_bias"].item() == "none detected"


def test_one_direction_has_no_crossing() -> None:
    table = length_bands_table(reversing(30))
    assert table["crossing"].null_count() == table.height
    assert table["p_bands_differ"].null_count() == table.height


@pytest.mark.parametrize("bands", ["quartiles", "fixed"])
def test_bands_add_up_to_the_summary(shared: Path, bands: str) -> None:
    settled = recorded(shared / "data/autoj").collect().lazy()
    table = length_bands_table(settled).filter(bands=bands)
    summary = summarize(settled)
    names = ["n_pairs", "n_calls", *CELLS, "n_complete"]
    sums = table.group_by("judge", "task").agg(pl.col(names).sum()).sort("judge", "task")
    expected = summary.select("judge", "task", *names).sort("judge", "task")
    assert sums.equals(expected)
    sizes = table.filter(task="ALL")["n_pairs"].to_list()
    assert bands == "fixed" or max(sizes) - min(sizes) <= 8


def test_each_band_is_a_summary_of_its_pairs() -> None:
    settled = reversing()
    inside = settled.filter(pl.col("len_a") + pl.col("len_b") < 1000)
    found = length_bands_table(settled).filter(band="0-999")
    same = ["n_pairs", "consistency_low", "lean_rate_high", "p_position", "offset", "swing_low"]
    assert found.select(same).equals(summarize(inside).select(same))
    assert tuple(found.columns) == LENGTH_BAND_COLUMNS


def test_edges_belong_to_the_band_they_begin() -> None:
    pairs = [pair(f"{k}", len_a=x, len_b=0) for k, x in enumerate((0, 999, 1000, 7999, 8000))]
    said = [("j", str(p["pair_id"]), "first", "second") for p in pairs]
    table = length_bands_table(verdicts(pairs, said)).filter(task="ALL", bands="fixed")
    counted = dict(table.select("band", "n_pairs").iter_rows())
    assert counted == {"0-999": 2, "1000-1999": 1, "4000-7999": 1, "8000+": 1}
    assert FIXED_EDGES[0] == 0


def test_equal_lengths_are_one_band() -> None:
    pairs = [pair(f"{k}", len_a=50, len_b=50) for k in range(8)]
    said = [("j", str(p["pair_id"]), "first", "first") for p in pairs]
    table = length_bands_table(verdicts(pairs, said)).filter(task="ALL", bands="quartiles")
    assert table.select("band", "n_pairs").rows() == [("0+", 8)]


def test_unknown_lengths_are_a_band_of_their_own() -> None:
    pairs = [pair("0"), pair("1", len_a=5, len_b=5)]
    said = [("j", str(p["pair_id"]), "first", "first") for p in pairs]
    table = length_bands_table(verdicts(pairs, said)).filter(task="ALL", bands="fixed")
    assert table.select("band", "n_pairs").rows() == [("0-999", 1), ("unknown", 1)]
    assert "no texts" in table.filter(band="unknown")["reason"].item()


def test_the_order_of_rows_does_not_change_a_bit() -> None:
    settled = reversing().collect()
    shuffled = settled.sample(fraction=1.0, shuffle=True, seed=3).lazy()
    assert (
        length_bands_table(settled.lazy()).write_csv() == length_bands_table(shuffled).write_csv()
    )
