"""HTTP/1.1 as far as two SDKs speak it, with the wire in our hands.

A web framework refuses to send a wrong Content-Length or to reset a connection in mid-body, and
costs three times the CPU of this file; a benchmark's server must not be what is measured.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_LINGER_ZERO = struct.pack("ii", 1, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request, whole."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class BadRequest(Exception):
    """Bytes that are not HTTP as this server reads it."""


class Connection(asyncio.Protocol):
    """One client connection; `handle` must end every request with `finish`, `reset` or `close`."""

    def __init__(
        self, handle: Callable[[Request, Connection], None], connections: set[Connection]
    ) -> None:
        self._handle = handle
        self._connections = connections
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self.on_lost: Callable[[], None] | None = None
        """Called once when the client goes away before the answer was finished."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's, so this cannot be an isinstance.
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._transport = None
        self._connections.discard(self)
        lost, self.on_lost = self.on_lost, None
        if lost is not None:
            lost()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        try:
            request = take_request(self._buffer)
        except BadRequest as error:
            self.write(response_head(400, {"connection": "close"}, 0) + str(error).encode())
            self.close()
            return
        if request is not None:
            self._busy = True
            self._handle(request, self)

    @property
    def alive(self) -> bool:
        """Whether the client is still there."""
        return self._transport is not None

    def write(self, data: bytes) -> None:
        """Send bytes of the answer as they are."""
        if self._transport is not None:
            self._transport.write(data)

    def finish(self) -> None:
        """End this answer and go on with the next request of the connection."""
        self.on_lost = None
        self._busy = False
        if self._buffer and self._transport is not None:
            self._next()

    def close(self) -> None:
        """Send what is buffered, then close."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Close so that the client sees a reset, not an orderly end."""
        if self._transport is None:
            return
        peer: socket.socket | None = self._transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self._transport.abort()


def response_head(status: int, headers: dict[str, str], length: int) -> bytes:
    """Write the status line and the headers, Content-Length last."""
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines.append(f"content-length: {length}\r\n\r\n")
    return "\r\n".join(lines).encode("latin-1")


def take_request(buffer: bytearray) -> Request | None:
    """Cut the first whole request off the buffer; None while it is not whole.

    Raises
    ------
    BadRequest
        When the head cannot be read.
    """
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = buffer[:end].decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3:
        raise BadRequest(f"not a request line: {lines[0]!r}")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    taken = _take_body(buffer, end + 4, headers)
    if taken is None:
        return None
    body, stop = taken
    del buffer[:stop]
    return Request(method=words[0], path=words[1], headers=headers, body=body)


def _take_body(buffer: bytearray, start: int, headers: dict[str, str]) -> tuple[bytes, int] | None:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return _take_chunks(buffer, start)
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        raise BadRequest(f"not a Content-Length: {length!r}")
    stop = start + int(length)
    return (bytes(buffer[start:stop]), stop) if len(buffer) >= stop else None


def _take_chunks(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    body = bytearray()
    while True:
        line_end = buffer.find(b"\r\n", start)
        if line_end < 0:
            return None
        try:
            size = int(bytes(buffer[start:line_end]).split(b";")[0], 16)
        except ValueError as error:
            raise BadRequest("not a chunk size") from error
        stop = line_end + 2 + size + 2
        if len(buffer) < stop:
            return None
        body += buffer[line_end + 2 : stop - 2]
        start = stop
        if size == 0:
            return bytes(body), start
