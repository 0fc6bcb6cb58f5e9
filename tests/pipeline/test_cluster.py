"""Connecting to Ray: an address that cannot work is one clear error, within seconds."""

from __future__ import annotations

import http.server
import os
import socket
import threading
import time
from collections.abc import Generator
from concurrent import futures
from contextlib import contextmanager

import grpc
import pytest
import ray

from judgebias.errors import UsageError
from judgebias.pipeline import cluster, knock
from judgebias.pipeline.cluster import connected
from judgebias.pipeline.place import checked_address, refuse_crowd


@contextmanager
def nobody() -> Generator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{free.getsockname()[1]}"


@contextmanager
def mute() -> Generator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def web() -> Generator[str]:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), http.server.BaseHTTPRequestHandler
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def other_grpc() -> Generator[str]:
    """As Ray's own client port is: it speaks, but it is no head."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


@pytest.mark.parametrize("by", ["engine", "environment"])
@pytest.mark.parametrize("who", [nobody, mute, web, other_grpc])
def test_who_is_no_ray_head_is_said_within_seconds(
    who: object, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(knock, "KNOCK_S", 0.5)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray itself would try for minutes"))
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    started = time.monotonic()
    with who() as address:  # type: ignore[operator]
        monkeypatch.setenv("RAY_ADDRESS", address)
        given = address if by == "engine" else ""
        name = "engine.address" if by == "engine" else "RAY_ADDRESS"
        with (
            pytest.raises(UsageError, match=f"cannot reach Ray at {name} = '{address}'") as error,
            connected(given, workers=0),
        ):
            pass
    assert time.monotonic() - started < 5
    assert error.value.expected
    assert "nothing was asked" in error.value.do


@pytest.mark.parametrize(
    "address",
    [
        *("nonsense", "http://127.0.0.1:8265", "ray://127.0.0.1:10001", "127.0.0.1", ":6379"),
        *("[::1", "host name:1", "h:99999", "h:0", "h:x", "h:", "a:b:1", "h:1/x", "AUTO"),
    ],
)
def test_what_is_no_address_is_refused_by_its_setting(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", address)
    for given, name in ((address, "engine.address"), ("", "RAY_ADDRESS")):
        with pytest.raises(UsageError) as error:
            checked_address(given)
        assert error.value.given == f"{name} = {address!r} is no address of Ray"
        assert "HOST:PORT" in error.value.expected
        assert error.value.do
    assert checked_address("local") == ""


@pytest.mark.parametrize("address", ["auto", "h:6379", "[::1]:6379", "10.0.0.1:1", "h-1.x_y:65535"])
def test_an_address_may_come_from_either_place(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f" {address} ")
    assert checked_address("") == checked_address(address) == address
    monkeypatch.delenv("RAY_ADDRESS")
    assert checked_address("") == ""


def test_a_ray_that_cannot_start_here_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: object) -> None:
        raise Exception("The current node timed out during startup.\nmore")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with (
        pytest.raises(UsageError, match="cannot start a local Ray: The current node timed out"),
        connected("local", workers=0),
    ):
        pass
    assert cluster.LOCAL == "local"


def test_more_workers_than_a_machine_can_start_are_refused() -> None:
    most = 32 * (os.cpu_count() or 1)
    refuse_crowd("local", most)
    refuse_crowd("elsewhere:6379", most + 1)
    with pytest.raises(UsageError, match=f"engine.workers = {most + 1} on this machine") as error:
        refuse_crowd("local", most + 1)
    assert f"at most {most}" in error.value.expected
