from __future__ import annotations

import json
from hashlib import blake2b
from math import isclose
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgebias.biases.length import LENGTH_COLUMNS, length_table
from judgebias.records import join_pairs, read_records
from judgebias.summary import settle_calls
from tests.biases.judged_world import pair, verdicts, winner

TOLERANCE = 1e-6
OTHER_NAMES = {"n": "n_slope", "lc_low": "lc_win_rate_a_low", "lc_high": "lc_win_rate_a_high"}
SETS = ["autoj", "faireval", "prd_vicuna80"]


def recorded(folder: Path) -> pl.LazyFrame:
    """Settle recorded verdicts, with models, lengths and questions from the pairs."""
    lines = (folder / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    kept = ("task", "pair_id", "model_a", "model_b", "gold")
    pairs = pl.DataFrame(
        [
            {name: row.get(name) for name in kept}
            | {
                "question_id": blake2b(row["question"].encode(), digest_size=16).hexdigest(),
                "len_a": len(row["answer_a"]),
                "len_b": len(row["answer_b"]),
            }
            for row in map(json.loads, lines)
        ],
        schema_overrides={"gold": pl.String},
        infer_schema_length=None,
    )
    records = join_pairs(read_records([folder / "verdicts.jsonl"]), pairs)
    return settle_calls(records.calls.lazy(), records.pairs.lazy())


def golden(shared: Path) -> list[dict[str, Any]]:
    text = (shared / "golden/length.json").read_text(encoding="utf-8")
    return json.loads(text)["cases"]


@pytest.mark.parametrize("folder", SETS)
@pytest.mark.slow
def test_the_table_has_every_known_figure(shared: Path, folder: str) -> None:
    table = length_table(recorded(shared / "data" / folder))
    rows = {row["judge"]: row for row in table.filter(task="ALL").iter_rows(named=True)}
    cases = [case for case in golden(shared) if case["set"] == folder]
    assert cases
    for case in cases:
        for name in case.keys() - {"set", "judge"}:
            ours = rows[case["judge"]][OTHER_NAMES.get(name, name)]
            assert isclose(ours, case[name], rel_tol=TOLERANCE), (case["judge"], name)


def test_no_known_set_is_left_out(shared: Path) -> None:
    assert sorted({case["set"] for case in golden(shared)}) == SETS


def by_length(n: int, **about: object) -> list[dict[str, object]]:
    """Make pairs of which A is longer in every other one."""
    lengths = [(200 + 10 * k, 100) if k % 2 else (100, 200 + 10 * k) for k in range(n)]
    return [
        pair(f"{k:02}", len_a=len_a, len_b=len_b, **about)
        for k, (len_a, len_b) in enumerate(lengths)
    ]


def longest(pairs: list[dict[str, object]]) -> list[str]:
    return ["A" if int(str(p["len_a"])) > int(str(p["len_b"])) else "B" for p in pairs]


def whole(table: pl.DataFrame) -> dict[str, Any]:
    return table.filter(task="ALL").row(0, named=True)


def test_a_judge_that_only_measures_is_separated_and_flagged() -> None:
    pairs = [p | {"gold": "AB"[k // 2 % 2]} for k, p in enumerate(by_length(20))]
    said = [
        ("j", str(p["pair_id"]), *winner(w)) for p, w in zip(pairs, longest(pairs), strict=True)
    ]
    row = whole(length_table(verdicts(pairs, said)))
    assert (row["prefers_longer"], row["prefers_longer_of"]) == (20, 20)
    assert row["prefers_longer_p"] == 2 / 2**20
    assert row["slope"] is row["slope_high"] is row["call_slope"] is row["mcfadden_r2"] is None
    assert "slope: separated" in row["reason"]
    assert (row["judge_picks_longer"], row["gold_picks_longer"]) == (1.0, 0.5)
    assert row["length_bias"] == "longer"


def test_without_gold_there_is_a_preference_and_no_bias() -> None:
    pairs = by_length(20)
    said = [
        ("j", str(p["pair_id"]), *winner(w)) for p, w in zip(pairs, longest(pairs), strict=True)
    ]
    row = whole(length_table(verdicts(pairs, said)))
    assert row["prefers_longer_rate"] == 1.0
    assert row["length_bias"] == "not available"
    assert "a preference and not a bias" in row["reason"]
    assert row["excess"] is None


def test_lengths_within_a_tenth_match() -> None:
    lengths = [(110, 100), (100, 110), (111, 100), (0, 0), (1, 0)]
    pairs = [pair(f"{k}", len_a=a, len_b=b) for k, (a, b) in enumerate(lengths)]
    said = [("j", str(p["pair_id"]), *winner("A")) for p in pairs]
    row = whole(length_table(verdicts(pairs, said)))
    assert (row["n_matched"], row["win_rate_a_matched"]) == (3, 1.0)
    assert row["win_rate_a_matched_low"] is None
    assert (row["mean_len_a"], row["mean_len_b"]) == (322 / 5, 310 / 5)


@pytest.mark.parametrize(
    ("pairs", "said", "reason"),
    [
        (by_length(3), [("j", "00", "failed", "first")], "no complete pair"),
        (by_length(3), [("j", "00", "first", None)], "no complete pair"),
        ([pair("1")], [("j", "1", "first", "second")], "lengths are not known"),
    ],
)
def test_nothing_to_count_is_not_available(pairs: Any, said: Any, reason: str) -> None:
    table = length_table(verdicts(pairs, said))
    assert table["task"].to_list() == ["t", "ALL"]
    for row in table.iter_rows(named=True):
        assert row["length_bias"] == "not available"
        assert reason in row["reason"]
        assert row["slope"] is row["win_rate_a"] is row["mean_len_a"] is None


def test_pairs_of_unknown_lengths_are_counted_and_left_out() -> None:
    pairs = [*by_length(8), pair("x")]
    said = [("j", str(p["pair_id"]), *winner("AB"[k % 2])) for k, p in enumerate(pairs)]
    row = whole(length_table(verdicts(pairs, said)))
    assert (row["n_complete"], row["n_with_lengths"]) == (9, 8)
    assert row["reason"].startswith("1 pairs of unknown lengths are left out")


@pytest.mark.slow
def test_the_order_of_rows_does_not_change_a_bit(shared: Path) -> None:
    settled = recorded(shared / "data/faireval").collect()
    table = length_table(settled.lazy())
    shuffled = length_table(settled.sample(fraction=1.0, shuffle=True, seed=3).lazy())
    assert table.write_csv() == shuffled.write_csv()
    assert tuple(table.columns) == LENGTH_COLUMNS
