"""The connections of both SDKs: aiohttp, a pool as large as the window, no redirects.

aiohttp's pool does not slow down when many calls wait for it, and costs half the CPU of the
default. Certificates are always checked; a private authority goes into SSL_CERT_FILE.
"""

from __future__ import annotations

import logging
from urllib.parse import urlsplit, urlunsplit

import httpx2

CONNECT_S = 30.0
KEEP_ALIVE_S = 30.0


def limits(window: int) -> httpx2.Limits:
    """Size the pool to the calls in flight, so that no call waits for a connection."""
    return httpx2.Limits(
        max_connections=window, max_keepalive_connections=window, keepalive_expiry=KEEP_ALIVE_S
    )


def timeouts() -> httpx2.Timeout:
    """Bound connecting alone: a reply's deadline is total and kept outside of the SDK."""
    return httpx2.Timeout(None, connect=CONNECT_S)


def address(base_url: str, path: str) -> str:
    """Join a path to a base URL, before its query (Azure has `?api-version=...`)."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, parts.query, ""))


def received_headers(response: httpx2.Response) -> dict[str, str]:
    """Give headers as plain data, names in lower case."""
    return {name.lower(): value for name, value in response.headers.items()}


def quiet(sdk: str) -> None:
    """Keep the SDK's log at warnings: OPENAI_LOG and ANTHROPIC_LOG would print prompts."""
    logger = logging.getLogger(sdk)
    if logger.getEffectiveLevel() < logging.WARNING:
        logger.setLevel(logging.WARNING)
