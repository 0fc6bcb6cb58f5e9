"""`judgebias init`: a run file to start from, every setting with its default."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from judgebias.errors import UsageError


def starting_text() -> str:
    """Give the run file that comes with the package."""
    return (resources.files("judgebias") / "templates" / "run.toml").read_text(encoding="utf-8")


def write_run_file(path: Path) -> None:
    """Write a commented run file; one that is there already stays.

    Raises
    ------
    UsageError
        There is such a file, or it cannot be written.
    """
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(starting_text())
    except FileExistsError as error:
        raise UsageError(
            f"{path} is there already, and stays as it is", do="name another file"
        ) from error
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", expected="a folder that can be written"
        ) from error
