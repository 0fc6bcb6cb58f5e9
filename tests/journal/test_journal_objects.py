"""The journal on an object store, against a real S3 server on loopback."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from judgebias.errors import JournalDamaged
from judgebias.journal import (
    JournalCopy,
    JournalWriteError,
    Segment,
    create_segment,
    first_wins,
    journal_folder,
    objects,
    read_journal,
    recover,
    salvage_journal,
)
from judgebias.objects import ObjectStore
from tests.bucket import some_id
from tests.journal.sample_rows import ids, row, write


@pytest.fixture
def place(s3: str) -> str:
    return f"{s3}/{some_id()}/journal"


def put(place: str, *frames: list[int], epoch: int = 1, worker: str = "w0") -> Segment:
    segment = create_segment(place, epoch=epoch, worker=worker)
    for numbers in frames:
        for number in numbers:
            segment.append(row(number))
        segment.flush()
    segment.close()
    return segment


def names(place: str) -> list[str]:
    return [found.name for found in ObjectStore(place).list()]


def test_objects_put_together_are_the_segment_file(place: str, tmp_path: Path) -> None:
    put(place, [0, 1], [2], [3])
    assert names(place) == [f"000001-w0.seg/{n:08d}" for n in range(3)]
    local = write(tmp_path / "j", [row(0), row(1)], [row(2)], [row(3)])
    with journal_folder(place) as copy:
        contents = read_journal(copy)
        assert contents.table.equals(read_journal(local.parent).table)
        assert contents.report.torn_bytes == 0
        # The header differs only in what names this segment: the frames are the same bytes but
        # for its number, so they are as long.
        assert (copy / local.name).stat().st_size == pytest.approx(local.stat().st_size, abs=8)


def test_a_copy_follows_what_is_written_later(place: str, tmp_path: Path) -> None:
    put(place, [0])
    copy = JournalCopy(ObjectStore(place), tmp_path)
    copy.pull()
    segment = create_segment(place, epoch=1, worker="w1")
    for number in (1, 2):
        segment.append(row(number))
        segment.flush()
        copy.pull()
        assert ids(tmp_path) == ["p0", *(f"p{n}" for n in range(1, number + 1))]
    assert recover(tmp_path).rows == 3


def test_only_the_epochs_that_are_asked_for_are_fetched(place: str) -> None:
    put(place, [0], epoch=1)
    put(place, [1], epoch=2)
    with journal_folder(place, since_epoch=2) as copy:
        assert ids(copy) == ["p1"]


@pytest.mark.slow
def test_thousands_of_objects_are_listed_and_become_few(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A page of a listing holds 1,000.
    put(place, *([n] for n in range(700)), worker="w0")
    put(place, *([n] for n in range(700, 1200)), worker="w1")
    copy = JournalCopy(ObjectStore(place), tmp_path)
    copy.pull()
    before = read_journal(tmp_path).table
    assert before.height == 1200
    assert copy.merge() == 0, "a segment that grew lately may have a writer"
    assert len(names(place)) == 1200
    monkeypatch.setattr(objects, "CLOSED_AFTER", -timedelta(hours=1))
    assert copy.merge() == 2
    assert len(names(place)) == 1
    with journal_folder(place) as fresh:
        assert read_journal(fresh).table.equals(before)
    copy.pull()
    assert read_journal(tmp_path).table.equals(before)


@pytest.mark.slow
def test_a_merge_that_was_cut_counts_nothing_twice(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(place, *([n] for n in range(130)), worker="w0")
    put(place, *([n] for n in range(130, 260)), worker="w1")
    copy = JournalCopy(ObjectStore(place), tmp_path / "one")
    (tmp_path / "one").mkdir()
    copy.pull()
    monkeypatch.setattr(objects, "CLOSED_AFTER", -timedelta(hours=1))

    def cut(_store: ObjectStore, _names: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "remove", cut)
        patch.setattr(ObjectStore, "now", lambda _: datetime.now(UTC))
        with pytest.raises(KeyboardInterrupt):
            copy.merge()
    assert len(names(place)) == 261
    (tmp_path / "two").mkdir()
    again = JournalCopy(ObjectStore(place), tmp_path / "two")
    again.pull()
    assert sorted(ids(tmp_path / "two")) == sorted(f"p{n}" for n in range(260))
    again.merge()
    assert len(names(place)) == 1


def test_a_missing_object_is_damage_with_its_place(place: str) -> None:
    put(place, [0], [1], [2])
    store = ObjectStore(place)
    store.remove(["000001-w0.seg/00000001"])
    with (
        journal_folder(place) as folder,
        pytest.raises(JournalDamaged, match=r"w0\.seg: at byte \d+, frames are missing"),
    ):
        read_journal(folder)


@pytest.mark.parametrize("lost", [0, 1])
def test_salvage_goes_on_without_an_object_and_keeps_what_was_damaged(
    lost: int, place: str, tmp_path: Path
) -> None:
    put(place, [0], [1], [2])
    store = ObjectStore(place)
    store.remove([f"000001-w0.seg/{lost:08d}"])
    copy = JournalCopy(store, tmp_path)
    copy.pull()
    (saved,) = salvage_journal(tmp_path)
    assert saved.rows == 2
    copy.push()
    with journal_folder(place) as folder:
        assert ids(folder) == [f"p{number}" for number in range(3) if number != lost]
    left = {found.name for found in store.list()}
    assert left == {"000001-w0-salvaged.seg/00000000", "000001-w0.seg.damaged"}


def test_an_object_that_is_brought_back_is_read_in_its_place(place: str, tmp_path: Path) -> None:
    put(place, [0], [1], [2])
    store = ObjectStore(place)
    data = store.read("000001-w0.seg/00000001")
    store.remove(["000001-w0.seg/00000001"])
    copy = JournalCopy(store, tmp_path)
    copy.pull()
    store.write_new("000001-w0.seg/00000001", data)
    copy.pull()
    assert ids(tmp_path) == ["p0", "p1", "p2"]


def test_a_write_without_an_answer_is_written_again_and_counts_once(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = create_segment(place, epoch=1, worker="w0")
    segment.append(row(0))
    segment.flush()
    real = ObjectStore.write_new

    def answer_lost(store: ObjectStore, name: str, data: bytes) -> str:
        real(store, name, data)
        raise OSError("no answer")

    segment.append(row(1))
    with monkeypatch.context() as patch:
        patch.setattr(ObjectStore, "write_new", answer_lost)
        with pytest.raises(JournalWriteError, match="no answer"):
            segment.flush()
    assert segment.buffered == 1
    segment.append(row(2))
    assert segment.flush() == 2
    with journal_folder(place) as copy:
        table = read_journal(copy).table
    assert sorted(table["pair_id"]) == ["p0", "p1", "p1", "p2"]
    assert first_wins(table)[0].height == 3


def test_no_object_is_ever_written_over(place: str) -> None:
    put(place, [0])
    with pytest.raises(JournalWriteError, match="exists"):
        put(place, [1])
    with journal_folder(place) as copy:
        assert ids(copy) == ["p0"]


def test_the_same_bytes_again_are_no_conflict(place: str) -> None:
    store = ObjectStore(place)
    assert store.write_new("a", b"1") == store.write_new("a", b"1")
    with pytest.raises(FileExistsError):
        store.write_new("a", b"2")
