"""Connecting to Ray: an address where nobody listens is one clear error, and at once."""

from __future__ import annotations

import socket

import pytest

from judgebias.errors import UsageError
from judgebias.pipeline.cluster import connected


def test_nobody_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with (
            pytest.raises(UsageError, match="cannot reach Ray at 127"),
            connected(address, workers=0),
        ):
            pass
