"""The provider behind a socket, in a thread of the test."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Literal, Self, TypeAlias, TypeVar

from tests.server.asked import Json, mapping
from tests.server.faults import HANG, RESET, UNAVAILABLE
from tests.server.http import Connection, Request, response_head
from tests.server.provider import Provider, Setup
from tests.server.script import Rule, rules_from_json

try:
    from uvloop import new_event_loop
except ImportError:  # Windows has no uvloop; the server is slower there, not different.
    new_event_loop = asyncio.new_event_loop

Outage: TypeAlias = Literal["unavailable", "refused", "reset", "hang"]
_OUTAGES = {"unavailable": UNAVAILABLE, "reset": RESET, "hang": HANG}
_T = TypeVar("_T")

__all__ = ["CountingServer", "Front", "Outage", "Setup", "new_event_loop"]


class Front:
    """Listens, routes, and answers the questions of the test itself under `/_...`."""

    def __init__(self, setup: Setup, port: int = 0) -> None:
        self.provider = Provider(setup)
        self.port = port
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._reopen: asyncio.Task[None] | None = None
        self.closing = asyncio.Event()

    async def open(self) -> None:
        """Listen; a port of 0 is replaced by the one taken, which stays the same afterwards."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._route, self._connections),
            "127.0.0.1",
            self.port,
            backlog=4096,
            reuse_address=True,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening, drop every connection, write the log."""
        if self._reopen is not None:
            self._reopen.cancel()
        self._shut()
        # Transports report their end one loop turn after the abort.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.provider.bill.close()

    def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.reset()

    def start_outage(self, kind: Outage, seconds: float) -> None:
        """Be out of order for a while; `refused` closes the port, questions included."""
        if kind != "refused":
            self.provider.outage = (_OUTAGES[kind], time.monotonic() + seconds)
            return
        self._shut()
        self._reopen = asyncio.get_running_loop().create_task(self._open_after(seconds))

    async def _open_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self.open()

    def bill(self) -> dict[str, object]:
        """Sum up requests and limits."""
        limits = self.provider.limiter_sums()
        return self.provider.bill.to_json() | {"limits": limits}

    def _route(self, request: Request, connection: Connection) -> None:
        path = request.path.partition("?")[0]
        if path.endswith("/chat/completions") and request.method == "POST":
            self.provider.take("openai", request, connection)
        elif path.endswith("/messages") and request.method == "POST":
            self.provider.take("anthropic", request, connection)
        else:
            status, body = self._admin(request.method, path, request.body)
            content = json.dumps(body).encode()
            kind = {"content-type": "application/json"}
            connection.write(response_head(status, kind, len(content)) + content)
            connection.finish()

    def _admin(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        if (method, path) == ("GET", "/_bill"):
            return 200, self.bill()
        if (method, path) == ("GET", "/_log"):
            return 200, [entry.to_json() for entry in self.provider.bill.entries]
        try:
            given = body.decode()
            if (method, path) == ("POST", "/_script"):
                self.provider.change(rules_from_json(given))
                return 200, {}
            if (method, path) == ("POST", "/_outage"):
                return 200, self._plan_outage(mapping(json.loads(given)))
            if (method, path) == ("POST", "/_stop"):
                self.closing.set()
                return 200, {}
        except (ValueError, TypeError) as error:
            return 400, {"error": {"message": str(error)}}
        return 404, {"error": {"message": f"{method} {path} is not served here"}}

    def _plan_outage(self, wanted: Json) -> Json:
        kind, seconds = wanted.get("kind"), wanted.get("seconds")
        if kind not in ("unavailable", "refused", "reset", "hang"):
            raise ValueError(f"no outage {kind!r}; known: unavailable, refused, reset, hang")
        if not isinstance(seconds, int | float):
            raise TypeError(f"seconds is {seconds!r}, not a number")
        # The answer to this request must leave before the port closes.
        asyncio.get_running_loop().call_later(0.02, self.start_outage, kind, float(seconds))
        return {}


class CountingServer:
    """A server in a thread: `with CountingServer(Setup(...)) as server: ... server.url`."""

    def __init__(self, setup: Setup | None = None) -> None:
        self._setup = Setup() if setup is None else setup
        self._ready: Future[tuple[Front, asyncio.AbstractEventLoop]] = Future()
        self._thread = threading.Thread(target=self._run, name="counting-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._front, self._loop = self._ready.result(timeout=30)
        self.port = self._front.port
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._front.closing.set)
        self._thread.join(timeout=30)

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
        return self._on_loop(self._front.bill)

    def log(self) -> list[Json]:
        """List the requests accepted until now."""
        return self._on_loop(
            lambda: [entry.to_json() for entry in self._front.provider.bill.entries]
        )

    def script(self, *rules: Rule) -> None:
        """Follow these rules from now on."""
        self._on_loop(lambda: self._front.provider.change(list(rules)))

    def admit_keys(self, *keys: str) -> None:
        """Accept these keys from now on; none = any."""
        self._on_loop(lambda: self._front.provider.admit_keys(frozenset(keys)))

    def outage(self, kind: Outage, seconds: float) -> None:
        """Be out of order for a while."""
        self._on_loop(lambda: self._front.start_outage(kind, seconds))

    def _on_loop(self, call: Callable[[], _T]) -> _T:
        result: Future[_T] = Future()

        def run() -> None:
            try:
                result.set_result(call())
            except (ValueError, TypeError, OSError) as error:
                result.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return result.result(timeout=30)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        front = Front(self._setup)
        try:
            await front.open()
        except OSError as error:
            self._ready.set_exception(error)
            return
        self._ready.set_result((front, asyncio.get_running_loop()))
        await front.closing.wait()
        await front.close()
