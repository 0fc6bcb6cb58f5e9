"""Files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from judgebias.crash import crash_point
from judgebias.errors import UsageError
from judgebias.processes import lives

_UNFINISHED = re.compile(r"\..+\.([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.tmp")


def publish(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file or folder beside its place, push it to the disk, and rename it there.

    Parameters
    ----------
    path
        Where it is to appear; a file may follow a folder there, and a folder a file.
    write
        Writes the content to the path it is given.

    Raises
    ------
    UsageError
        The folder cannot be written.
    """
    beside = unfinished(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(beside)
        _sync(beside)
        crash_point(f"publish:{path.name}")
        _put(beside, path)
        _sync_entry(path.parent)
    except OSError as fault:
        raise cannot_be_written(path, fault) from fault
    finally:
        # What cannot be reached cannot be removed either, and the first fault is the one to tell.
        with suppress(OSError):
            _remove(beside)


def cannot_be_written(path: Path, fault: OSError) -> UsageError:
    """Make the error for a file that the disk does not take."""
    return UsageError(
        f"{path}: cannot be written ({fault.strerror or fault})",
        expected="a folder that this user may write to, with room left",
        do="choose another --out, or make room",
    )


def publish_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8 the same way."""
    publish(path, lambda beside: _write_text(beside, text))


def unfinished(path: Path) -> Path:
    """Name a file or folder beside `path` that no other process and no other call uses."""
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{token_hex(4)}.tmp")


def remove_unfinished(*folders: Path) -> None:
    """Remove what processes of this host left unfinished when they were killed, folders too."""
    for left in (left for folder in folders for left in folder.glob(".*.tmp")):
        named = _UNFINISHED.fullmatch(left.name)
        if named is None or named[1] != _host() or lives(int(named[2])):
            continue
        _remove(left)


def _host() -> str:
    # Process ids of another host say nothing here.
    return hashlib.blake2b(socket.gethostname().encode(), digest_size=4).hexdigest()


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _put(beside: Path, path: Path) -> None:
    if not path.is_dir() and not (beside.is_dir() and path.exists()):
        beside.replace(path)
        return
    # A folder cannot be renamed over; a kill between the two leaves a name that is made again.
    old = unfinished(path)
    path.rename(old)
    beside.rename(path)
    _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Push a file, or a folder with all that is in it, to the disk."""
    if path.is_dir():
        for inside in path.iterdir():
            _sync(inside)
    _sync_entry(path)


def _sync_entry(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
