"""Two judges, one on each wire, over many pairs in both orders, with the server's own bill."""

from __future__ import annotations

from collections import Counter

import pytest

from judgebias.replies import Reply
from judgebias.verdicts import Cell, Order, Slot, settle
from tests.judges.judging import WIRES, ask, call, config
from tests.server import CountingServer, Planted, Rule, Setup, faults

PAIRS = 500
PLANTED = {
    "openai": Planted(offset=0.8, quality=1.0, tie_width=0.1),
    "anthropic": Planted(offset=0.0, quality=1.0, tie_width=0.1),
}
PRICE = {"input": 3.0, "output": 15.0}


def planted_cells(wire: str) -> Counter[Cell]:
    """Say what the planted judge answers, without any wire."""
    judge, cells = PLANTED[wire], Counter[Cell]()
    for number in range(PAIRS):
        pair = call(number).pair
        ab, ba = judge(pair.answer_a, pair.answer_b, ""), judge(pair.answer_b, pair.answer_a, "")
        cells[settle(Slot(ab.slot), Slot(ba.slot))] += 1
    return cells


def cells_of(replies: list[Reply]) -> Counter[Cell]:
    """Settle replies that come pair by pair."""
    slots = [reply.slot for reply in replies]
    cells = Counter[Cell]()
    for ab, ba in zip(slots[::2], slots[1::2], strict=True):
        assert ab is not None
        assert ba is not None
        cells[settle(ab, ba)] += 1
    return cells


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.slow
def test_a_planted_bias_comes_back_and_nothing_is_bought_twice(wire: str) -> None:
    calls = [call(number, order) for number in range(PAIRS) for order in Order]
    with CountingServer(Setup(judges={"*": PLANTED[wire]})) as server:
        # Trouble on the way that passes, none of it billed.
        server.script(
            Rule(action=faults.too_many("1"), skip=100, times=5),
            Rule(action=faults.SERVER_ERROR, probability=0.02, nth=(1, 1)),
        )
        replies = ask(config(server, wire, price=PRICE), calls).replies
        bill = server.bill()
    assert cells_of(replies) == planted_cells(wire)
    assert (bill["billed"], bill["duplicates"], bill["unmarked"]) == (2 * PAIRS, 0, 0)
    assert bill["requests"] == sum(reply.attempts for reply in replies)
    used_in = sum(reply.usage.input_tokens or 0 for reply in replies)
    used_out = sum(reply.usage.output_tokens or 0 for reply in replies)
    assert (bill["input_tokens"], bill["output_tokens"]) == (used_in, used_out)
    spent = sum(reply.cost_usd or 0 for reply in replies)
    assert spent == pytest.approx((used_in * 3 + used_out * 15) / 1e6)
