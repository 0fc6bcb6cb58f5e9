"""Which files are meant: files, folders and globs become a list of files in a fixed order."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO, Final, cast

from judgebias.errors import InputError

KINDS: Final = (".jsonl", ".ndjson", ".csv", ".parquet")


def find_files(sources: Iterable[str | Path]) -> list[Path]:
    """List the record files that are meant, each once.

    Raises
    ------
    InputError
        A source names nothing, or a file of a kind that is not read.
    """
    found: dict[Path, Path] = {}
    for source in sources:
        try:
            for path in _expand(source):
                found.setdefault(path.resolve(), path)
        except (OSError, ValueError) as error:
            # A name that is too long, or a folder that may not be looked into.
            raise InputError(
                f"{source}: cannot be read: {error}", expected=_expected(), do="check the path"
            ) from error
    if not found:
        raise InputError(
            "no source of verdict records was given",
            expected="files, folders or globs",
            do="name at least one",
        )
    return list(found.values())


def kind_of(path: Path) -> str:
    """Tell the kind of a file by its name, compression aside; "" where it is none of ours."""
    name = path.name.lower().removesuffix(".gz")
    return next((kind for kind in KINDS if name.endswith(kind)), "")


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed where its name ends in .gz."""
    if path.name.lower().endswith(".gz"):
        return cast("BinaryIO", gzip.open(path, "rb"))
    return path.open("rb")


def _expand(source: str | Path) -> Iterator[Path]:
    path = Path(source)
    if path.is_dir():
        inside = sorted(
            p for p in path.rglob("*") if p.is_file() and kind_of(p) and _shown(p, path)
        )
        yield from _some(inside, f"{source}: the folder holds no verdict records")
    elif path.is_file():
        if not kind_of(path):
            raise InputError(f"{source}: not a kind of file that is read", expected=_expected())
        yield path
    elif has_magic(str(source)):
        # Path.glob takes no absolute pattern.
        matches = sorted(Path(match) for match in glob(str(source), recursive=True))  # noqa: PTH207
        yield from _some([p for p in matches if p.is_file()], f"{source}: nothing matches")
    else:
        raise InputError(
            f"{source}: no such file or folder", expected=_expected(), do="check the path"
        )


def _shown(path: Path, folder: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)


def _some(paths: list[Path], fault: str) -> list[Path]:
    if not paths:
        raise InputError(fault, expected=_expected(), do="check the path")
    return paths


def _expected() -> str:
    return f"{', '.join(KINDS)}, plain or .gz"
