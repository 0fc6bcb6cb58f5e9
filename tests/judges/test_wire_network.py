"""A bad network between the real SDKs and the server: each fault ends as the fault list says."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from judgebias.config import WireJudge
from judgebias.judges.wire_form import WireForm
from judgebias.prompts import VerdictForm
from judgebias.replies import FailureKind, Usage
from tests.judges.judging import WIRES, ask, call, config, requests
from tests.proxy import FaultProxy, Kind, Toxic
from tests.server import CountingServer

TEXT = WireForm(verdict=VerdictForm.TEXT)
NO_SUCH_NAME = ".".join(["a" * 60] * 5)
"""Longer than a name may be: the resolver refuses it without asking anybody."""
BOTH = pytest.mark.parametrize("wire", WIRES)


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with CountingServer() as running:
        yield running


def through(proxy: FaultProxy, server: CountingServer, wire: str, **more: object) -> WireJudge:
    """Configure a judge behind the proxy."""
    url = proxy.openai_url if wire == "openai" else proxy.url
    price = {"input": 1.0, "output": 1.0}
    return config(server, wire, **{"base_url": url, "price": price, "timeout_s": 1.0, **more})


SPOILT = [
    pytest.param("black_hole", "timeout", id="P-11-black-hole"),
    pytest.param("drip", "timeout", id="P-12-drip"),
    pytest.param("reset", "connection", id="P-13-reset"),
    pytest.param("half_close", "connection", id="P-13-half-close"),
]


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("kind", ["black_hole", "drip", "reset", "half_close"])
def test_a_spoilt_response_is_asked_for_again_and_the_next_call_is_untouched(
    server: CountingServer, wire: str, kind: Kind
) -> None:
    with FaultProxy(server.port, Toxic(kind=kind, skip=1, times=1)) as proxy:
        judge = through(proxy, server, wire)
        # The first call only warms up, so that the short deadline is not spent on it.
        _, spoilt, after = ask(judge, [call(n) for n in range(3)], in_turn=True, form=TEXT).replies
        assert proxy.hits == 1
    assert (spoilt.slot is not None, spoilt.attempts) == (True, 2)
    assert (spoilt.usage, spoilt.cost_usd) == (Usage(), None)
    assert (after.slot is not None, after.attempts) == (True, 1)
    assert after.cost_usd is not None
    assert requests(server) == 4


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize(("kind", "failure"), SPOILT)
def test_a_call_whose_every_response_is_spoilt_is_a_failure_within_its_deadlines(
    server: CountingServer, wire: str, kind: Kind, failure: str
) -> None:
    with FaultProxy(server.port, Toxic(kind=kind, skip=1)) as proxy:
        judge = through(proxy, server, wire, max_attempts=2)
        began = time.monotonic()
        _, failed = ask(judge, [call(0), call(1)], in_turn=True, form=TEXT).replies
        lasted = time.monotonic() - began
    assert (failed.failure, failed.slot, failed.attempts) == (FailureKind(failure), None, 2)
    assert (failed.usage, failed.cost_usd) == (Usage(), None)
    # Two deadlines of a second; a drip alone would go on for a minute.
    assert lasted < 30


@BOTH
def test_latency_costs_time_and_nothing_else(server: CountingServer, wire: str) -> None:
    with FaultProxy(server.port, Toxic(kind="latency", delay_s=0.2)) as proxy:
        judge = through(proxy, server, wire, timeout_s=30.0)
        replies = ask(judge, [call(n) for n in range(20)], form=TEXT).replies
    assert all(reply.slot is not None and reply.attempts == 1 for reply in replies)
    assert min(reply.latency_ms or 0 for reply in replies) >= 200
    assert (requests(server), proxy.hits) == (20, 20)


@BOTH
def test_p_31_a_name_that_is_not_found_is_a_connection_failure_that_cost_nothing(
    server: CountingServer, wire: str
) -> None:
    judge = config(server, wire, base_url=f"http://{NO_SUCH_NAME}/v1", max_attempts=3)
    reply = ask(judge, form=TEXT).reply
    assert (reply.failure, reply.attempts, requests(server)) == ("connection", 3, 0)
    assert "no connection" in (reply.message or "")


@BOTH
def test_p_31_a_name_that_is_found_again_gives_its_verdict(
    server: CountingServer, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _found_at_the_third(socket.getaddrinfo))
    path = "/v1" if wire == "openai" else ""
    judge = config(server, wire, base_url=f"http://judge.test:{server.port}{path}")
    reply = ask(judge, form=TEXT).reply
    assert (reply.slot is not None, reply.attempts, requests(server)) == (True, 3, 1)


def _found_at_the_third(real: Callable[..., object]) -> Callable[..., object]:
    asked: list[object] = []

    def resolve(host: object, *rest: object, **more: object) -> object:
        if host != "judge.test":
            return real(host, *rest, **more)
        asked.append(host)
        if len(asked) < 3:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real("127.0.0.1", *rest, **more)

    return resolve


@BOTH
def test_p_31_a_certificate_that_nobody_signed_stops_the_judge_before_the_key_is_sent(
    server: CountingServer, wire: str
) -> None:
    with FaultProxy(server.port, tls=True) as proxy:
        judge = through(proxy, server, wire, timeout_s=30.0)
        result = ask(judge, [call(n) for n in range(5)], form=TEXT)
    assert (len(result.halted), result.replies, requests(server)) == (5, [], 0)
    assert "certificate cannot be trusted" in str(result.halted[0])
