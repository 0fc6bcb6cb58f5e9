from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgebias.calls import call_key, call_mask
from judgebias.journal import Row, contains, done_and_failed, done_keys, failed_tries
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot
from tests.journal.sample_rows import FINGERPRINT, row, write

OTHER = b"fingerprint-of-k"
JUDGES = {"j": FINGERPRINT, "k": OTHER}


def key_of(made: Row) -> bytes:
    mask = call_mask(bytes.fromhex(made.fingerprint), Order(made.order), made.repeat)
    return call_key(made.pair, mask)


rows_of_both = st.lists(
    st.builds(
        lambda number, order, repeat, judge, slot: row(
            number,
            order=order,
            repeat=repeat,
            judge=judge,
            fingerprint=JUDGES[judge],
            slot=slot,
        ),
        st.integers(0, 30),
        st.sampled_from(Order),
        st.integers(1, 3),
        st.sampled_from(["j", "k"]),
        st.sampled_from([*Slot, None]),
    ),
    max_size=40,
)


@settings(max_examples=40)
@given(rows_of_both)
def test_done_are_the_keys_of_calls_with_a_verdict(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), rows[:20], rows[20:])
        done = done_keys(Path(name), JUDGES)
        failed = failed_tries(Path(name), JUDGES, done)
        done_at_once, failed_at_once = done_and_failed(Path(name), JUDGES)
    assert done_at_once.tolist() == done.tolist()
    assert failed_at_once.equals(failed)
    verdicts = {key_of(made) for made in rows if made.reply.slot is not None}
    failures = {key_of(made) for made in rows if made.reply.slot is None} - verdicts
    found = [done[:, at].tobytes() for at in range(done.shape[1])]
    assert len(found) == len(set(found))
    assert set(found) == verdicts
    assert (np.diff(done[0].astype(object)) >= 0).all()
    asked = [key_of(made) for made in rows] + [bytes(16)]
    assert contains(done, b"".join(asked)).tolist() == [key in verdicts for key in asked]
    assert set(failed["key"]) == failures


def test_keys_that_share_eight_bytes_are_told_apart() -> None:
    first = np.array([3, 5, 5, 5, 9], np.uint64)
    last = np.array([1, 2, 4, 6, 1], np.uint64)
    done = np.stack([first, last])
    wanted = [(5, 6), (5, 2), (5, 3), (5, 7), (3, 1), (9, 1), (9, 2), (2, 1), (10, 1)]
    keys = np.array(wanted, np.uint64).tobytes()
    assert contains(done, keys).tolist() == [True, True, False, False, True, True] + [False] * 3


def test_nothing_is_done_in_an_empty_journal(tmp_path: Path) -> None:
    done = done_keys(tmp_path, JUDGES)
    assert done.shape == (2, 0)
    assert contains(done, bytes(32)).tolist() == [False, False]
    assert contains(done, b"").tolist() == []
    assert failed_tries(tmp_path, JUDGES, done).height == 0


def test_a_changed_judge_has_nothing_done(tmp_path: Path) -> None:
    write(tmp_path, [row(1)])
    assert done_keys(tmp_path, {"j": FINGERPRINT}).shape == (2, 1)
    assert done_keys(tmp_path, {"j": OTHER}).shape == (2, 0)
    assert done_keys(tmp_path, {"other": FINGERPRINT}).shape == (2, 0)


def test_only_newer_segments_on_request(tmp_path: Path) -> None:
    write(tmp_path, [row(1)], epoch=1)
    write(tmp_path, [row(2)], epoch=2)
    newer = done_keys(tmp_path, {"j": FINGERPRINT}, since_epoch=2)
    assert newer[:, 0].tobytes() == key_of(row(2))


def test_judges_that_would_share_verdicts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="share a fingerprint"):
        done_keys(tmp_path, {"j": FINGERPRINT, "k": FINGERPRINT})


def test_tries_add_up_over_all_starts(tmp_path: Path) -> None:
    def failure(kind: FailureKind, attempts: int, time: int) -> Row:
        return row(1, reply=Reply(failure=kind, attempts=attempts), time=time)

    twice = failure(FailureKind.SERVER, 6, 20)
    write(tmp_path, [failure(FailureKind.TIMEOUT, 5, 10)], [row(2, slot=None), row(2)], epoch=1)
    write(tmp_path, [twice], epoch=2)
    write(tmp_path, [twice], epoch=3)
    done = done_keys(tmp_path, JUDGES)
    (found,) = failed_tries(tmp_path, JUDGES, done).to_dicts()
    assert found == {
        "key": key_of(twice),
        "judge": "j",
        "task": "t",
        "pair_id": "p1",
        "repeat": 1,
        "order": "ab",
        "failure": "server",
        "attempts": 11,
    }
