"""Objects under a URI such as s3://bucket/runs/first: whole ones, and some only if absent.

The client is `obstore`, the one of Polars: it reads AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and their
kin from the environment, and roles of machines and pods. pyarrow, which reads the pairs, has no
put-if-absent.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store
from pyarrow import fs

from judgebias.errors import UsageError

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import S3Config

SCHEME = "s3://"
RETRY_FOR = timedelta(seconds=30)
"""How long one request is tried again; the caller knows better what a longer outage means."""
_TIMEOUT = timedelta(seconds=30)
_ENDPOINT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGION = ("AWS_REGION", "AWS_DEFAULT_REGION")


class ChangedError(OSError):
    """An object is not the version that was to be replaced."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """An object as it was listed or read."""

    name: str
    size: int
    version: str
    """What a conditional write compares."""
    written: datetime
    """By the store's clock."""


def is_uri(place: str) -> bool:
    """Tell a URI from a path of this machine."""
    return "://" in place


class ObjectStore:
    """The objects whose names start with one URI."""

    def __init__(self, uri: str) -> None:
        bucket, _, prefix = uri.removeprefix(SCHEME).rstrip("/").partition("/")
        if not uri.startswith(SCHEME) or not bucket or not prefix:
            raise UsageError(
                f"{uri} cannot hold a run",
                expected=f"a folder, or {SCHEME}BUCKET/PREFIX",
                do="mount other stores as a folder on every node",
            )
        self.uri = uri.rstrip("/")
        endpoint = next((os.environ[name] for name in _ENDPOINT if os.environ.get(name)), "")
        config: S3Config = {"region": _region(bucket, endpoint)}
        if endpoint:
            config["endpoint"] = endpoint
        self._store = S3Store(
            bucket,
            prefix=prefix,
            config=config,
            client_options={"allow_http": endpoint.startswith("http://"), "timeout": _TIMEOUT},
            retry_config={"retry_timeout": RETRY_FOR},
        )

    def list(self, prefix: str = "") -> list[Found]:
        """List all objects below a prefix, page by page, in the order of their names."""
        found: list[Found] = []
        with _plain(f"{self.uri}/{prefix}"):
            for page in obstore.list(self._store, prefix or None):
                found += [
                    Found(
                        name=one["path"],
                        size=one["size"],
                        version=one["e_tag"] or "",
                        written=one["last_modified"],
                    )
                    for one in page
                ]
        return sorted(found, key=lambda one: one.name)

    def read(self, name: str) -> bytes:
        """Read a whole object.

        Raises
        ------
        FileNotFoundError
            When there is none.
        """
        with _plain(f"{self.uri}/{name}"):
            return bytes(obstore.get(self._store, name).bytes())

    def look(self, name: str) -> tuple[bytes, Found]:
        """Read a small object, and what a conditional write of it needs."""
        with _plain(f"{self.uri}/{name}"):
            got = obstore.get(self._store, name)
            meta = got.meta
            found = Found(
                name=name,
                size=meta["size"],
                version=meta["e_tag"] or "",
                written=meta["last_modified"],
            )
            return bytes(got.bytes()), found

    def fetch(self, name: str, path: Path) -> None:
        """Copy an object into a file, a piece at a time."""
        with _plain(f"{self.uri}/{name}"), path.open("wb") as file:
            for piece in obstore.get(self._store, name).stream():
                file.write(piece)

    def write(self, name: str, data: bytes | Path) -> str:
        """Write an object, from memory or from a file, over what is there; returns its version."""
        return self._put(name, data, "overwrite")

    def write_new(self, name: str, data: bytes) -> str:
        """Write an object only where there is none.

        Raises
        ------
        FileExistsError
            When another one is there. One of the very same bytes is ours, from a try whose answer
            was lost.
        """
        try:
            return self._put(name, data, "create")
        except FileExistsError:
            held, found = self.look(name)
            if held != data:
                raise
            return found.version

    def replace(self, name: str, data: bytes, version: str) -> str:
        """Write an object only over this version of it.

        Raises
        ------
        ChangedError
            When it is another one by now.
        """
        return self._put(name, data, {"e_tag": version})

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are gone already are no fault."""
        with _plain(self.uri):
            if listed := list(names):
                obstore.delete(self._store, listed)

    def now(self) -> datetime:
        """Tell the time by the store's clock: that of another machine may be wrong by minutes."""
        name = f".clock.{token_hex(4)}"
        self.write(name, b"")
        _, found = self.look(name)
        self.remove([name])
        return found.written

    def _put(self, name: str, data: bytes | Path, mode: PutMode) -> str:
        with _plain(f"{self.uri}/{name}"):
            if mode == "overwrite":
                return obstore.put(self._store, name, data)["e_tag"] or ""
            put = obstore.put(self._store, name, data, mode=mode, use_multipart=False)
            return put["e_tag"] or ""


def _region(bucket: str, endpoint: str) -> str:
    for name in _REGION:
        if region := os.environ.get(name):
            return region
    if endpoint:
        return "us-east-1"
    try:
        return fs.resolve_s3_region(bucket)
    except OSError:
        return "us-east-1"


@contextmanager
def _plain(what: str) -> Generator[None]:
    """Raise what the client raises as the errors that files raise."""
    try:
        yield
    except AlreadyExistsError as error:
        raise FileExistsError(f"{what} exists") from error
    except PreconditionError as error:
        raise ChangedError(f"{what} was changed") from error
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{what} does not exist") from error
    except BaseError as error:
        # The client's debug source follows on the lines behind the first.
        raise OSError(f"{what}: {str(error).partition(chr(10))[0]}") from error
