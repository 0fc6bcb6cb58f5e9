"""Finding and opening input files; the only module here that knows where files live."""

# pyarrow ships no complete types: a schema or an array is unknown to the checker.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import shutil
import tempfile
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
from pyarrow import fs

from judgebias.errors import InputError
from judgebias.pairs.block import Format, Source
from judgebias.pairs.spec import PairsSpec

_FORMATS: dict[str, Format] = {
    ".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv",
}  # fmt: skip
_KNOWN = ".parquet, .jsonl, .ndjson or .csv, plain or with .gz"
_GZIP = b"\x1f\x8b"
_BUFFER = 1 << 20


def find_sources(spec: PairsSpec) -> tuple[list[Source], list[str]]:
    """Find the input files in a fixed order, and say which files of a folder are not read.

    A directory means the files directly in it; `folder/**/*.parquet` goes deeper.
    """
    with reading(f"pairs = {spec.source!r}"):
        files, named = _list_files(spec)
    unread = [] if named else [file for file in files if _format_of(file) is None]
    sources = [_describe(file) for file in files if named or _format_of(file) is not None]
    if not sources:
        raise InputError(
            f"pairs = {spec.source!r} finds no file to read"
            + (f"; found {', '.join(unread[:5])}" if unread else ""),
            expected=f"files ending in {_KNOWN}",
            do="give a file, a folder that holds such files, or a glob such as folder/**/*.parquet",
        )
    notices = [f"not read, unknown ending: {file}" for file in unread[:10]]
    if len(unread) > len(notices):
        notices.append(f"not read, unknown ending: {len(unread) - len(notices)} more files")
    return sources, notices


def _list_files(spec: PairsSpec) -> tuple[list[str], bool]:
    if "://" in spec.source:
        return _list_uri(spec.source)
    path = spec.base / spec.source
    if path.is_dir():
        return _visible([str(child) for child in path.iterdir() if child.is_file()]), False
    if path.exists():
        return [str(path.absolute())], True
    if glob.has_magic(spec.source):
        found = glob.glob(str(path), recursive=True)  # noqa: PTH207 - absolute patterns too
        return _visible([file for file in found if Path(file).is_file()]), False
    raise InputError(
        f"pairs = {spec.source!r}: there is no {path.absolute()}",
        expected="an existing file, folder or glob; a relative path starts at the run file",
        do="correct the path",
    )


def _visible(files: list[str]) -> list[str]:
    return sorted(str(Path(f).absolute()) for f in files if not Path(f).name.startswith((".", "_")))


def _list_uri(uri: str) -> tuple[list[str], bool]:
    with reading(uri):
        system, path = fs.FileSystem.from_uri(uri)
        info = cast("fs.FileInfo", system.get_file_info(path))
        if info.type != fs.FileType.Directory:
            return [uri], True
        inside = cast("list[fs.FileInfo]", system.get_file_info(fs.FileSelector(path)))
    scheme = uri.split("://", 1)[0]
    names = [entry.path for entry in inside if entry.type == fs.FileType.File]
    shown = [name for name in names if not name.rsplit("/", 1)[-1].startswith((".", "_"))]
    return sorted(f"{scheme}://{name}" for name in shown), False


def _format_of(file: str) -> Format | None:
    return _FORMATS.get(Path(file.lower().removesuffix(".gz")).suffix)


def _describe(file: str) -> Source:
    format_ = _format_of(file)
    if format_ is None:
        raise InputError(
            f"{file}: unknown ending", expected=_KNOWN, do="convert or rename the file"
        )
    with open_raw(file) as stream:
        zipped = stream.read(2) == _GZIP
    if file.lower().endswith(".gz") and not zipped:
        raise InputError(
            f"{file} is named .gz but is not gzip",
            expected="a gzip file",
            do="drop .gz from its name if it is plain, else make the file again",
        )
    size, mtime_ns = stamp(file)
    return Source(file=file, format=format_, gzip=zipped, size=size, mtime_ns=mtime_ns)


def stamp(file: str) -> tuple[int, int]:
    """Size and modification time (ns): what tells that a file was changed."""
    with reading(file):
        if "://" not in file:
            status = Path(file).stat()
            return status.st_size, status.st_mtime_ns
        system, path = fs.FileSystem.from_uri(file)
        info = cast("fs.FileInfo", system.get_file_info(path))
        return info.size or 0, info.mtime_ns or 0


def check_unchanged(source: Source) -> None:
    """Refuse a file that was written to after the survey: its blocks no longer fit."""
    if stamp(source.file) != (source.size, source.mtime_ns):
        raise InputError(
            f"{source.file} was changed while the run was using it",
            expected="the file that was checked at the start",
            do="leave the input alone during a run, then give the same command again",
        )


def open_raw(file: str) -> BinaryIO:
    """Open a file's bytes as they lie there."""
    with reading(file):
        if "://" not in file:
            return Path(file).open("rb", buffering=_BUFFER)
        system, path = fs.FileSystem.from_uri(file)
        stream = cast("io.RawIOBase", system.open_input_file(path))
        return io.BufferedReader(stream, _BUFFER)


def open_plain(source: Source) -> BinaryIO:
    """Open a file's bytes, decompressed; seeking forward in gzip reads on, backward starts over."""
    raw = open_raw(source.file)
    return cast("BinaryIO", _Unzipped(raw)) if source.gzip else raw


def open_seekable(source: Source) -> pa.NativeFile:
    """Open a file for random access; a compressed one is unpacked into a temporary file."""
    if not source.gzip:
        if "://" not in source.file:
            return pa.OSFile(source.file)
        system, path = fs.FileSystem.from_uri(source.file)
        return system.open_input_file(path)
    with tempfile.NamedTemporaryFile() as unpacked, open_plain(source) as stream:
        shutil.copyfileobj(stream, unpacked, _BUFFER)
        unpacked.flush()
        return pa.OSFile(unpacked.name)


class _Unzipped(gzip.GzipFile):
    """A gzip reader that closes the file below it too."""

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__(fileobj=raw, mode="rb")
        self._raw = raw

    def close(self) -> None:
        super().close()
        self._raw.close()


@contextlib.contextmanager
def reading(file: str) -> Generator[None]:
    """Turn what the system says about an unreadable file into one clear error."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{file} is a truncated or damaged gzip file: {error}",
            expected="a whole gzip file",
            do="make or copy the file again",
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{file} cannot be read: {error}",
            expected="a whole, readable file of the kind its name says",
            do="check that it exists, is whole and may be read",
        ) from error


def not_text(file: str, offset: int, data: bytes) -> InputError:
    """Name the place of bytes that are not UTF-8."""
    kinds = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x28\xb5": "zstd", b"\xfd7": "xz"}
    looks = f"; it looks like {kinds[data[:2]]}" if offset < 2 and data[:2] in kinds else ""
    return InputError(
        f"{file} is not UTF-8 at byte {offset}{looks}",
        expected="UTF-8 text",
        do="convert the file to UTF-8; nothing is replaced silently",
    )
