from __future__ import annotations

import os
import struct
from pathlib import Path
from zlib import crc32

import pytest

from judgebias.errors import JournalDamaged, UsageError
from judgebias.journal import JournalReader, read_journal, recover, salvage
from judgebias.journal.frame import Frame
from judgebias.journal.read import OpenSegment
from tests.journal.sample_rows import ids, row, write


def frames_of(path: Path) -> list[tuple[int, int]]:
    segment = OpenSegment.open(path)
    found = [(p.offset, p.end) for p in segment.pieces() if isinstance(p, Frame)]
    segment.close()
    return found


@pytest.fixture
def three(tmp_path: Path) -> tuple[Path, bytes, list[tuple[int, int]]]:
    """A segment of three frames, its bytes and where the frames lie."""
    path = write(tmp_path / "journal", [row(1)], [row(2), row(3)], [row(4)])
    return path, path.read_bytes(), frames_of(path)


Three = tuple[Path, bytes, list[tuple[int, int]]]


@pytest.mark.slow
def test_a_tail_torn_at_any_byte_is_ignored_by_readers_and_cut_by_the_owner(
    three: Three,
) -> None:
    path, data, frames = three
    start, end = frames[-1]
    for cut in range(start + 1, end):
        path.write_bytes(data[:cut])
        contents = read_journal(path.parent)
        assert contents.table["pair_id"].to_list() == ["p1", "p2", "p3"]
        assert contents.report.torn_bytes == cut - start
        assert path.stat().st_size == cut
        done = recover(path.parent)
        assert (done.torn_bytes, done.torn_segments, done.rows) == (cut - start, 1, 3)
        assert path.read_bytes() == data[:start]
        assert path.with_name(path.name + ".torn").read_bytes() == data[start:cut]
    assert recover(path.parent).torn_bytes == 0


def test_rows_are_counted_by_headers_as_far_as_frames_are_whole(three: Three) -> None:
    path, data, frames = three
    for cut, rows in ((len(data), 4), (frames[2][1] - 1, 3), (frames[1][0] + 5, 1), (10, 0)):
        path.write_bytes(data[:cut])
        with JournalReader(path.parent) as journal:
            assert sum(journal.count().values()) == rows


def test_what_a_killed_writer_did_not_sync_is_synced_before_it_counts(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.fstat(file).st_ino))
    assert recover(three[0].parent).rows == 4
    assert three[0].stat().st_ino in synced


def test_a_start_torn_at_any_byte_is_an_empty_segment(three: Three) -> None:
    path, data, frames = three
    start = frames[0][0]
    for cut in range(start):
        path.write_bytes(data[:cut])
        contents = read_journal(path.parent)
        assert (contents.table.height, contents.report.torn_bytes) == (0, cut)
    assert recover(path.parent).torn_bytes == start - 1
    assert path.stat().st_size == 0


@pytest.mark.slow
def test_a_flipped_bit_in_any_byte_of_a_middle_frame_is_found(three: Three) -> None:
    path, data, frames = three
    start, end = frames[1]
    for at in range(start, end):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        with pytest.raises(JournalDamaged, match=f"at byte {start}, {end - start} bytes fail"):
            read_journal(path.parent)
        with pytest.raises(JournalDamaged, match=f"at byte {start}"):
            recover(path.parent)
        assert path.read_bytes() == flipped


def test_a_flipped_bit_in_any_byte_of_the_start_is_never_read_past(three: Three) -> None:
    path, data, frames = three
    for at in range(frames[0][0]):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        with pytest.raises((JournalDamaged, UsageError)):
            read_journal(path.parent)


@pytest.mark.slow
def test_a_flipped_bit_in_the_last_frame_is_damage_and_cuts_nothing(three: Three) -> None:
    path, data, frames = three
    start, end = frames[2]
    for at in range(start, end):
        flipped = bytearray(data)
        flipped[at] ^= 1 << (at % 8)
        path.write_bytes(flipped)
        with pytest.raises(JournalDamaged, match=f"at byte {start}, {end - start} bytes fail"):
            read_journal(path.parent)
        with pytest.raises(JournalDamaged, match=f"at byte {start}"):
            recover(path.parent)
        assert path.read_bytes() == flipped


def test_sectors_of_zeros_in_the_last_frame_are_a_torn_tail(tmp_path: Path) -> None:
    # What a machine without power leaves of a write: some of its sectors, in any order.
    many = [row(number) for number in range(400)]
    path = write(tmp_path / "journal", [row(1000)], many)
    data, (start, end) = path.read_bytes(), frames_of(path)[1]
    assert end - start > 4 * 512
    for first in range(-(-start // 512) * 512, end, 512):
        lost = min(512, end - first)
        path.write_bytes(data[:first] + bytes(lost) + data[first + lost :])
        assert ids(path.parent) == ["p1000"]
        with JournalReader(path.parent) as journal:
            assert list(journal.count().values()) == [1]
        assert recover(path.parent).torn_bytes == end - start


def test_salvage_saves_every_whole_frame_and_names_what_is_lost(
    three: Three, tmp_path: Path
) -> None:
    path, data, frames = three
    start, end = frames[1]
    damaged = data[: start + 50] + bytes([data[start + 50] ^ 1]) + data[start + 51 :]
    path.write_bytes(damaged)
    out = path.with_name("000001-salvaged.seg")
    saved = salvage(path, out)
    assert (saved.frames, saved.rows, saved.lost) == (2, 2, ((start, end),))
    assert path.read_bytes() == damaged
    path.rename(tmp_path / "kept")
    assert ids(out.parent) == ["p1", "p4"]
    with pytest.raises(UsageError, match="the file exists"):
        salvage(tmp_path / "kept", out)


def test_salvage_of_a_segment_without_its_start(three: Three) -> None:
    path, data, frames = three
    path.write_bytes(bytes(40) + data[40:])
    with pytest.raises(JournalDamaged):
        read_journal(path.parent)
    out = path.with_name("000001-salvaged.seg")
    saved = salvage(path, out)
    assert (saved.rows, saved.lost) == (4, ((0, frames[0][0]),))
    path.unlink()
    assert ids(out.parent) == ["p1", "p2", "p3", "p4"]


def test_a_block_of_zeros_in_the_middle_is_damage(three: Three) -> None:
    path, data, frames = three
    start, end = frames[1]
    path.write_bytes(data[: start + 20] + bytes(end - start - 40) + data[end - 20 :])
    with pytest.raises(JournalDamaged, match=f"at byte {start}"):
        read_journal(path.parent)


def test_a_block_of_zeros_between_frames_is_damage(three: Three) -> None:
    path, data, frames = three
    start = frames[1][0]
    path.write_bytes(data[:start] + bytes(4096) + data[start:])
    with pytest.raises(JournalDamaged, match=f"at byte {start}, 4096 bytes"):
        read_journal(path.parent)


def test_a_block_of_zeros_at_the_tail_is_cut(three: Three) -> None:
    path, data, frames = three
    start, end = frames[2]
    for tail in (data[:end] + bytes(4096), data[:start] + bytes(end - start)):
        path.write_bytes(tail)
        torn = recover(path.parent).torn_bytes
        assert torn == len(tail) - path.stat().st_size > 0
        assert ids(path.parent)[:3] == ["p1", "p2", "p3"]


def test_a_frame_that_vanished_without_a_gap_is_damage(three: Three) -> None:
    path, data, frames = three
    start, end = frames[1]
    path.write_bytes(data[:start] + data[end:])
    with pytest.raises(JournalDamaged, match=f"at byte {start}, frames are missing"):
        read_journal(path.parent)


def test_a_frame_of_another_segment_is_not_ours(three: Three, tmp_path: Path) -> None:
    path, data, _ = three
    other = write(tmp_path / "other", [row(9)])
    start, end = frames_of(other)[0]
    path.write_bytes(data + other.read_bytes()[start:end])
    contents = read_journal(path.parent)
    assert contents.table["pair_id"].to_list() == ["p1", "p2", "p3", "p4"]
    assert contents.report.torn_bytes == end - start


def test_text_that_looks_like_a_frame_is_text(tmp_path: Path) -> None:
    donor = write(tmp_path / "donor", [row(9)])
    start, end = frames_of(donor)[0]
    text = donor.read_bytes()[start:end].decode("latin-1")
    made = row(1)
    made = made._replace(reply=made.reply.__class__(slot=made.reply.slot, raw=text))
    path = write(tmp_path / "journal", [made], [row(2)])
    first = frames_of(path)[0]
    data = path.read_bytes()
    path.write_bytes(data[: first[1] - 1])
    assert read_journal(path.parent).report.torn_bytes == first[1] - 1 - first[0]


def test_a_newer_format_is_refused(three: Three) -> None:
    path, data, frames = three
    head = bytearray(data[: frames[0][0] - 4])
    head[8:10] = struct.pack("<H", 2)
    path.write_bytes(bytes(head) + struct.pack("<I", crc32(head)) + data[frames[0][0] :])
    for use in (read_journal, recover):
        with pytest.raises(UsageError, match="journal format 2"):
            use(path.parent)


def test_other_columns_are_refused(three: Three, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _, _ = three
    monkeypatch.setattr("judgebias.journal.frame.SCHEMA_FINGERPRINT", "0123456789abcdef")
    with pytest.raises(UsageError, match="written with other columns"):
        read_journal(path.parent)


def test_another_kind_of_file_is_refused(three: Three) -> None:
    path, _, _ = three
    path.write_text('{"pair_id": 1}\n' * 10)
    with pytest.raises(JournalDamaged, match="not a journal segment"):
        read_journal(path.parent)
