"""The bytes of a segment: one header, then frames, each of which proves itself.

::

    segment   magic 8 | version u16 | length u32 | JSON | crc32 of all that
    frame     magic 4 | segment u64 | sequence u32 | stored u32 | plain u32 | rows u32
              | crc32 of the payload | crc32 of this header | payload
    payload   one Arrow IPC record batch, the whole message in zstd

The whole message is compressed, not its buffers: Arrow's metadata and padding of 25 columns cost
1.9 kB for a single reply, and 0.5 kB after zstd. The magic holds a byte that no UTF-8 text has, so
a judge's reply can never look like a frame; the segment's number keeps blocks of other files out.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its batches are unknown to the checker wherever they are passed on.

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from zlib import crc32

import pyarrow as pa

from judgebias.errors import JournalDamaged, UsageError
from judgebias.journal.rows import SCHEMA, SCHEMA_FINGERPRINT

VERSION = 1
SEGMENT_MAGIC = b"\x89JBJ\r\n\x1a\n"
FRAME_MAGIC = b"\x89JB\xf5"
_START = struct.Struct("<8sHI")
_FRAME = struct.Struct("<4sQIIIII")
_CRC = struct.Struct("<I")
FRAME_HEAD = _FRAME.size + _CRC.size
_WINDOW = 1 << 20
_SECTOR = 512
"""Bytes that a disk writes whole or not at all."""
_ZSTD = "zstd"


@dataclass(frozen=True, kw_only=True, slots=True)
class SegmentInfo:
    """What a segment says about itself; no secret is ever part of it."""

    segment: int
    """A random number that names the segment, whatever its file is called."""
    epoch: int
    worker: str
    host: str
    pid: int
    created: str
    """ISO time, UTC."""
    schema: str = SCHEMA_FINGERPRINT
    replaces: tuple[int, ...] = ()
    """The segments whose rows this one holds: readers skip them where they still lie about."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A frame whose checksums hold."""

    offset: int
    segment: int
    sequence: int
    plain: int
    rows: int
    payload: bytes

    @property
    def end(self) -> int:
        """The offset behind the frame."""
        return self.offset + FRAME_HEAD + len(self.payload)


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """A range of bytes that holds no valid frame; empty where frames are missing altogether."""

    start: int
    end: int


def pack_head(info: SegmentInfo) -> bytes:
    """The bytes a segment opens with."""
    text = json.dumps(asdict(info), sort_keys=True).encode()
    head = _START.pack(SEGMENT_MAGIC, VERSION, len(text)) + text
    return head + _CRC.pack(crc32(head))


def read_head(file: int, size: int, name: str) -> tuple[SegmentInfo, int] | None:
    """What the segment says about itself and where its frames start; None for a torn start.

    Raises
    ------
    JournalDamaged
        For another kind of file.
    UsageError
        For another format or other columns.
    """
    start = os.pread(file, _START.size, 0)
    if len(start) < _START.size or not any(start):
        return None
    magic, version, length = _START.unpack(start)
    _check_kind(magic, version, name)
    end = _START.size + length
    if end + _CRC.size > size:
        return None
    text = os.pread(file, length, _START.size)
    if os.pread(file, _CRC.size, end) != _CRC.pack(crc32(start + text)):
        return None
    fields = json.loads(text)
    if fields["schema"] != SCHEMA_FINGERPRINT:
        raise UsageError(
            f"{name}: written with other columns ({fields['schema']})",
            expected=f"the columns of format {VERSION} ({SCHEMA_FINGERPRINT})",
            do="read it with the version of judgebias that wrote it",
        )
    fields["replaces"] = tuple(fields["replaces"])
    info = SegmentInfo(**fields)
    return info, end + _CRC.size


def _check_kind(magic: bytes, version: int, name: str) -> None:
    if magic != SEGMENT_MAGIC:
        raise JournalDamaged(
            f"{name}: not a journal segment, it starts with {magic!r}",
            expected=f"{SEGMENT_MAGIC!r}",
            do="if it was one, salvage it into a new file; move this one out of the journal",
        )
    if version != VERSION:
        raise UsageError(
            f"{name}: written in journal format {version}",
            expected=f"format {VERSION}, the one that this version of judgebias reads",
            do="use the version of judgebias that wrote it, or a newer one",
        )


def encode(batch: pa.RecordBatch) -> tuple[bytes, int]:
    """A batch as a payload, and its size before compression."""
    plain = batch.serialize()
    return pa.compress(plain, codec=_ZSTD, asbytes=True), plain.size


def plain_bytes(frame: Frame) -> pa.Buffer:
    """The payload of a frame before compression."""
    return pa.decompress(frame.payload, decompressed_size=frame.plain, codec=_ZSTD)


def decode(frame: Frame) -> pa.RecordBatch:
    """The rows of a frame; they share one piece of memory."""
    return pa.ipc.read_record_batch(plain_bytes(frame), SCHEMA)


def pack_frame(payload: bytes, *, plain: int, rows: int, segment: int, sequence: int) -> bytes:
    """A payload as a frame, ready for one write."""
    head = _FRAME.pack(FRAME_MAGIC, segment, sequence, len(payload), plain, rows, crc32(payload))
    return b"".join((head, _CRC.pack(crc32(head)), payload))


def frame_at(file: int, offset: int, size: int) -> Frame | None:
    """The frame that starts here, or None when nothing valid does."""
    data = os.pread(file, FRAME_HEAD, offset)
    if len(data) < FRAME_HEAD or not data.startswith(FRAME_MAGIC):
        return None
    if crc32(data[: _FRAME.size]) != _CRC.unpack_from(data, _FRAME.size)[0]:
        return None
    _, segment, sequence, stored, plain, rows, crc = _FRAME.unpack_from(data)
    if offset + FRAME_HEAD + stored > size:
        return None
    payload = os.pread(file, stored, offset + FRAME_HEAD)
    if len(payload) < stored or crc32(payload) != crc:
        return None
    return Frame(
        offset=offset, segment=segment, sequence=sequence, plain=plain, rows=rows, payload=payload
    )


def count_rows(file: int, start: int, size: int) -> int:
    """Count the rows of the frames from `start` to the first that is none, by their headers.

    The last frame is read whole: a machine that lost its power may leave its header and no more.
    """
    rows, offset, last, last_rows = 0, start, start, 0
    while offset + FRAME_HEAD <= size:
        head = os.pread(file, FRAME_HEAD, offset)
        if crc32(head[: _FRAME.size]) != _CRC.unpack_from(head, _FRAME.size)[0]:
            break
        rows += last_rows
        last, (_, _, _, stored, _, last_rows, _) = offset, _FRAME.unpack_from(head)
        offset += FRAME_HEAD + stored
    return rows if frame_at(file, last, size) is None else rows + last_rows


def pieces(file: int, start: int, size: int, segment: int | None) -> Iterator[Frame | Gap]:
    """Every valid frame from `start` on, and every range between them that is not one.

    A gap that reaches `size` is a torn tail; any other is damage, because a frame is synced before
    the next one is written. With `segment` None, frames of any segment are taken.
    """
    offset, expected = start, 0
    while offset < size:
        frame = _own(frame_at(file, offset, size), segment)
        if frame is None:
            frame = _next_frame(file, offset + 1, size, segment)
            end = size if frame is None else frame.offset
            yield Gap(start=offset, end=end)
        elif frame.sequence != expected:
            yield Gap(start=offset, end=offset)
        if frame is None:
            return
        yield frame
        offset, expected = frame.end, frame.sequence + 1


def is_changed(file: int, gap: Gap, segment: int) -> bool:
    """Whether the gap at a segment's end is a frame that was written whole and is another now.

    A write that was cut leaves the first bytes of a frame, or sectors of zeros where a machine lost
    its power. A frame with all its bytes and a wrong checksum is neither, and nor is a header with
    a wrong checksum that still says whose it is: those replies were on disk, and may not be cut.
    """
    data = os.pread(file, gap.end - gap.start, gap.start)
    if len(data) < FRAME_HEAD or _has_empty_sector(data, gap.start):
        return False
    magic, number, _, stored, *_ = _FRAME.unpack_from(data)
    if crc32(data[: _FRAME.size]) == _CRC.unpack_from(data, _FRAME.size)[0]:
        return number == segment and len(data) >= FRAME_HEAD + stored
    return magic == FRAME_MAGIC or number == segment


def _has_empty_sector(data: bytes, offset: int) -> bool:
    first = -offset % _SECTOR
    starts = [0, *range(first, len(data), _SECTOR)]
    ends = [*starts[1:], len(data)]
    return any(
        not any(data[start:end]) for start, end in zip(starts, ends, strict=True) if end > start
    )


def _own(frame: Frame | None, segment: int | None) -> Frame | None:
    return frame if frame is None or segment is None or frame.segment == segment else None


def _next_frame(file: int, offset: int, size: int, segment: int | None) -> Frame | None:
    while offset < size:
        window = os.pread(file, _WINDOW, offset)[: size - offset]
        at = window.find(FRAME_MAGIC)
        while at >= 0:
            frame = _own(frame_at(file, offset + at, size), segment)
            if frame is not None:
                return frame
            at = window.find(FRAME_MAGIC, at + 1)
        # Windows overlap, so that a magic across their border is seen.
        offset += max(len(window) - len(FRAME_MAGIC) + 1, 1)
    return None
