"""What every test of the pairs may use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from judgebias.pairs import close_readers


@pytest.fixture(autouse=True)
def _no_reader_stays_open() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    close_readers()
