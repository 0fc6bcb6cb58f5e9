"""Whether a Ray head answers at an address: found out within seconds.

Ray gives no quick answer of its own: behind an address where something else listens, it waits two
minutes and then may end the process.
"""

from __future__ import annotations

import os
import socket

import grpc
from ray._private.services import canonicalize_bootstrap_address_or_die

KNOCK_S = 5.0
_CHECKS = (
    "/ray.rpc.NodeInfoGcsService/CheckAlive",
    "/ray.rpc.InternalKVGcsService/InternalKVGet",
)
"""Asked of a head; either one that is known there will do, and so will "no token"."""


def knock(address: str) -> str:
    """Find the head at an address ("auto" = the cluster of this machine), and give HOST:PORT.

    Raises
    ------
    OSError
        When nobody answers there, or something that is no Ray head.
    """
    if address == "auto":
        address = canonicalize_bootstrap_address_or_die(address)
    host, _, port = address.rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()
    if os.environ.get("RAY_USE_TLS", "0") in ("0", "false", ""):
        _ask(address)
    return address


def _ask(address: str) -> None:
    # A proxy for the web is none for a cluster.
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        codes = [_code(channel, method) for method in _CHECKS]
    silent = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    if all(code in silent for code in codes):
        msg = f"something listens there that does not speak as Ray does ({codes[0].name.lower()})"
        raise ConnectionError(msg)
    if all(code is grpc.StatusCode.UNIMPLEMENTED for code in codes):
        msg = "something answers there, but it is no Ray head"
        raise ConnectionError(msg)


def _code(channel: grpc.Channel, method: str) -> grpc.StatusCode:
    try:
        channel.unary_unary(method)(b"", timeout=KNOCK_S)
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK
