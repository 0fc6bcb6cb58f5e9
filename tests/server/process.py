"""The counting server as its own process: a killed run does not take the bill with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Self, cast

from tests.server.asked import Json
from tests.server.planted import Markers, Planted
from tests.server.script import Rule, rules_to_json
from tests.server.server import Outage, Setup

_ROOT = Path(__file__).resolve().parents[2]


class ServerProcess:
    """Starts `python -m tests.server` with its files in `folder`, and asks it over its socket.

    The judges of the setup must be `Planted`, the extraction `Markers`: they cross as JSON.
    """

    def __init__(self, folder: Path, setup: Setup | None = None) -> None:
        self._folder = folder
        self._setup = Setup() if setup is None else setup
        self.log_file = folder / "requests.jsonl"

    def __enter__(self) -> Self:
        port_file = self._folder / "port"
        port_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.server", "--setup", setup_to_json(self._setup)]
        command += ["--port-file", str(port_file), "--log", str(self.log_file)]
        # Its own session: a signal to the group of the run under test passes it by.
        self._process = subprocess.Popen(command, cwd=_ROOT, start_new_session=True)
        self.port = self._wait_for(port_file)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_for(self, port_file: Path) -> int:
        until = time.monotonic() + 30
        while not port_file.exists():
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended at once with {self._process.returncode}")
            if time.monotonic() > until:
                self.__exit__()
                raise TimeoutError("the server did not listen within 30 s")
            time.sleep(0.02)
        return int(port_file.read_text())

    @property
    def url(self) -> str:
        """The base URL for the Anthropic SDK, which adds `/v1` itself."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The base URL for the OpenAI SDK."""
        return f"{self.url}/v1"

    def bill(self) -> dict[str, object]:
        """Sum up what was asked until now."""
        return cast("dict[str, object]", self._ask("/_bill"))

    def log(self) -> list[Json]:
        """List the requests accepted until now."""
        return cast("list[Json]", self._ask("/_log"))

    def script(self, *rules: Rule) -> None:
        """Follow these rules from now on."""
        self._ask("/_script", rules_to_json(rules))

    def outage(self, kind: Outage, seconds: float) -> None:
        """Be out of order for a while."""
        self._ask("/_outage", json.dumps({"kind": kind, "seconds": seconds}))

    def send_signal(self, number: int) -> None:
        """Signal the server and, for a deadly signal, wait until it is gone."""
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self._process.wait(timeout=10)

    def _ask(self, path: str, body: str | None = None) -> object:
        data = None if body is None else body.encode()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + path, data=data, timeout=30) as response:
            return json.loads(response.read())


def setup_to_json(setup: Setup) -> str:
    """Write a setup for another process.

    Raises
    ------
    TypeError
        When a judge or the extraction is a function of the test.
    """
    judges: dict[str, Mapping[str, object]] = {}
    for glob, judge in setup.judges.items():
        if not isinstance(judge, Planted):
            raise TypeError(f"the judge of {glob!r} is {judge!r}; only Planted crosses processes")
        judges[glob] = asdict(judge)
    if not isinstance(setup.extract, Markers):
        raise TypeError(f"extract is {setup.extract!r}; only Markers crosses processes")
    return json.dumps(
        {
            "judges": judges,
            "extract": asdict(setup.extract),
            "rules": json.loads(rules_to_json(setup.rules)),
            "limits": {glob: asdict(limit) for glob, limit in setup.limits.items()},
            "keys": sorted(setup.keys),
            "latency_s": setup.latency_s,
            "clock_skew_s": setup.clock_skew_s,
        }
    )
