"""Replies with numbers for pairs, against the journal's own table."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from judgebias.cli.replies import CARRIED, AskedPairs, Replies, read_replies
from judgebias.journal import Row, first_wins, read_journal
from judgebias.replies import FailureKind, Reply, Usage
from judgebias.verdicts import Order, Slot
from tests.journal import sample_rows
from tests.journal.sample_rows import FINGERPRINT, row, write


def digest(number: int) -> bytes:
    return sample_rows.digest(f"p{number}")


ALIKE = [digest(3)[:8] + bytes([n]) * 8 for n in range(3)]
"""Digests whose first words are equal, as they never are by chance."""


TYPES = {"pair": pl.Binary, "pair_id": pl.Int64, "identical": pl.Boolean}


def asked(pairs: dict[bytes, tuple[bool, bool]]) -> pl.DataFrame:
    columns: dict[str, object] = {
        "pair": list(pairs),
        "pair_id": [10 * n for n in range(len(pairs))],
        "task": [f"task-{n}" for n in range(len(pairs))],
        "identical": [False] * len(pairs),
        "expects_ab": [ab for ab, _ in pairs.values()],
        "expects_ba": [ba for _, ba in pairs.values()],
    }
    return pl.DataFrame(columns, schema_overrides=TYPES)


def read(folder: Path, pairs: dict[bytes, tuple[bool, bool]], *, repeats: int = 1) -> Replies:
    return read_replies(
        folder,
        AskedPairs.of(asked(pairs)),
        judge="j",
        fingerprint=FINGERPRINT.hex(),
        repeats=repeats,
        strange=True,
    )


def a_try(pair: int, time: int, slot: Slot | None, **how: object) -> Row:
    failure = None if slot else FailureKind.SERVER
    reply = Reply(slot=slot, failure=failure, attempts=2, request_id=f"r{time}")
    return row(pair, time=time, reply=reply, **how)  # pyright: ignore[reportArgumentType]


def test_only_what_the_design_asks_of_the_judge_is_kept(tmp_path: Path) -> None:
    rows = [
        a_try(1, 1, Slot.FIRST),
        a_try(1, 2, Slot.TIE, order=Order.BA),
        a_try(2, 3, Slot.TIE),
        a_try(2, 4, Slot.SECOND, order=Order.BA),
        a_try(3, 5, Slot.FIRST),
        a_try(1, 6, Slot.FIRST, judge="k"),
        a_try(1, 7, Slot.FIRST, fingerprint=b"another-judge-j0"),
        a_try(1, 8, Slot.FIRST, repeat=2),
    ]
    write(tmp_path, rows)
    found = read(tmp_path, {digest(2): (False, True), digest(1): (True, True)})
    kept = found.ended.select("judge", "task", "pair_id", "order", "slot").rows()
    assert kept == [
        ("j", "task-1", 10, "ab", "first"),
        ("j", "task-1", 10, "ba", "tie"),
        ("j", "task-0", 0, "ba", "second"),
    ]
    assert found.extra.is_empty()
    assert found.strange["request_id"].to_list() == ["r5"]


def test_digests_whose_first_words_are_equal_are_told_apart(tmp_path: Path) -> None:
    rows = [row(n, time=n)._replace(pair=ALIKE[n]) for n in (1, 2, 0)]
    write(tmp_path, rows)
    known = {ALIKE[2]: (True, True), digest(9): (True, True), ALIKE[1]: (True, True)}
    found = read(tmp_path, known)
    assert found.ended["pair_id"].to_list() == [20, 0]
    assert found.strange["pair"].to_list() == [ALIKE[0]]


def test_a_design_without_pairs_and_a_journal_without_replies(tmp_path: Path) -> None:
    write(tmp_path, [a_try(1, 1, Slot.FIRST)])
    found = read(tmp_path, {})
    assert found.ended.is_empty()
    assert found.strange.height == 1
    nobody = read_replies(
        tmp_path,
        AskedPairs.of(asked({digest(1): (True, True)})),
        judge="x",
        fingerprint=FINGERPRINT.hex(),
        repeats=1,
        strange=True,
    )
    assert nobody.ended.is_empty()
    assert dict(nobody.ended.select(*CARRIED).schema) == CARRIED
    assert nobody.strange.is_empty()


TRIES = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.integers(0, 5),
        st.sampled_from([None, *Slot]),
        st.sampled_from(Order),
        st.integers(1, 2),
    ),
    max_size=20,
)


@given(TRIES)
def test_calls_and_spend_are_those_of_the_whole_table(
    tmp_path_factory: object, tries: list[tuple[int, int, Slot | None, Order, int]]
) -> None:
    folder = tmp_path_factory.mktemp("journal")  # type: ignore[attr-defined]
    rows = [a_try(p, t, slot, order=o, repeat=r) for p, t, slot, o, r in tries]
    write(folder, rows)
    found = read(folder, {digest(pair): (True, True) for pair in (1, 2, 3)}, repeats=2)
    calls, extra = first_wins(read_journal(folder).table)
    for ours, theirs in ((found.ended, calls), (found.extra, extra)):
        numbers = [10 * (n - 1) for d in theirs["pair"] for n in (1, 2, 3) if digest(n) == d]
        expected = theirs.with_columns(pair_id=pl.Series(numbers, dtype=pl.Int64))
        key = ["pair_id", "repeat", "order", "time"]
        columns = [*key, "slot", "attempts", "failure"]
        assert ours.select(pl.col(columns).cast(pl.String)).sort(key).rows() == (
            expected.select(pl.col(columns).cast(pl.String)).sort(key).rows()
        )


def test_what_a_reply_cost_is_carried(tmp_path: Path) -> None:
    usage = Usage(input_tokens=5, output_tokens=7, cached_tokens=None, reasoning_tokens=None)
    reply = Reply(slot=Slot.FIRST, usage=usage, cost_usd=0.25, model="m")
    write(tmp_path, [row(1, time=1, reply=reply)])
    found = read(tmp_path, {digest(1): (True, True)}).ended
    assert found.select("input_tokens", "output_tokens", "cached_tokens", "cost_usd").row(0) == (
        5,
        7,
        None,
        0.25,
    )
    assert found["model"].to_list() == ["m"]
