"""A judge without a network that is held to a configured limit all the same."""

from __future__ import annotations

from judgebias.calls import Call
from judgebias.judges.gate import Gate, pass_gate
from judgebias.judges.judge import Judge
from judgebias.judges.usage import estimate_tokens
from judgebias.replies import Reply


class PacedJudge:
    """Asks another judge, through a gate."""

    def __init__(self, judge: Judge, gate: Gate) -> None:
        self._judge = judge
        self._gate = gate

    async def ask(self, call: Call) -> Reply:
        """Wait for a slot, then ask."""
        pair = call.pair
        size = len(pair.question) + len(pair.answer_a) + len(pair.answer_b)
        await pass_gate(self._gate, call, estimate_tokens(size))
        reply = await self._judge.ask(call)
        self._gate.observed({}, None)
        return reply

    async def aclose(self) -> None:
        """Close the other judge."""
        await self._judge.aclose()
