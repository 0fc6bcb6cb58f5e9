"""A judge without a network that is held to a configured limit all the same."""

from __future__ import annotations

from judgebias.calls import Call
from judgebias.judges.gate import Gate
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
        admitted = False
        while not admitted:
            await self._gate.admit(estimate_tokens(size))
            admitted = await self._gate.clear(call)
        reply = await self._judge.ask(call)
        self._gate.observed({}, None)
        return reply

    async def aclose(self) -> None:
        """Close the other judge."""
        await self._judge.aclose()
