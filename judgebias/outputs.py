"""The files a run writes, and whether an input that is read by folder or glob would take them in.

A run that read its own tables as pairs would refuse its next start, or overwrite what it was given.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from judgebias.errors import ConfigError

_TABLES: Final = (
    *("repeats", "self_pair", "matchups", "matchup_strength", "length", "length_bands", "tone"),
    *("self_preference", "agreement", "panel", "ranking", "wins", "failures", "costs", "tests"),
    *("flips", "model_changes", "sampled", "texts"),
)
OUTPUTS: Final = (
    *("summary.csv", "summary.json", "summary.parquet", "summary.md", "verdicts.parquet"),
    *("calls.parquet", "self_pair_calls.parquet", "rejects.jsonl", "run.json", "report.html"),
    "journal/pairs.parquet",
    *(f"tables/{name}.csv" for name in _TABLES),
)
"""Every file of a run directory that has a name of its own, relative to it."""


def refuse_own_outputs(what: str, source: str, *, base: Path, out: Path | str, deep: bool) -> None:
    """Refuse an input that would read, or be overwritten by, the files written to `out`.

    Parameters
    ----------
    what
        The setting that names the input, for the message.
    source
        A file, folder or glob, relative to `base`; an address elsewhere is no concern.
    out
        The folder that is written; one elsewhere is no concern either.
    deep
        Whether a folder stands for everything below it, and not only for the files in it.

    Raises
    ------
    ConfigError
        When a file that is written would be read.
    """
    source = source.removeprefix("file://")
    if "://" in source or "://" in str(out):
        return
    out = Path(out)
    try:
        taken = next(_taken(base / source, out.resolve(), deep=deep), None)
    except (OSError, RuntimeError):
        # A path that cannot even be looked at: whoever opens it says so in its own words.
        return
    if taken is not None:
        raise ConfigError(
            f"{what} = {source!r} would read what the run writes: {out / taken}",
            expected="results in a folder of their own, away from what is read",
            do="choose another `out` or --out, or move the input to a folder of its own",
        )


def _taken(path: Path, out: Path, *, deep: bool) -> Iterator[str]:
    """Give the outputs that an input takes in."""
    if path.is_dir():
        folder = path.resolve()
        for name in OUTPUTS:
            parents = (out / name).parents
            # A table may be a folder itself.
            if folder in ((out / name), *(parents if deep else parents[:1])):
                yield name
    elif path.exists() or not glob.has_magic(str(path)):
        yield from (name for name in OUTPUTS if out / name == path.resolve())
    else:
        pattern = _resolved(path).parts
        yield from (name for name in OUTPUTS if _matches((out / name).parts, pattern))


def _resolved(pattern: Path) -> Path:
    """Follow links in the part of a glob that names one folder."""
    fixed = next(folder for folder in pattern.parents if not glob.has_magic(str(folder)))
    return fixed.resolve() / pattern.relative_to(fixed)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Tell whether a recursive glob finds a path, both taken apart."""
    if not pattern:
        return not parts
    head, rest = pattern[0], pattern[1:]
    if head == "**":
        deeper = bool(parts) and not parts[0].startswith(".") and _matches(parts[1:], pattern)
        return deeper or _matches(parts, rest) or (not rest and bool(parts))
    if not parts or (parts[0].startswith(".") and not head.startswith(".")):
        return False
    return fnmatchcase(parts[0], head) and _matches(parts[1:], rest)
