"""A run directory on an object store: a folder here that is brought there file by file.

Everything that reads or makes a file works on the folder, as for a run on a disk. `run.json` and
the index are sent when they are written, the tables when they are all there; workers write the
journal to the store themselves.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from judgebias.errors import UsageError
from judgebias.journal import JournalCopy, Recovery, recover
from judgebias.manifest import Manifest
from judgebias.object_lock import ObjectLock, owner, owning
from judgebias.objects import ObjectStore, is_uri
from judgebias.rundir import RunDir

JOURNAL = "journal"


def open_rundir(place: str, base: Path | None = None) -> RunDir:
    """Give the run directory at a path, relative to `base`, or at a URI."""
    if is_uri(place):
        return StoredRunDir(place)
    return RunDir(Path(place) if base is None else base / place)


class StoredRunDir(RunDir):
    """The run at a URI; its folder is temporary and goes with the object."""

    def __init__(self, uri: str) -> None:
        self._store = ObjectStore(uri)
        super().__init__(Path(tempfile.mkdtemp(prefix="judgebias-")))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self.journal.mkdir(mode=0o700)
        self._copy = JournalCopy(ObjectStore(f"{self._store.uri}/{JOURNAL}"), self.journal)
        self._sent: dict[str, tuple[int, int]] = {}
        self._looked = False
        self._lock: ObjectLock | None = None

    @property
    def name(self) -> str:
        """The place as the user knows it."""
        return self._store.uri

    @property
    def journal_place(self) -> str:
        """Where workers write the journal, on whatever machine they are."""
        return f"{self._store.uri}/{JOURNAL}"

    @property
    def exists(self) -> bool:
        """Whether a run was started here."""
        if not self._looked:
            self.pull()
        return super().exists

    def manifest(self) -> Manifest:
        """Read `run.json`."""
        if not self._looked:
            self.pull()
        return super().manifest()

    def pull(self) -> None:
        """Fetch the manifest and the index once, and what is new in the journal."""
        with self._reached():
            if not self._looked:
                for path in (self._manifest, self.index, self.rejects):
                    self._fetch(path)
                self._looked = True
            self._copy.pull()

    def push(self) -> None:
        """Send every file that was written here since the last time."""
        with self._reached():
            for path in sorted(self.path.rglob("*")):
                if path.is_file() and path.parent != self.journal:
                    self._send(path)
            self._forget_divided()
            self._copy.push()

    def _forget_divided(self) -> None:
        """Remove what an earlier table left that was one file, or a folder of other files."""
        for table in (self.path / "calls.parquet", self.path / "verdicts.parquet"):
            if not table.exists():
                continue
            files = {str(path.relative_to(self.path)) for path in table.rglob("*")}
            stale = [found.name for found in self._store.list(table.name)]
            self._store.remove(
                [
                    *(name for name in stale if name not in files),
                    *([table.name] if table.is_dir() else []),
                ]
            )

    def drop(self, names: Iterable[str]) -> None:
        """Remove files of the run, here and there."""
        listed = list(names)
        super().drop(listed)
        with self._reached():
            self._store.remove(listed)

    def prepare(self) -> None:
        """Prove that objects can be written, read and kept from being written twice.

        Raises
        ------
        UsageError
            When the store cannot be reached, or has no put-if-absent.
        """
        name = f".probe.{token_hex(4)}"
        with self._reached():
            self._store.write_new(name, b"probe")
            try:
                self._store.write_new(name, b"again")
            except FileExistsError:
                return
            finally:
                self._store.remove([name])
        raise UsageError(
            f"{self.name}: the object store writes over an object that must be new",
            expected="If-None-Match on writes, which keeps two runs apart",
            do="use a store that has it, or a folder that every node mounts",
        )

    def check(self) -> None:
        """Find out whether the store can be used, and write nothing."""
        self.pull()

    @contextmanager
    def owned(self, *, take_over: bool = False) -> Generator[None]:
        """Hold the run for this process; a second run is refused.

        Raises
        ------
        UsageError
            When another process owns the run.
        """
        with owning(self._store, take_over=take_over) as self._lock:
            # What another owner wrote until now counts, not what was read before.
            self._looked = False
            self.pull()
            yield
        self._lock = None

    def check_owner(self) -> None:
        """Return while this process owns the run."""
        if self._lock is not None:
            self._lock.check()

    def owner(self) -> str:
        """Say who holds the run, "" when nobody does."""
        return owner(self._store)

    def recovered(self) -> Recovery:
        """Check the journal, and merge it where it has many objects."""
        recovery = recover(self.journal)
        self._copy.merge()
        return recovery

    def write_manifest(self, manifest: Manifest) -> None:
        """Write `run.json` here and there."""
        super().write_manifest(manifest)
        with self._reached():
            self._send(self._manifest)

    def place_index(self, write: Callable[[Path], object]) -> None:
        """Have the index written here, and there, with the rows that are not in it."""
        super().place_index(write)
        with self._reached():
            for path in (self.index, self.rejects):
                if path.exists():
                    self._send(path)

    def _send(self, path: Path) -> None:
        name, version = str(path.relative_to(self.path)), _version(path)
        if self._sent.get(name) != version:
            self._store.write(name, path)
            self._sent[name] = version

    def _fetch(self, path: Path) -> None:
        try:
            data = self._store.read(str(path.relative_to(self.path)))
        except FileNotFoundError:
            return
        path.write_bytes(data)
        self._sent[str(path.relative_to(self.path))] = _version(path)

    @contextmanager
    def _reached(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"the run directory {self.name} cannot be used: {error}",
                expected="a bucket that this user may list, read and write",
                do="check the name, AWS_ENDPOINT_URL, AWS_REGION and the credentials "
                "(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the machine's role)",
            ) from error


def _version(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size
