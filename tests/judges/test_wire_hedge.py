"""A call that hangs is sent once more where the run file allows it; both requests count."""

from __future__ import annotations

import pytest

from judgebias.judges.wire_form import WireForm
from judgebias.prompts import VerdictForm
from tests.judges.judging import WIRES, ask, call, config, requests
from tests.server import CountingServer, Rule, Setup, faults


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_that_hangs_is_answered_by_its_second_request(wire: str) -> None:
    hangs = Rule(action=faults.HANG, number=(50, 50))
    with CountingServer(Setup(rules=(hangs,), latency_s=0.05)) as server:
        judge = config(server, wire, hedge=0.5, price={"input": 1.0, "output": 1.0})
        form = WireForm(verdict=VerdictForm.TEXT)
        replies = ask(judge, map(call, range(50)), in_turn=True, form=form).replies
        sent = requests(server)
    assert [reply.failure for reply in replies] == [None] * 50
    twice = [reply for reply in replies if reply.attempts > 1]
    assert sent == 50 + len(twice)
    assert 1 <= len(twice) <= 25
    # Nobody says what the broken request cost.
    assert {reply.cost_usd for reply in twice} == {None}
