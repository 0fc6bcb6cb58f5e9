"""One local Ray for the tests that run the job in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import ray

from judgebias.pipeline.cluster import connected


@pytest.fixture(scope="session")
def local_ray() -> Iterator[int]:
    """A local Ray with two CPUs, shared by the session."""
    with connected("local", workers=2) as cpus:
        assert ray.is_initialized()
        yield cpus
