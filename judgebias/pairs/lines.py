"""Lines of a byte stream, cut at LF alone, never longer in memory than a row may be."""

from __future__ import annotations

from typing import BinaryIO

from judgebias.pairs.spec import CHUNK_BYTES, ROW_BYTES

BOM = b"\xef\xbb\xbf"
_PIECE = 1 << 20


def skip_bom(stream: BinaryIO) -> int:
    """Step over a byte order mark at the head of a file; the number of bytes stepped over."""
    if stream.read(len(BOM)) == BOM:
        return len(BOM)
    stream.seek(0)
    return 0


def read_line(stream: BinaryIO, limit: int = ROW_BYTES) -> tuple[bytes | None, int]:
    """Read one line: its bytes (b"" at the end, None where it is too long) and its length."""
    line = stream.readline(limit + 1)
    if len(line) <= limit or line.endswith(b"\n"):
        return line, len(line)
    size = len(line)
    while line and not line.endswith(b"\n"):
        line = stream.readline(_PIECE)
        size += len(line)
    return None, size


def read_lines(stream: BinaryIO, offset: int, n_rows: int) -> tuple[list[bytes | None], list[int]]:
    """Read up to n lines or a chunk's bytes; with them where each starts and the last one ends."""
    lines: list[bytes | None] = []
    starts = [offset]
    end = offset + CHUNK_BYTES
    while len(lines) < n_rows and offset < end:
        line, size = read_line(stream)
        if not size:
            break
        offset += size
        lines.append(line)
        starts.append(offset)
    return lines, starts
