"""A real S3 server on loopback, with one bucket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest
from botocore.config import Config

BUCKET = "judged"


def environment(port: int) -> dict[str, str]:
    """What every client reads."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "some-id",
        "AWS_SECRET_ACCESS_KEY": "some-secret",
        "AWS_REGION": "us-east-1",
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "the server ended at once"
        time.sleep(0.1)
    raise AssertionError("the server did not listen within a minute")


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Start the server as a process; gives what must be in the environment of its clients."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        wait_for_port(port, process)
        client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{port}",
            aws_access_key_id="some-id",
            aws_secret_access_key="some-secret",
            region_name="us-east-1",
            config=Config(proxies={}),
        )
        client.create_bucket(Bucket=BUCKET)
        client.close()
        yield environment(port)
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The bucket's URI, with the environment set so that every client finds it."""
    with s3_server() as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield f"s3://{BUCKET}"


def some_id() -> str:
    return os.urandom(4).hex()
