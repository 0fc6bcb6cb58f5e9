from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from judgebias.calls import Call, Pair
from judgebias.errors import Stopped, UsageError
from judgebias.journal import JournalWriteError, Segment, read_journal, recover, row_of
from judgebias.replies import FailureKind, Reply, Usage
from judgebias.verdicts import Order, Slot
from tests.journal.sample_rows import ids, row, write

ROOT = Path(__file__).resolve().parents[2]

PRELUDE = """
import os, signal, sys
from pathlib import Path
from tests.journal.sample_rows import row, write
from judgebias.journal import JournalWriteError, Segment, merge_segments
from judgebias.replies import Reply
from judgebias.verdicts import Slot
folder = Path(sys.argv[1])
"""


def run(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRELUDE + code, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


FULL = Reply(
    failure=FailureKind.INVALID,
    message="two verdicts",
    raw="Zürich 判定\n\x00 end",
    p_first=0.25,
    p_second=0.5,
    p_tie=0.25,
    usage=Usage(input_tokens=5, output_tokens=6, cached_tokens=0, reasoning_tokens=2),
    cost_usd=0.125,
    attempts=3,
    latency_ms=12.5,
    model="m-1",
    request_id="req_1",
)


def test_every_field_comes_back(tmp_path: Path) -> None:
    pair = Pair(pair_id="007", question="q", answer_a="a", answer_b="b", task="sums")
    call = Call(pair=pair, order=Order.BA, repeat=2)
    made = row_of(call, FULL, digest=pair.digest(), judge="j", fingerprint="ab")
    write(tmp_path, [made])
    (found,) = read_journal(tmp_path).table.to_dicts()
    usage = FULL.usage
    assert found.pop("time").timestamp() == pytest.approx(made.time / 1e6)
    assert found == {
        "pair": pair.digest(),
        "judge": "j",
        "fingerprint": "ab",
        "task": "sums",
        "pair_id": "007",
        "repeat": 2,
        "order": "ba",
        "slot": None,
        "failure": "invalid",
        "message": FULL.message,
        "raw": FULL.raw,
        "p_first": 0.25,
        "p_second": 0.5,
        "p_tie": 0.25,
        "cost_usd": 0.125,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": 0,
        "reasoning_tokens": 2,
        "attempts": 3,
        "latency_ms": 12.5,
        "model": "m-1",
        "request_id": "req_1",
        "worker": "w0",
    }


def test_unknown_stays_unknown(tmp_path: Path) -> None:
    write(tmp_path, [row(1, reply=Reply(slot=Slot.TIE))])
    (found,) = read_journal(tmp_path).table.to_dicts()
    known = {name for name, value in found.items() if value is not None}
    assert known == {
        "pair", "judge", "fingerprint", "task", "pair_id", "repeat", "order", "time", "slot",
        "attempts", "worker",
    }  # fmt: skip


def test_flush_counts_what_it_made_durable(tmp_path: Path) -> None:
    segment = Segment.create(tmp_path, epoch=1, worker="w0")
    for number in range(10_000):
        segment.append(row(number))
    assert (segment.buffered, segment.durable) == (10_000, 0)
    assert segment.flush() == 10_000
    assert segment.flush() == 0
    assert (segment.buffered, segment.durable) == (0, 10_000)
    segment.close()
    report = read_journal(tmp_path).report
    assert (report.frames, report.rows) == (2, 10_000)


def test_columns_can_be_left_out(tmp_path: Path) -> None:
    write(tmp_path, [row(1)])
    assert read_journal(tmp_path, columns=["slot", "judge"]).table.columns == ["slot", "judge"]


def test_an_empty_journal_has_all_columns_and_no_row(tmp_path: Path) -> None:
    table = read_journal(tmp_path).table
    assert (table.height, table.width) == (0, 25)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no journal here"):
        read_journal(tmp_path / "nothing")


def test_one_odd_value_does_not_hold_the_others_back(tmp_path: Path) -> None:
    odd = Reply(slot=Slot.TIE, raw="cut \ud800 off", usage=Usage(input_tokens=10**30), cost_usd=1)
    write(tmp_path, [row(1), row(2, reply=odd), row(3)])
    table = read_journal(tmp_path).table
    assert table["pair_id"].to_list() == ["p1", "p2", "p3"]
    assert table["raw"].to_list() == [None, r"cut \ud800 off", None]
    assert table["input_tokens"].to_list() == [1, None, 3]


def test_a_digest_of_another_length_is_refused_at_once(tmp_path: Path) -> None:
    segment = Segment.create(tmp_path, epoch=1, worker="w0")
    with pytest.raises(ValueError, match="16 bytes, got 3"):
        segment.append(row(1)._replace(pair=b"abc"))
    assert segment.buffered == 0
    segment.close()


def test_two_segments_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    write(tmp_path, [row(3)], [row(4)], epoch=10)
    write(tmp_path, [row(1), row(2)], epoch=9)
    assert ids(tmp_path) == ["p1", "p2", "p3", "p4"]
    report = read_journal(tmp_path).report
    assert (report.segments, report.frames, report.rows, report.torn_bytes) == (2, 3, 4, 0)
    assert read_journal(tmp_path, since_epoch=10).table["pair_id"].to_list() == ["p3", "p4"]


def test_a_segment_has_one_writer(tmp_path: Path) -> None:
    segment = Segment.create(tmp_path, epoch=1, worker="w0")
    with pytest.raises(UsageError, match="already has a segment of epoch 1"):
        Segment.create(tmp_path, epoch=1, worker="w0")
    with pytest.raises(UsageError, match="still writes"):
        recover(tmp_path, wait_s=0)
    segment.close()
    assert recover(tmp_path, wait_s=0).segments == 1


def test_only_the_owner_of_the_files_reads_them(tmp_path: Path) -> None:
    path = write(tmp_path, [row(1)])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("worker", ["", "a/b", "..\0", "ä"])
def test_a_workers_name_is_a_part_of_a_file_name(tmp_path: Path, worker: str) -> None:
    with pytest.raises(ValueError, match="part of a file name"):
        Segment.create(tmp_path, epoch=1, worker=worker)


def test_a_full_disk_loses_nothing_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = Segment.create(tmp_path, epoch=1, worker="w0")
    segment.append(row(1))
    segment.flush()
    good = segment.path.stat().st_size
    real = os.write

    def half(file: int, data: bytes) -> int:
        if len(data) < 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data[: len(data) // 2])

    segment.append(row(2))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(JournalWriteError, match="No space left") as caught:
            segment.flush()
    assert isinstance(caught.value, Stopped)
    assert caught.value.exit_code == 4
    assert segment.path.stat().st_size == good
    segment.append(row(3))
    assert segment.buffered == 2
    assert segment.flush() == 2
    segment.close()
    assert ids(tmp_path) == ["p1", "p2", "p3"]
    assert len(list(tmp_path.iterdir())) == 1


def test_after_a_failed_sync_the_file_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = Segment.create(tmp_path, epoch=1, worker="w0")
    segment.append(row(1))
    segment.flush()
    first = segment.path
    segment.append(row(2))

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        for _ in range(2):
            with pytest.raises(JournalWriteError, match="Input/output error"):
                segment.flush()
    assert (segment.buffered, segment.durable) == (1, 1)
    assert segment.flush() == 1
    assert segment.path != first
    segment.close()
    assert ids(tmp_path) == ["p1", "p2"]


@pytest.mark.slow
def test_a_limit_on_file_size_stops_with_everything_kept(tmp_path: Path) -> None:
    done = run(
        """
import resource
segment = Segment.create(folder, epoch=1, worker="w0")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, hard))
failures = 0
for number in range(40):
    reply = Reply(slot=Slot.FIRST, raw=os.urandom(500).hex())
    segment.append(row(number, reply=reply))
    try:
        segment.flush()
    except JournalWriteError:
        failures += 1
assert segment.buffered + segment.durable == 40, "lost in memory"
assert failures and segment.durable, (failures, segment.durable)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
segment.close()
print(failures)
""",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert ids(tmp_path) == [f"p{number}" for number in range(40)]
    assert read_journal(tmp_path).report.torn_bytes == 0


@pytest.mark.parametrize(
    ("step", "survive"),
    [("", 2), ("flush:before_write", 2), ("flush:before_fsync", 3)],
)
@pytest.mark.slow
def test_kill_loses_only_what_was_never_flushed(tmp_path: Path, step: str, survive: int) -> None:
    done = run(
        """
segment = Segment.create(folder, epoch=1, worker="w0")
segment.append(row(0)); segment.append(row(1))
step = os.environ.pop("JUDGEBIAS_CRASH")
segment.flush()
os.environ["JUDGEBIAS_CRASH"] = step
segment.append(row(2))
if not step:
    os.kill(os.getpid(), signal.SIGKILL)
segment.flush()
print("survived")
""",
        tmp_path,
        JUDGEBIAS_CRASH=step,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    recover(tmp_path, wait_s=5)
    # A process that dies between write and sync has handed the frame to the system already.
    assert ids(tmp_path) == [f"p{number}" for number in range(survive)]


def test_small_frames_are_small(tmp_path: Path) -> None:
    one = write(tmp_path, [], worker="w0").stat().st_size
    sizes = {
        count: write(tmp_path, [row(n) for n in range(count)], worker=f"n{count}").stat().st_size
        - one
        for count in (1, 10, 1000)
    }
    assert sizes[1] < 700
    assert sizes[10] < 1500
    assert sizes[1000] < 60_000
