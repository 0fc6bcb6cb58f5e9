"""Reading a run file: TOML in, `RunConfig` out, every fault in one clear block."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from judgebias.config.judge import FunctionJudge, Price, ReplayJudge, SimulatedJudge, WireJudge
from judgebias.config.run import Budget, Engine, Panel, RunConfig, Stop
from judgebias.errors import ConfigError

_JUDGES: Mapping[str, type[BaseModel]] = {
    "openai": WireJudge,
    "anthropic": WireJudge,
    "simulated": SimulatedJudge,
    "replay": ReplayJudge,
    "function": FunctionJudge,
}
_SECTIONS: Mapping[str, type[BaseModel]] = {
    "panel": Panel,
    "budget": Budget,
    "stop": Stop,
    "engine": Engine,
}
_NOT_SHOWN = frozenset({"base_url", "extra"})
"""Keys whose values may hold a password or a token."""


def load_run_file(path: Path) -> RunConfig:
    """Read a run file and check it.

    Raises
    ------
    ConfigError
        The file is missing, is not TOML, or says something it cannot mean; every fault is named
        with its place, an unknown key with the nearest known one.
    """
    try:
        # Editors on Windows put a byte order mark at the head of a file.
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"cannot read the run file {path}: {error.strerror}",
            expected="a TOML file that can be read; the README shows one",
        ) from error
    except (ValueError, RecursionError) as error:
        # Not only TOMLDecodeError: bytes that are no text, a number of thousands of digits, lists
        # within lists without end.
        raise ConfigError(
            f"{path} is not TOML: {error}",
            expected="a TOML file in UTF-8; the README shows one",
            do="mend the file at that place; nothing was asked",
        ) from error
    return check_run(data, where=str(path))


def check_run(data: Mapping[str, Any], *, where: str) -> RunConfig:
    """Turn plain data into a `RunConfig`, or raise `ConfigError` with every fault."""
    try:
        return RunConfig.model_validate(data)
    except ValidationError as error:
        faults = [_sentence(fault) for fault in error.errors(include_url=False)]
        raise ConfigError(
            f"{where}: " + "; ".join(faults),
            do="mend the run file; nothing was asked",
        ) from error


def _sentence(fault: ErrorDetails) -> str:
    place = _place(fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"unknown key `{place}`{_nearest(fault['loc'])}"
    if fault["type"].startswith("union_tag"):
        return _wrong_provider(place, fault["input"])
    if fault["type"] == "missing":
        return f"`{place}` is missing"
    message = fault["msg"].removeprefix("Value error, ")
    if not _NOT_SHOWN.isdisjoint(fault["loc"]):
        return f"`{place}`: {message}"
    return f"`{place}`: {message}, got {_shown(fault['input'])}" if place else message


def _wrong_provider(place: str, judge: object) -> str:
    known = f"known are {', '.join(sorted(_JUDGES))}"
    given = judge.get("provider") if isinstance(judge, Mapping) else None
    if given is None:
        return f"`{place}.provider` is missing; {known}"
    return f"`{place}.provider`: there is no provider {_shown(given)}; {known}"


def _place(loc: tuple[int | str, ...]) -> str:
    """Name a place as the file's author sees it: judges are counted from 1, unions unnamed."""
    words: list[str] = []
    for index, part in enumerate(loc):
        if isinstance(part, int):
            words[-1] += f"[{part + 1}]"
        elif not (index == 2 and loc[0] == "judges" and part in _JUDGES):
            words.append(part)
    return ".".join(words)


def _nearest(loc: tuple[int | str, ...]) -> str:
    known = list(_known_keys(loc))
    near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
    return f", did you mean `{near[0]}`?" if near else f"; known are {', '.join(sorted(known))}"


def _known_keys(loc: tuple[int | str, ...]) -> Iterator[str]:
    model: type[BaseModel] = RunConfig
    if loc[0] == "judges" and len(loc) > 3:
        model = Price if loc[3] == "price" and len(loc) > 4 else _JUDGES[str(loc[2])]
    elif len(loc) > 1:
        model = _SECTIONS.get(str(loc[0]), RunConfig)
    yield from model.model_fields


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to write out integers of thousands of digits.
        return "a number of thousands of digits"
    return text if len(text) <= 80 else text[:77] + "..."
