"""Owning a run on an object store: a lock that its owner renews, and that expires.

The lock is an object written only where there is none. Nobody can see from afar whether a process
lives, so the owner writes the lock anew every `RENEW_S`; one that has not been renewed for
`EXPIRED_S`, by the store's own clock, is free: whoever starts meanwhile waits, and is refused as
soon as it is renewed. An owner that cannot renew stops before that.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

from judgebias.errors import Stopped, UsageError
from judgebias.objects import ChangedError, Found, ObjectStore
from judgebias.processes import lives

NAME = "owner.lock"
RENEW_S = 10.0
EXPIRED_S = 60.0
WATCH_S = 2.0
GIVE_UP_S = 40.0
"""Without a renewal for so long the owner stops: well before another may take over."""


class ObjectLock:
    """The lock of a run, held by this process."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._token = token_hex(8)
        self._since = datetime.now(UTC).isoformat(timespec="seconds")
        self._version = ""
        self._beats = 0
        self._renewed = time.monotonic()
        self._lost = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="owner lock", daemon=True)

    def take(self, *, take_over: bool) -> None:
        """Own the run from now on.

        Raises
        ------
        UsageError
            When another process does.
        """
        data = self._content()
        try:
            self._version = self._store.write_new(NAME, data)
        except FileExistsError:
            held, found = self._store.look(NAME)
            if not take_over:
                self._wait_until_free(held, found)
            try:
                self._version = self._store.replace(NAME, data, found.version)
            except ChangedError:
                raise self._in_use(self._store.read(NAME)) from None
        self._renewed = time.monotonic()
        self._thread.start()

    def check(self) -> None:
        """Return while the run is ours.

        Raises
        ------
        Stopped
            When another process took it over, or the store has not been reached for long.
        """
        silent = time.monotonic() - self._renewed
        if self._lost or silent > GIVE_UP_S:
            raise Stopped(
                f"{self._store.uri} is not ours any more: "
                + (self._lost or f"the object store has not answered for {silent:.0f} s"),
                do="see that one run uses it; the same command goes on from here",
            )

    def release(self) -> None:
        """Give the run back."""
        self._over.set()
        self._thread.join()
        if not self._lost:
            # Emptied rather than removed: only a write can be bound to the version we hold.
            with suppress(OSError):
                self._store.replace(NAME, b"", self._version)

    def _content(self) -> bytes:
        said = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": _started(os.getpid()),
            "since": self._since,
            "token": self._token,
            "beats": self._beats,
        }
        return json.dumps(said).encode()

    def _wait_until_free(self, held: bytes, found: Found) -> None:
        """Watch the lock of another host: one that is renewed has an owner, any other expires."""
        if not held:
            return
        said = json.loads(held)
        if said["host"] == socket.gethostname():
            if _lives(said):
                raise self._in_use(held)
            return
        left = EXPIRED_S - age_s(self._store, found)
        while left > 0:
            time.sleep(min(left, WATCH_S))
            left -= WATCH_S
            now, latest = self._store.look(NAME)
            if latest.version != found.version:
                raise self._in_use(now)

    def _in_use(self, held: bytes) -> UsageError:
        return UsageError(
            f"the run directory {self._store.uri} is in use: {words(held)}",
            do="wait for that run, stop it, or choose another --out",
        )

    def _renew(self) -> None:
        while not self._over.wait(RENEW_S):
            self._beats += 1
            try:
                self._version = self._store.replace(NAME, self._content(), self._version)
            except ChangedError:
                if not self._own_again():
                    return
            except OSError:
                continue
            self._renewed = time.monotonic()

    def _own_again(self) -> bool:
        """Tell whether the change was a renewal of ours whose answer was lost."""
        try:
            held, found = self._store.look(NAME)
        except OSError:
            return True
        if held and json.loads(held)["token"] == self._token:
            self._version = found.version
            return True
        self._lost = f"it was taken over by {words(held)}"
        return False


@contextmanager
def owning(store: ObjectStore, *, take_over: bool) -> Generator[ObjectLock]:
    """Own the run while the block lasts."""
    lock = ObjectLock(store)
    lock.take(take_over=take_over)
    try:
        yield lock
    finally:
        lock.release()


def owner(store: ObjectStore) -> str:
    """Say who owns the run, "" when nobody does."""
    try:
        held, found = store.look(NAME)
    except FileNotFoundError:
        return ""
    return words(held) if held and age_s(store, found) <= EXPIRED_S else ""


def words(held: bytes) -> str:
    """Say what a lock says."""
    if not held:
        return "nobody"
    said = json.loads(held)
    return f"host {said['host']}, process {said['pid']}, since {said['since']}"


def age_s(store: ObjectStore, found: Found) -> float:
    """Seconds since an object was written, by the clock that dated it."""
    return (store.now() - found.written).total_seconds()


def _lives(said: Mapping[str, object]) -> bool:
    """Tell whether the process of a lock of this host lives; its number may be another's by now."""
    pid = int(str(said["pid"]))
    return lives(pid) and _started(pid) == said.get("started")


def _started(pid: int) -> str:
    """Give what the kernel says of a process's start, "" where it says nothing."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # Behind the name, which may itself hold blanks and brackets.
    return stat.rpartition(")")[2].split()[19]
