"""Reading a JSON body without trusting its shape."""

from __future__ import annotations

from typing import cast

import jiter


def parse(data: bytes) -> object:
    """Read JSON; a key that stands twice in one object is an error, not the last one's win.

    Raises
    ------
    ValueError
        When the bytes are no JSON.
    """
    return cast("object", jiter.from_json(data, catch_duplicate_keys=True))


def dig(value: object, *path: str | int) -> object:
    """Follow keys and places; None as soon as one is not there."""
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, dict):
                return None
            value = cast("dict[str, object]", value).get(step)
        else:
            items = elements(value)
            if step >= len(items):
                return None
            value = items[step]
    return value


def elements(value: object) -> list[object]:
    """Take a JSON array; anything else has no elements."""
    return cast("list[object]", value) if isinstance(value, list) else []


def keys(value: object) -> list[str]:
    """Take the keys of a JSON object; anything else has none."""
    return list(cast("dict[str, object]", value)) if isinstance(value, dict) else []


def string(value: object) -> str:
    """Take a string; anything else reads as an empty one."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """Take a number of tokens: an integer from 0 on; anything else is unknown."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        return None
    return value
