from __future__ import annotations

import random
import tempfile
from collections import defaultdict
from itertools import product
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.errors import UsageError
from judgebias.journal import (
    CALL_COLUMNS,
    Row,
    extra_spend,
    first_wins,
    read_journal,
    write_calls,
)
from judgebias.replies import FailureKind, Reply, Usage
from judgebias.verdicts import Order, Slot
from tests.journal.sample_rows import digest, row, write

KEY = ("judge", "fingerprint", "task", "pair_id", "repeat", "order", "pair")


def a_try(time: int, slot: Slot | None, *, pair: int = 1, attempts: int = 1, **how: object) -> Row:
    failure = None if slot else FailureKind.SERVER
    reply = Reply(slot=slot, failure=failure, attempts=attempts, request_id=f"r{time}", **how)  # pyright: ignore[reportArgumentType]
    return row(pair, time=time, reply=reply)


def settled(folder: Path) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    calls, extra = first_wins(read_journal(folder).table)
    return calls.to_dicts(), extra.to_dicts()


def test_the_first_verdict_wins_whatever_its_place(tmp_path: Path) -> None:
    write(tmp_path, [a_try(5, Slot.SECOND, attempts=2), a_try(1, None, attempts=3)])
    write(tmp_path, [a_try(4, Slot.TIE), a_try(9, None)], epoch=2)
    calls, extra = settled(tmp_path)
    assert [(call["slot"], call["request_id"], call["attempts"]) for call in calls] == [
        ("tie", "r4", 7)
    ]
    assert [each["request_id"] for each in extra] == ["r5", "r1", "r9"]


def test_without_a_verdict_the_last_failure_stays(tmp_path: Path) -> None:
    write(tmp_path, [a_try(8, None, attempts=2)], [a_try(3, None, attempts=2)])
    calls, extra = settled(tmp_path)
    assert [(call["request_id"], call["attempts"]) for call in calls] == [("r8", 4)]
    assert [each["request_id"] for each in extra] == ["r3"]


def test_equal_times_are_settled_by_worker(tmp_path: Path) -> None:
    write(tmp_path, [a_try(5, Slot.SECOND)], worker="w2", epoch=1)
    write(tmp_path, [a_try(5, Slot.FIRST)], worker="w1", epoch=2)
    calls, _ = settled(tmp_path)
    assert [call["slot"] for call in calls] == ["first"]


def test_a_row_that_lies_in_two_segments_counts_once(tmp_path: Path) -> None:
    same = a_try(5, Slot.FIRST, attempts=2)
    write(tmp_path, [same], epoch=1)
    write(tmp_path, [same], epoch=2)
    calls, extra = settled(tmp_path)
    assert [call["attempts"] for call in calls] == [2]
    assert extra == []


@pytest.mark.parametrize(
    "other",
    [
        row(1, order=Order.BA),
        row(1, repeat=2),
        row(1, judge="k"),
        row(1, fingerprint=b"another"),
        row(1)._replace(pair=digest("edited")),
    ],
)
def test_another_call_is_another_row(tmp_path: Path, other: Row) -> None:
    write(tmp_path, [row(1), other])
    calls, extra = settled(tmp_path)
    assert (len(calls), len(extra)) == (2, 0)


def test_extra_spend_adds_what_is_known_and_counts_what_is_not(tmp_path: Path) -> None:
    usage = Usage(input_tokens=10, output_tokens=2)
    write(
        tmp_path,
        [
            a_try(1, Slot.TIE, cost_usd=1.0),
            a_try(2, Slot.TIE, cost_usd=0.25, usage=usage),
            a_try(3, Slot.FIRST, usage=usage),
            a_try(4, None, cost_usd=0.5),
        ],
    )
    _, extra = first_wins(read_journal(tmp_path).table)
    (spend,) = extra_spend(extra).to_dicts()
    assert spend == {
        "judge": "j",
        "n_verdicts": 2,
        "n_failures": 1,
        "n_unpriced": 1,
        "cost_usd": 0.75,
        "input_tokens": 20,
        "output_tokens": 4,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
    }


tries = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(Order),
        st.integers(0, 4),
        st.sampled_from([*Slot, None]),
        st.integers(1, 4),
        st.sampled_from(["r1", "r2", None]),
    ),
    max_size=25,
)


def by_hand(table: pl.DataFrame) -> dict[tuple[object, ...], tuple[object, ...]]:
    groups: dict[tuple[object, ...], list[dict[str, object]]] = defaultdict(list)
    seen: set[tuple[object, ...]] = set()
    names = (*KEY, "time", "worker", "request_id", "slot", "failure", "attempts")
    for place, each in enumerate(table.to_dicts()):
        name = tuple(each[column] for column in names)
        if name not in seen:
            seen.add(name)
            groups[tuple(each[column] for column in KEY)].append({**each, "place": place})
    answers: dict[tuple[object, ...], tuple[object, ...]] = {}
    for key, found in groups.items():
        found.sort(key=lambda r: (r["time"], r["request_id"] or "", r["place"]))
        verdicts = [each for each in found if each["slot"] is not None]
        won = verdicts[0] if verdicts else found[-1]
        attempts = sum(int(str(each["attempts"])) for each in found)
        answers[key] = (won["time"], won["request_id"], won["slot"], attempts, len(found))
    return answers


@settings(max_examples=60)
@given(tries, st.randoms(use_true_random=False))
def test_laws_of_the_first_verdict(made: list[tuple], chance: random.Random) -> None:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    rows = [
        row(
            pair,
            order=order,
            time=time,
            reply=Reply(
                slot=slot,
                failure=None if slot else FailureKind.SERVER,
                attempts=attempts,
                request_id=request,
            ),
        )
        for pair, order, time, slot, attempts, request in made
    ]
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), rows)
        table = read_journal(Path(name)).table
    calls, extra = first_wins(table)
    expected = by_hand(table)
    found = {
        tuple(call[column] for column in KEY): (
            call["time"],
            call["request_id"],
            call["slot"],
            call["attempts"],
        )
        for call in calls.to_dicts()
    }
    assert found == {key: answer[:4] for key, answer in expected.items()}
    assert len(found) == calls.height
    assert calls.height + extra.height == sum(answer[4] for answer in expected.values())
    # Where no two tries tie, the order of the journal means nothing.
    if len({(r.pair, r.order, r.time, r.reply.request_id) for r in rows}) == len(rows):
        mixed = table.sample(fraction=1, shuffle=True, seed=chance.randrange(1000))
        again, _ = first_wins(mixed)
        assert again.sort(KEY).equals(calls.sort(KEY))


def test_calls_parquet_has_the_promised_columns_in_their_order(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    every = product((10, 9), (Order.BA, Order.AB), (2, 1), ("k", "Z"))
    made = [row(n, order=order, repeat=repeat, judge=judge) for n, order, repeat, judge in every]
    write(journal, made)
    out = tmp_path / "calls.parquet"
    assert write_calls(journal, out) == 16
    table = pl.read_parquet(out)
    assert table.columns == list(CALL_COLUMNS)
    keys = table.select("judge", "task", "pair_id", "repeat", "order").rows()
    assert keys == sorted(keys)
    assert table["judge"].dtype == table["slot"].dtype == table["order"].dtype == pl.String
    assert table["time"].dtype == pl.Datetime("us", "UTC")
    assert [path.name for path in tmp_path.iterdir() if path != journal] == ["calls.parquet"]


def test_calls_of_pairs_that_left_the_input_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, [row(1), row(2)])
    out = tmp_path / "calls.parquet"
    assert (
        write_calls(tmp_path, out, choose=lambda _, rows: rows.filter(pl.col("pair_id") == "p2"))
        == 1
    )
    assert pl.read_parquet(out)["pair_id"].to_list() == ["p2"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal"
    write(journal, [row(1)])
    out = tmp_path / "calls.parquet"
    out.write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(UsageError, match="No space"):
        write_calls(journal, out)
    assert out.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"journal", "calls.parquet"}


def test_a_file_of_many_parts_is_the_file_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder's name is no pattern.
    folder = tmp_path / "run[1]"
    journal, whole, parts = (folder / name for name in ("journal", "whole", "parts"))
    chance = random.Random(7)
    rows = [
        row(pair, order=order, repeat=repeat, judge=judge, time=chance.randrange(10**6))
        for pair, order, repeat, judge in product(range(40), Order, (1, 2), ("k", "z"))
    ]
    # Some calls were tried before, and failed.
    failed = Reply(failure=FailureKind.SERVER, attempts=2)
    tries = [made._replace(reply=failed, time=0) for made in chance.sample(rows, 30)]
    both = chance.sample([*rows, *tries], len(rows) + len(tries))
    write(journal, *(both[start : start + 37] for start in range(0, len(both), 37)))
    assert write_calls(journal, whole) == len(rows)
    monkeypatch.setattr("judgebias.journal.calls_file.PART_ROWS", 11)
    assert write_calls(journal, parts) == len(rows)
    table = pl.read_parquet(whole, glob=False)
    assert pl.read_parquet(parts, glob=False).equals(table)
    keys = table.select(CALL_COLUMNS[:5]).rows()
    assert keys == sorted(keys)
    assert table["attempts"].sum() == len(rows) + 2 * len(tries)
    assert table["failure"].null_count() == len(rows)
    names = {path.name for path in folder.iterdir()}
    assert names == {"journal", "whole", "parts"}
