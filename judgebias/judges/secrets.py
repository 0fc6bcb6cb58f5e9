"""Keys: read where they are used, shown nowhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit, urlunsplit

from judgebias.config import WireJudge
from judgebias.errors import ConfigError

USUAL_VARIABLE = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
VENDOR_URL = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}

_MASK = "[key]"
_KEY_SHAPED = re.compile(
    r"(?i:bearer|basic)\s+[^\s'\",;]{8,}"
    r"|\b(?:sk|pk|rk|gsk|xai|nvapi|hf)[-_][A-Za-z0-9_*.-]{6,}"
    r"|\bAIza[A-Za-z0-9_-]{20,}"
)
_NO_KEY = "none"


class Secret:
    """A key that shows itself only when asked by name."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Give the key itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({_MASK})"

    def __str__(self) -> str:
        return _MASK

    def __format__(self, _spec: str) -> str:
        return _MASK

    def __reduce__(self) -> NoReturn:
        """Stay in this process: Ray would write a pickled key into its object store."""
        msg = "a key is never pickled; pass the name of its variable or file instead"
        raise TypeError(msg)

    def redact(self, text: str) -> str:
        """Take this key, and whatever else looks like one, out of a text."""
        if self._value != _NO_KEY:
            text = text.replace(self._value, _MASK)
        return redact(text)

    def conceal(self, text: str) -> str:
        """Take this key, and nothing else, out of a text that is to be kept as it came."""
        return text if self._value == _NO_KEY else text.replace(self._value, _MASK)


def redact(text: str) -> str:
    """Take everything that looks like a key out of a text."""
    return _KEY_SHAPED.sub(_MASK, text)


def read_key(config: WireJudge, environ: Mapping[str, str], base_folder: Path = Path()) -> Secret:
    """Read a judge's key from the variable or file that its configuration names.

    A compatible server without a configured key is asked without one when the vendor's usual
    variable is not set either.

    Raises
    ------
    ConfigError
        When there is no key, or it holds what a header cannot carry. The key is not shown.
    """
    if config.api_key_file:
        place = f"the file {config.api_key_file!r} (api_key_file of judge {config.name!r})"
        try:
            value = (base_folder / config.api_key_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read {place}: {type(error).__name__}") from None
    else:
        name = config.api_key_env or USUAL_VARIABLE[config.provider]
        place = f"the variable {name} (key of judge {config.name!r})"
        value = environ.get(name, "")
        if not value.strip() and config.base_url and not config.api_key_env:
            return Secret(_NO_KEY)
    return _checked(value.strip(), place)


def _checked(value: str, place: str) -> Secret:
    if not value:
        raise ConfigError(
            f"{place} is empty or not set",
            do="put the key there; it is read where the judge is asked, and never written down",
        )
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ConfigError(
            f"{place} holds characters that no key has",
            expected="one line of printable ASCII without blanks",
        )
    return Secret(value)


def endpoint(config: WireJudge) -> str:
    """Name where a judge is asked, without user info and query; this may be shown and kept."""
    parts = urlsplit(config.base_url or VENDOR_URL[config.provider])
    host = parts.hostname or ""
    netloc = f"[{host}]" if ":" in host else host
    if parts.port is not None:
        netloc += f":{parts.port}"
    return urlunsplit((parts.scheme, netloc, parts.path.rstrip("/"), "", ""))
