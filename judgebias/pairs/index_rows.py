"""The rows of an index, in memory or in a file that is written while the survey goes on.

An index that fits in one row group stays in memory, unless it is wanted in a file: small inputs
touch no disk, and large ones never lie in memory whole.
"""

# pyarrow ships no complete types: a table or a schema is unknown to the checker.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from judgebias.pairs.index import INDEX
from judgebias.publish import cannot_be_written

GROUP_ROWS = 16_384
"""Rows of a row group: what lies in memory at once while an index is written or read in parts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexRows:
    """The rows of an index, in input order."""

    scan: pl.LazyFrame
    height: int
    file: Path | None = None
    """Where they lie; None = in memory."""
    keeper: object = None
    """Removes a temporary file when it goes."""

    @classmethod
    def of(cls, frame: pl.DataFrame) -> Self:
        """Give rows that lie in memory."""
        return cls(scan=frame.lazy(), height=frame.height)

    def parts(self, *columns: str) -> Iterator[pl.DataFrame]:
        """Read columns in parts, in order; never more than a part is held."""
        wanted = self.scan.select(columns)
        for first in range(0, self.height, GROUP_ROWS):
            yield wanted.slice(first, GROUP_ROWS).collect()

    def gather(self, places: npt.NDArray[np.int64], *columns: str) -> pl.DataFrame:
        """Read columns of the rows at these ascending places."""
        found = [pl.DataFrame(schema={name: INDEX[name] for name in columns})]
        first = 0
        for part in self.parts(*columns):
            end = first + part.height
            inside = places[np.searchsorted(places, first) : np.searchsorted(places, end)]
            if inside.size:
                found.append(part[inside - first])
            first = end
        return pl.concat(found)

    def without(self, places: npt.NDArray[np.int64]) -> IndexRows:
        """Leave rows out, by their places; a file is written again."""
        keep = np.ones(self.height, dtype=np.bool_)
        keep[places] = False
        beside = self.file and self.file.with_name(f"{self.file.name}.less")
        with IndexWriter(beside) as writer:
            first = 0
            for part in self.parts(*INDEX):
                end = first + part.height
                writer.add(part.filter(pl.Series(keep[first:end])))
                first = end
            less = writer.close()
        if beside is None or self.file is None:
            return less
        beside.replace(self.file)
        return IndexRows(
            scan=scan_file(self.file), height=less.height, file=self.file, keeper=self.keeper
        )


class IndexWriter:
    """Takes an index frame by frame; a context manager that leaves no part of a file behind.

    Parameters
    ----------
    path
        The file to write; None = memory, and a temporary file where that would hold too much.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._keeper: _TemporaryFolder | None = None
        self._file: pq.ParquetWriter | None = None
        self._held = [pl.DataFrame(schema=INDEX)]
        self._n_held = self._height = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._path is not None:
            # What cannot be written cannot be closed either, and the first fault is the one told.
            with suppress(OSError):
                if self._file is not None:
                    self._file.close()
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def add(self, frame: pl.DataFrame) -> None:
        """Take the next rows.

        Raises
        ------
        UsageError
            The disk does not take them.
        """
        self._held.append(frame.select(*INDEX))
        self._n_held += frame.height
        self._height += frame.height
        while self._n_held >= GROUP_ROWS:
            rows = pl.concat(self._held)
            self._write(rows[:GROUP_ROWS])
            self._held, self._n_held = [rows[GROUP_ROWS:]], rows.height - GROUP_ROWS

    def close(self) -> IndexRows:
        """End the index, and give its rows back."""
        rest = pl.concat(self._held, rechunk=True)
        if self._path is None:
            return IndexRows.of(rest)
        file = self._write(rest)
        with _writing(self._path):
            file.close()
        return IndexRows(
            scan=scan_file(self._path), height=self._height, file=self._path, keeper=self._keeper
        )

    def _write(self, rows: pl.DataFrame) -> pq.ParquetWriter:
        table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
        if self._path is None:
            self._keeper = _TemporaryFolder()
            self._path = self._keeper.path / "index.parquet"
        with _writing(self._path):
            if self._file is None:
                self._file = _open(self._path, table.schema)
            self._file.write_table(table)
        return self._file


def scan_file(file: Path) -> pl.LazyFrame:
    """Read an index lazily; a folder may be called "run[1]", and its name is no pattern."""
    return pl.scan_parquet(file, glob=False)


class _TemporaryFolder:
    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="judgebias-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _open(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd")


@contextmanager
def _writing(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as fault:
        raise cannot_be_written(path, fault) from fault
