"""The run directory: the manifest, the index of the pairs, the journal, and who owns it.

The journal is the source of truth and the index says what is expected; every table is rebuilt from
the two.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import polars as pl
from pydantic import ValidationError

from judgebias.crash import crash_point
from judgebias.errors import InputError, UsageError
from judgebias.journal import Recovery, merge_segments, recover
from judgebias.manifest import FORMAT, Manifest, utc_now
from judgebias.publish import publish, publish_text, remove_unfinished, unfinished


class RunDir:
    """One run directory, present or to be made."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal"
        self.index = path / "journal" / "pairs.parquet"
        self.rejects = path / "rejects.jsonl"
        self._manifest = path / "run.json"

    @property
    def name(self) -> str:
        """The place as the user knows it."""
        return str(self.path)

    @property
    def journal_place(self) -> str:
        """Where workers write the journal, on whatever machine they are."""
        return str(self.journal)

    def shown(self, path: Path) -> str:
        """A file of the run as the user knows it."""
        return f"{self.name}/{path.relative_to(self.path)}"

    def pull(self) -> None:
        """Have here what others have written; a folder always has."""

    def push(self) -> None:
        """Have everything that was written here where the run is; a folder always has."""

    def drop(self, names: Iterable[str]) -> None:
        """Remove files of the run, by their paths in it; those that are not there are no fault."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def recovered(self) -> Recovery:
        """Mend and merge the journal; only the owner does this, before it asks."""
        recovery = recover(self.journal)
        merge_segments(self.journal)
        return recovery

    def check_owner(self) -> None:
        """Return while this process owns the run; a lock of the kernel cannot be lost."""

    def prepare(self) -> None:
        """Make the folders and prove that they can be written, before anything is asked.

        Raises
        ------
        UsageError
            When the directory cannot be made, written, synced or renamed in.
        """
        with self._writable():
            self.journal.mkdir(parents=True, exist_ok=True, mode=0o700)
            for folder in (self.path, self.journal):
                _probe(folder)

    def check(self) -> None:
        """Find what `prepare` would refuse, and leave nothing behind.

        Raises
        ------
        UsageError
            As `prepare`.
        """
        with self._writable():
            for folder in (self.path, self.journal):
                there = next(found for found in (folder, *folder.parents) if os.path.lexists(found))
                if not there.is_dir():
                    raise NotADirectoryError(there)
                with tempfile.TemporaryDirectory(prefix=".probe.", dir=there) as inside:
                    _probe(Path(inside))

    @contextmanager
    def _writable(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            no_folder = isinstance(error, FileExistsError | NotADirectoryError)
            why = "a part of its path is no folder" if no_folder else error.strerror
            raise UsageError(
                f"cannot write to the run directory {self.path}: {why}",
                expected="a directory that this user can create, write and rename in",
                do="choose another `out` or --out",
            ) from error

    @contextmanager
    def owned(self, *, take_over: bool = False) -> Generator[None]:
        """Hold the directory for this process; a second run is refused.

        The lock of a process that died here is free, because the kernel let go of it. A name that
        another host left in it says nothing of whether that process lives: it is only taken over
        with `take_over`.

        Raises
        ------
        UsageError
            When another process owns the run, or seems to on another host.
        """
        with (self.path / "owner.lock").open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"the run directory {self.path} is in use: {_said(lock) or 'unknown'}",
                    do="wait for that run, stop it, or choose another --out",
                ) from error
            left = _said(lock)
            if left and not left.startswith(f"{_here()},") and not take_over:
                raise UsageError(
                    f"the run directory {self.path} was left by {left}",
                    expected="an owner on this host, or one that ended by itself",
                    do="make sure that process is gone, then use `judgebias run` with --take-over",
                )
            crash_point("lock:taken")
            remove_unfinished(self.path, self.journal, self.path / "tables")
            lock.truncate(0)
            lock.write(f"{_here()}, process {os.getpid()}, since {utc_now()}")
            lock.flush()
            try:
                yield
            finally:
                # Only an owner that was killed leaves its name.
                lock.truncate(0)

    def owner(self) -> str:
        """Say who holds the directory, "" when nobody does."""
        try:
            with (self.path / "owner.lock").open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return lock.read().strip() or "unknown"
        except (FileNotFoundError, NotADirectoryError):
            pass
        return ""

    @property
    def exists(self) -> bool:
        """Whether a run was started here."""
        try:
            return self._manifest.exists()
        except OSError:  # a name that is too long, a folder that may not be looked into
            return False

    def manifest(self) -> Manifest:
        """Read `run.json`.

        Raises
        ------
        InputError
            When there is none, or a newer judgebias wrote it.
        """
        try:
            data = json.loads(self._manifest.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise InputError(
                f"{self.name} is not a run directory: it has no run.json",
                expected="a directory that `judgebias run` made",
                do="give the `out` of a run",
            ) from error
        except OSError as error:
            raise InputError(
                f"{self._manifest} cannot be read: {error.strerror}",
                expected="a directory that `judgebias run` made",
                do="give the `out` of a run that this user may read",
            ) from error
        except ValueError as error:
            raise InputError(f"{self._manifest} is not JSON: {error}") from error
        found = data.get("format") if isinstance(data, dict) else None
        if found != FORMAT:
            raise InputError(
                f"{self._manifest} has format {found}, this judgebias reads {FORMAT}",
                do="use the version of judgebias that made the run",
            )
        try:
            return Manifest.model_validate(data)
        except ValidationError as error:
            raise InputError(f"{self._manifest} does not fit this judgebias: {error}") from error

    def write_manifest(self, manifest: Manifest) -> None:
        """Write `run.json`."""
        publish_text(self._manifest, manifest.model_dump_json(indent=2) + "\n")

    def keep_forms(self, forms: Mapping[str, Mapping[str, object]]) -> None:
        """Add settled verdict forms, so that a resume takes them from here."""
        if forms:
            manifest = self.manifest()
            known = {**{name: dict(form) for name, form in forms.items()}, **manifest.forms}
            self.write_manifest(manifest.model_copy(update={"forms": known}))

    def keep_unrecorded(self, requests: int, usd: float) -> None:
        """Add requests that no reply on disk tells of, so that a resume counts them as well."""
        manifest = self.manifest()
        more = {
            "unrecorded_requests": manifest.unrecorded_requests + requests,
            "unrecorded_usd": manifest.unrecorded_usd + usd,
        }
        self.write_manifest(manifest.model_copy(update=more))

    def write_index(self, index: pl.DataFrame) -> None:
        """Write the index of the pairs: what is expected, without a text."""
        self.place_index(lambda beside: index.write_parquet(beside, compression="zstd"))

    @contextmanager
    def new_index(self) -> Generator[Path]:
        """Name a file that a survey may write, and `place_index` move; none of it is left."""
        made = unfinished(self.index)
        try:
            yield made
        finally:
            made.unlink(missing_ok=True)

    def place_index(self, write: Callable[[Path], object]) -> None:
        """Have the index written, or moved, to the path that `write` is given."""
        publish(self.index, write)

    def scan_index(self) -> pl.LazyFrame:
        """Read the index lazily.

        Raises
        ------
        InputError
            When it is gone: nothing else says which pairs are expected.
        """
        if not self.index.exists():
            raise InputError(
                f"{self.index} is missing: it says which pairs the run expects",
                expected="the file that every start of the run writes",
                do="give `judgebias run` the same run file and input again",
            )
        # A folder may be called "run[1]": its name is no pattern.
        return pl.scan_parquet(self.index, glob=False)


def _here() -> str:
    return f"host {socket.gethostname()}"


def _said(lock: TextIO) -> str:
    lock.seek(0)
    return lock.read().strip()


def _probe(folder: Path) -> None:
    target = unfinished(folder / "probe")
    publish_text(target, "probe")
    try:
        with target.open() as one, target.open() as other:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _locks(other):
                raise UsageError(
                    f"{folder}: the file system does not keep locks",
                    expected="flock, which keeps two runs and two writers apart",
                    do="choose another `out` or --out, or mount it with locks",
                )
    finally:
        target.unlink()


def _locks(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
