"""A call whose next request cannot be bought ends as what it is by then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from judgebias.calls import Call
from judgebias.judges.gate import SharedPause
from judgebias.judges.open_judge import open_judge
from judgebias.judges.secrets import Secret
from judgebias.judges.wire_form import WireForm
from judgebias.pace.bought import Bought
from judgebias.prompts import VerdictForm, load_template
from judgebias.replies import FailureKind, Reply
from tests.judges.judging import KEY, WIRES, call, config, requests
from tests.server import CountingServer, Rule, Setup, faults


def ask(
    server: CountingServer,
    wire: str,
    again: Callable[[Call], Awaitable[bool]],
    form: WireForm | None,
    cleared: list[int],
) -> Reply:
    """Ask one call of a judge that buys further requests from `again`; counts the cleared ones."""

    async def clear(_: Call) -> None:
        cleared.append(1)

    async def run() -> Reply:
        gate = Bought(SharedPause(), again, clear)
        judge = config(server, wire)
        asker = open_judge(
            judge, load_template("pairwise"), Secret(KEY), window=4, gate=gate, form=form
        )
        try:
            return await asker.ask(call())
        finally:
            await asker.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("affordable", [0, 2])
def test_every_request_after_the_first_is_bought(wire: str, affordable: int) -> None:
    asked: list[bytes] = []

    async def again(one: Call) -> bool:
        asked.append(one.key)
        return len(asked) <= affordable

    form, cleared = WireForm(verdict=VerdictForm.TEXT), list[int]()
    with CountingServer(Setup(rules=(Rule(action=faults.SERVER_ERROR),))) as server:
        reply = ask(server, wire, again, form, cleared)
        assert requests(server) == len(cleared) == 1 + affordable
    assert (reply.failure, reply.attempts) == (FailureKind.SERVER, 1 + affordable)
    assert asked == [call().key] * (affordable + 1)


def test_a_form_that_is_refused_ends_where_no_other_can_be_tried() -> None:
    async def never(_: Call) -> bool:
        return False

    refused = Rule(action=faults.NO_RESPONSE_FORMAT, fields=("response_format",))
    with CountingServer(Setup(rules=(refused,))) as server:
        reply = ask(server, "openai", never, None, [])
        assert requests(server) == 1
    assert reply.failure is FailureKind.BAD_REQUEST
