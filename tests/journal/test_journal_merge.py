from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from judgebias.errors import JournalDamaged
from judgebias.journal import (
    JournalReader,
    Segment,
    merge_segments,
    read_journal,
    recover,
    salvage_journal,
)
from judgebias.journal import read as reading
from tests.journal.sample_rows import ids, row, write

ROOT = Path(__file__).resolve().parents[2]
ALL = [f"p{number}" for number in range(12)]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Four segments of three rows."""
    folder = tmp_path / "journal"
    for epoch in range(4):
        numbers = range(epoch * 3, epoch * 3 + 3)
        write(folder, [row(numbers[0]), row(numbers[1])], [row(numbers[2])], epoch=epoch)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_merge_changes_no_row(journal: Path) -> None:
    before = read_journal(journal).table
    assert merge_segments(journal, keep_below=4) == 4
    contents = read_journal(journal)
    assert contents.table.equals(before)
    assert (contents.report.segments, contents.report.frames) == (1, 1)
    assert len(names(journal)) == 1
    write(journal, [row(12)], epoch=4)
    assert merge_segments(journal, keep_below=2) == 2
    assert ids(journal) == [*ALL, "p12"]


def test_few_segments_are_left_alone(journal: Path) -> None:
    before = names(journal)
    assert merge_segments(journal, keep_below=5) == 0
    assert names(journal) == before


def test_a_merged_segment_keeps_its_epoch(journal: Path) -> None:
    merge_segments(journal, keep_below=2)
    assert read_journal(journal, since_epoch=4).table.height == 0
    assert read_journal(journal, since_epoch=3).table.height == 12


def test_a_segment_that_is_written_is_left_alone(journal: Path) -> None:
    live = Segment.create(journal, epoch=4, worker="w0")
    live.append(row(12))
    live.flush()
    assert merge_segments(journal, keep_below=2) == 4
    live.append(row(13))
    live.close()
    assert sorted(ids(journal)) == sorted([*ALL, "p12", "p13"])


def test_a_torn_segment_is_left_to_the_owner(journal: Path) -> None:
    torn = journal / "000003-w0.seg"
    torn.write_bytes(torn.read_bytes()[:-5])
    assert merge_segments(journal, keep_below=2) == 3
    assert torn.exists()
    assert sorted(ids(journal)) == sorted(ALL[:11])
    recover(journal)
    assert merge_segments(journal, keep_below=2) == 2
    assert sorted(ids(journal)) == sorted(ALL[:11])


def test_damage_stops_a_merge_before_anything_changes(journal: Path) -> None:
    path = journal / "000002-w0.seg"
    data = bytearray(path.read_bytes())
    data[-300 - len(data) // 4] ^= 1
    path.write_bytes(data)
    before = names(journal)
    with pytest.raises(JournalDamaged):
        merge_segments(journal, keep_below=2)
    assert names(journal) == before


def test_a_merge_that_does_not_read_back_replaces_nothing(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = names(journal)
    with monkeypatch.context() as patch:
        patch.setattr("judgebias.journal.merge.plain_bytes", lambda _: b"other")
        with pytest.raises(JournalDamaged, match="does not read back"):
            merge_segments(journal, keep_below=2)
    assert ids(journal) == ALL
    assert set(before) < set(names(journal))
    assert merge_segments(journal, keep_below=2) == 4
    assert (ids(journal), len(names(journal))) == (ALL, 1)


@pytest.mark.parametrize("step", ["merge:before_rename", "merge:before_delete"])
@pytest.mark.slow
def test_a_kill_during_a_merge_loses_and_doubles_nothing(journal: Path, step: str) -> None:
    code = (
        "import sys; from pathlib import Path; from judgebias.journal import merge_segments; "
        "merge_segments(Path(sys.argv[1]), keep_below=2)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(journal)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JUDGEBIAS_CRASH": step},
        check=False,
        timeout=60,
    )
    assert done.returncode == -signal.SIGKILL
    assert len(names(journal)) == 5
    assert ids(journal) == ALL
    recover(journal)
    merge_segments(journal, keep_below=2)
    assert ids(journal) == ALL
    assert len(names(journal)) == 1


def test_a_merge_takes_nothing_from_a_reader_under_way(journal: Path) -> None:
    with JournalReader(journal) as reader:
        merge_segments(journal, keep_below=2)
        found = [name for frame in reader.frames(["pair_id"]) for name in frame["pair_id"]]
    assert found == ALL


def test_a_segment_that_vanishes_after_it_was_listed_is_looked_for_again(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = reading.segment_paths(journal)
    merge_segments(journal, keep_below=2)
    real, lists = reading.segment_paths, [listed]
    monkeypatch.setattr(
        reading, "segment_paths", lambda folder: lists.pop() if lists else real(folder)
    )
    assert ids(journal) == ALL


def test_salvage_of_a_merged_segment_leaves_the_sources_that_still_lie_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, [row(1)], worker="a")
    write(tmp_path, [row(2)], worker="b")
    # The merge is killed before it deletes what it has copied.
    monkeypatch.setattr("judgebias.journal.merge._delete", lambda *_: None)
    assert merge_segments(tmp_path, keep_below=2) == 2
    monkeypatch.undo()
    (merged,) = tmp_path.glob("*-merged-*.seg")
    data = bytearray(merged.read_bytes())
    data[-5] ^= 1
    merged.write_bytes(bytes(data))
    (saved,) = salvage_journal(tmp_path)
    assert (saved.rows, saved.named) == (0, True)
    assert ids(tmp_path) == ["p1", "p2"]
    assert merge_segments(tmp_path, keep_below=100) == 0
    assert ids(tmp_path) == ["p1", "p2"]
