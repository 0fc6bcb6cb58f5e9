"""A bad network on loopback: a proxy between a judge and the server that spoils responses.

`with FaultProxy(server.port, Toxic(kind="reset", skip=1, times=1)) as proxy: ... proxy.url`. The
server behind it sees and bills every request; what comes back is late, cut, or nothing.
"""

from __future__ import annotations

import asyncio
import datetime
import random
import socket
import ssl
import struct
import tempfile
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Literal, Self, TypeAlias

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Kind: TypeAlias = Literal["latency", "black_hole", "reset", "drip", "half_close"]
_HOST = "127.0.0.1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Toxic:
    """What happens to which responses."""

    kind: Kind
    skip: int = 0
    """Let the first so many responses pass."""
    times: int = 0
    """Spoil so many responses; 0 = no end."""
    probability: float = 1.0
    delay_s: float = 0.3
    """Of latency, and between two bytes of a drip."""


class FaultProxy:
    """Passes everything on, and spoils what its toxic says; runs in a thread of the test."""

    def __init__(
        self, target: int, toxic: Toxic | None = None, *, seed: int = 0, tls: bool = False
    ) -> None:
        self.hits = 0
        """Responses that were spoilt."""
        self._target = target
        self._toxic = toxic
        self._draw = random.Random(seed)
        self._seen = 0
        self._tls = self_signed() if tls else None
        self._ready: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = self._ready.result(timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(timeout=30)

    @property
    def url(self) -> str:
        """The base URL for the Anthropic SDK, which adds `/v1` itself."""
        return f"http{'s' if self._tls else ''}://{_HOST}:{self.port}"

    @property
    def openai_url(self) -> str:
        """The base URL for the OpenAI SDK."""
        return f"{self.url}/v1"

    def _run(self) -> None:
        asyncio.run(self._listen())

    async def _listen(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, _HOST, 0, ssl=self._tls, backlog=1024)
        self._ready.set_result(server.sockets[0].getsockname()[1])
        await self._closing.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, near: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_out: asyncio.StreamWriter | None = None
        try:
            far, far_out = await asyncio.open_connection(_HOST, self._target)
            asked = asyncio.create_task(_pass_on(near, far_out))
            try:
                await self._answer(far, out, asked)
            finally:
                asked.cancel()
        except (OSError, asyncio.CancelledError):
            pass  # either side went away, which is what this is for
        finally:
            self._tasks.discard(task)
            for writer in (out, far_out):
                if writer is not None:
                    writer.transport.abort()

    async def _answer(
        self, far: asyncio.StreamReader, out: asyncio.StreamWriter, asked: asyncio.Task[None]
    ) -> None:
        """Pass responses on until one is spoilt so that the connection is of no more use."""
        while True:
            reading = asyncio.create_task(far.read(1 << 20))
            await asyncio.wait([reading, asked], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
                return
            if not (data := reading.result()):
                return
            if self._toxic is not None and self._is_hit(self._toxic):
                if await _spoil(self._toxic, data, out, asked):
                    return
            else:
                out.write(data)
                await out.drain()

    def _is_hit(self, toxic: Toxic) -> bool:
        self._seen += 1
        turn = self._seen - toxic.skip
        if turn <= 0 or (toxic.times and self.hits >= toxic.times):
            return False
        hit = self._draw.random() < toxic.probability
        self.hits += hit
        return hit


async def _pass_on(near: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await near.read(1 << 20):
            far.write(data)
            await far.drain()


async def _spoil(
    toxic: Toxic, data: bytes, out: asyncio.StreamWriter, client_left: asyncio.Task[None]
) -> bool:
    """Spoil one response; True when nothing more can follow it."""
    # Past the head, in the middle of the body.
    middle = (data.find(b"\r\n\r\n") + 4 + len(data)) // 2
    if toxic.kind == "latency":
        await asyncio.sleep(toxic.delay_s)
        out.write(data)
        return False
    if toxic.kind == "drip":
        await _drip(data, middle, out, toxic.delay_s)
    elif toxic.kind == "reset":
        out.write(data[:middle])
        await out.drain()
        # A reset at once would overtake the bytes before it.
        await asyncio.sleep(0.02)
        _reset_on_close(out)
        return True
    elif toxic.kind == "half_close":
        out.write(data[:middle])
        out.write_eof()
    await client_left
    return True


async def _drip(data: bytes, start: int, out: asyncio.StreamWriter, delay_s: float) -> None:
    out.write(data[:start])
    for at in range(start, len(data)):
        if out.transport.is_closing():
            return
        out.write(data[at : at + 1])
        await asyncio.sleep(delay_s)


def _reset_on_close(out: asyncio.StreamWriter) -> None:
    linger = struct.pack("ii", 1, 0)
    out.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


def self_signed() -> ssl.SSLContext:
    """Make a certificate for this machine that nobody has reason to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(_HOST))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "both.pem"
        secret = key.private_bytes(pem, form, serialization.NoEncryption())
        file.write_bytes(secret + certificate.public_bytes(pem))
        context.load_cert_chain(file)
    return context
