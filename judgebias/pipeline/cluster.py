"""Connecting to Ray: a fresh local one, or the cluster at an address."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

import ray

from judgebias.errors import UsageError
from judgebias.pipeline.knock import knock
from judgebias.pipeline.place import ADDRESSES, LOCAL, checked_address, named
from judgebias.pipeline.quiet import FAREWELL, quiet_ray

FAREWELL_S = 10.0

OBJECT_STORE_BYTES = 256 * 2**20
"""A local store holds one small row per block and never a text; what is shared comes on top."""


@contextmanager
def connected(address: str, *, workers: int, shared_bytes: int = 0) -> Generator[int]:
    """Connect, give the number of CPUs, and disconnect; a Ray that is connected already is used.

    `shared_bytes` is what the workers share: a local store without room would write it to disk.

    Raises
    ------
    UsageError
        When the cluster cannot be reached.
    """
    if ray.is_initialized():
        yield _quiet_cpus()
        return
    quiet_ray()
    given, address = address, checked_address(address)
    try:
        with _hushed(), _same_handlers():
            _connect(address, workers, shared_bytes)
    except Exception as error:
        # Ray raises whatever it likes while it starts, plain Exception too.
        _leave()
        raise _unreachable(given, address, error) from error
    try:
        yield _quiet_cpus()
    finally:
        _leave()


def _leave() -> None:
    """Disconnect, but do not wait for a Ray that is gone: its farewell would take a minute."""
    farewell = threading.Thread(target=ray.shutdown, name=FAREWELL, daemon=True)
    farewell.start()
    farewell.join(FAREWELL_S)


def _quiet_cpus() -> int:
    for name in ("ray", "ray.data"):
        # What a task raises is raised in the driver too, and said there once.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextmanager
def _hushed() -> Generator[None]:
    """Keep what Ray's native code says while it starts off the user's screen."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _same_handlers() -> Generator[None]:
    """Take back the signals: Ray puts its own handler for SIGTERM in place when it starts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _unreachable(given: str, address: str, error: Exception) -> UsageError:
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    if not address:
        return UsageError(
            f"cannot start a local Ray: {first_line}",
            expected="a machine with memory, a temporary folder and free ports to start it on",
            do="see the logs in Ray's temporary folder, or give a running cluster's --address",
        )
    return UsageError(
        f"cannot reach Ray at {named(given)}: {first_line}",
        expected=ADDRESSES,
        do="see that the cluster runs and that this machine reaches it; nothing was asked",
    )


def _connect(address: str, workers: int, shared_bytes: int) -> None:
    if address:
        ray.init(address=knock(address), logging_level=logging.ERROR, log_to_driver=False)
        return
    ray.init(
        address=LOCAL,
        num_cpus=max(workers, os.cpu_count() or 1),
        include_dashboard=False,
        object_store_memory=OBJECT_STORE_BYTES + shared_bytes,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )
