"""Reading a template: built in or a user's file, checked before anything is asked."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from judgebias.errors import ConfigError
from judgebias.prompts.template import TAGS, Template

BUILT_IN = ("pairwise", "concise", "criteria")
"""The templates that come with the package."""

_REQUIRED = ("question", "first", "second")
_FIXED = ("rubric", "criteria")
_TOKEN = re.compile(r"(\{\{|\}\}|\{[^{}\n]*\}|[{}])")
_LONGEST_PATH = 200


def load_template(
    name: str, rubric: str = "", criteria: tuple[str, ...] = (), base_folder: Path = Path()
) -> Template:
    """Load a built-in template by its name, or a file.

    Parameters
    ----------
    name
        `pairwise`, `concise`, `criteria`, or a file's path relative to `base_folder`.
    rubric
        The text itself, or a file's path relative to `base_folder`; "" = the built-in rubric.
    criteria
        Yes/no questions, for a template with a place for them.
    base_folder
        The folder of the run file.

    Raises
    ------
    ConfigError
        When a file is missing, a placeholder is missing, unknown or twice there, a brace stands
        alone, or a rubric or criteria are given to a template that has no place for them.
    """
    source = _packaged(name) if name in BUILT_IN else _read(base_folder / name, name)
    tokens = _tokens(source, name)
    _check(tokens, name)
    fills = {
        "rubric": _rubric(rubric, name, base_folder, wanted="rubric" in tokens[1::2]),
        "criteria": _criteria(criteria, name, wanted="criteria" in tokens[1::2]),
    }
    fixed, parts = _split(tokens, fills)
    return Template(name=name, fixed=fixed, parts=parts, criteria=criteria)


def _packaged(name: str) -> str:
    return (resources.files("judgebias") / "templates" / f"{name}.txt").read_text(encoding="utf-8")


def _read(path: Path, name: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the template {name!r}: {error}",
            expected=f"one of {', '.join(BUILT_IN)}, or a UTF-8 text file beside the run file",
        ) from error


def _tokens(source: str, name: str) -> list[str]:
    """Take the source apart: literals at even places, names of placeholders at odd ones."""
    tokens = [""]
    for piece in _TOKEN.split(source):
        if piece in ("{{", "}}"):
            tokens[-1] += piece[0]
        elif piece in ("{", "}"):
            raise ConfigError(
                f"the template {name!r} has a single {piece!r}",
                expected="placeholders such as {question}; a literal brace is written twice",
            )
        elif piece.startswith("{"):
            tokens += [piece[1:-1], ""]
        else:
            tokens[-1] += piece
    return tokens


def _check(tokens: list[str], name: str) -> None:
    names = tokens[1::2]
    known = (*_REQUIRED, "reference", *_FIXED)
    faults = [
        *(f"unknown {{{found}}}" for found in dict.fromkeys(names) if found not in known),
        *(f"no {{{wanted}}}" for wanted in _REQUIRED if wanted not in names),
        *(f"{{{twice}}} more than once" for twice in known if names.count(twice) > 1),
    ]
    if faults:
        raise ConfigError(
            f"the template {name!r} has {', '.join(faults)}",
            expected="{question}, {first} and {second} once each; {reference}, {rubric} and"
            " {criteria} at most once; a literal brace is written twice",
        )


def _rubric(rubric: str, name: str, base_folder: Path, *, wanted: bool) -> str:
    if not wanted:
        if rubric:
            raise ConfigError(
                f"a rubric is given, but the template {name!r} has no place for it",
                do="put {rubric} into the template, or leave the rubric out",
            )
        return ""
    if not rubric:
        return _packaged(f"rubric_{name if name == 'concise' else 'pairwise'}").strip()
    return (_file_text(rubric, base_folder) or rubric).strip()


def _file_text(rubric: str, base_folder: Path) -> str:
    """Read the rubric's file where `rubric` names one; "" where it is the text itself."""
    if "\n" in rubric or len(rubric) > _LONGEST_PATH:
        return ""
    path = base_folder / rubric
    if not path.is_file():
        if re.fullmatch(r"\S+\.(txt|md)", rubric):
            raise ConfigError(
                f"cannot read the rubric's file {rubric!r}",
                expected="the text itself, or a UTF-8 file beside the run file",
            )
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the rubric's file {rubric!r}: {error}") from error


def _criteria(criteria: tuple[str, ...], name: str, *, wanted: bool) -> str:
    if wanted == bool(criteria):
        return "\n".join(f"{n}. {text}" for n, text in enumerate(criteria, start=1))
    if wanted:
        given, do = "needs criteria and got none", "give yes/no questions as `criteria`"
    else:
        given, do = "has no place for criteria", 'use template = "criteria", or put {criteria} in'
    raise ConfigError(f"the template {name!r} {given}", do=do)


def _split(tokens: list[str], fills: dict[str, str]) -> tuple[str, tuple[str, ...]]:
    """Cut before the first text of a pair, and fill in what is the same for every call."""
    parts = [tokens[0]]
    for n in range(1, len(tokens), 2):
        if tokens[n] in TAGS:
            parts += [tokens[n], tokens[n + 1]]
        else:
            parts[-1] += fills[tokens[n]] + tokens[n + 1]
    fixed, parts[0] = parts[0], ""
    parts[-1] = parts[-1].rstrip("\n")
    return fixed.strip("\n"), tuple(parts)
