"""Puts an answer on the wire as its action says: late, dripping, cut, reset or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.server.http import Connection, response_head
from tests.server.script import Action


class Delivery:
    """One answer on its way; `ended` is called once, with whether all of it was sent."""

    def __init__(
        self,
        connection: Connection,
        action: Action,
        ended: Callable[[bool], None],
    ) -> None:
        self._connection = connection
        self._action = action
        self._ended = ended
        self._timer: asyncio.TimerHandle | None = None
        self._payload = b""
        connection.on_lost = self._lost

    def start(self, headers: dict[str, str], body: bytes, delay_s: float) -> None:
        """Send now or after the delay."""
        if self._action.hang:
            return
        self._payload = response_head(self._action.status, headers, len(body)) + body
        if delay_s > 0:
            self._later(delay_s, self._send, len(body))
        else:
            self._send(len(body))

    def _send(self, body_length: int) -> None:
        action, connection = self._action, self._connection
        if action.reset:
            connection.reset()
        elif action.cut:
            connection.write(self._payload[: len(self._payload) - (body_length + 1) // 2])
            # A reset at once would overtake the bytes before it.
            end = connection.reset if action.cut == "reset" else connection.close
            self._later(0.02, end)
        elif action.drip_bytes:
            start = len(self._payload) - body_length
            connection.write(self._payload[:start])
            self._drip(start)
        else:
            connection.write(self._payload)
            self._done()

    def _drip(self, start: int) -> None:
        stop = start + self._action.drip_bytes
        self._connection.write(self._payload[start:stop])
        if stop >= len(self._payload):
            self._done()
        else:
            self._later(self._action.drip_s, self._drip, stop)

    def _later(self, delay_s: float, call: Callable[..., None], *arguments: int) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, call, *arguments)

    def _done(self) -> None:
        self._ended(self._connection.alive)
        self._connection.finish()

    def _lost(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._ended(False)
