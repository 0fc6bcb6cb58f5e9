"""What single values of a run file may be: names, paths, addresses, numbers that fit."""

from __future__ import annotations

import json
import unicodedata
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

LONGEST_NAME = 200
_LONGEST_PART = 255
"""Bytes of one name in a path, on every file system in use."""
_LONGEST_PATH = 4095
_DAY_S = 86_400


def plain_path(text: str) -> str:
    """Refuse a path or address that no file system can have, before anything is opened by it."""
    if odd := _odd_character(text):
        msg = f"a path cannot hold the character {odd}"
        raise ValueError(msg)
    if "://" in text:
        return text
    longest = max(len(part.encode()) for part in text.split("/"))
    if longest > _LONGEST_PART or len(text.encode()) > _LONGEST_PATH:
        msg = (
            f"a path has at most {_LONGEST_PATH} bytes, and at most {_LONGEST_PART} in one name; "
            f"this one has {len(text.encode())}, and {longest} in its longest name"
        )
        raise ValueError(msg)
    return text


def judge_name(name: str) -> str:
    """Refuse a name that a table, a line on the screen or a file name could not show."""
    if name != name.strip() or _odd_character(name):
        msg = "a judge's name has no control characters and no blanks around it"
        raise ValueError(msg)
    if len(name) > LONGEST_NAME:
        msg = f"a judge's name has at most {LONGEST_NAME} characters, this one {len(name)}"
        raise ValueError(msg)
    if name == "panel":
        msg = "the name `panel` is kept for the panel's own row"
        raise ValueError(msg)
    return name


def server_address(url: str) -> str:
    """Refuse what is no http or https address; "" stays."""
    if not url:
        return url
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number or too large, brackets that do not close
        good = False
    if not good or _odd_character(url) or " " in url:
        # What was given may hold a password: it is not repeated here.
        msg = "this is no address of a server; expected http://HOST[:PORT]/PATH or https://..."
        raise ValueError(msg)
    return url


def json_only(extra: dict[str, Any]) -> dict[str, Any]:
    """Refuse what no request body can hold: TOML has dates, nan and inf, and JSON has none."""
    try:
        json.dumps(extra, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"this cannot be sent as JSON ({error})"
        raise ValueError(msg) from None
    return extra


def _odd_character(text: str) -> str:
    """Name the first control character; "" for none."""
    odd = next((c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp")), "")
    return f"U+{ord(odd):04X}" if odd else ""


PathText = Annotated[str, AfterValidator(plain_path)]
JudgeName = Annotated[str, AfterValidator(judge_name)]
ServerAddress = Annotated[str, AfterValidator(server_address)]
JsonObject = Annotated[dict[str, Any], AfterValidator(json_only)]
Seed = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Seconds = Annotated[float, Field(ge=0, le=7 * _DAY_S)]
Weight = Annotated[float, Field(ge=-1e6, le=1e6)]
"""Larger ones could add up to what is neither positive nor negative."""
Width = Annotated[float, Field(ge=0, le=1e6)]
