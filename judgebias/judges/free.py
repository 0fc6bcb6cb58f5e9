"""A judge that costs nothing because its run file says so: its cost is 0, not unknown."""

from __future__ import annotations

from dataclasses import replace

from judgebias.calls import Call
from judgebias.judges.judge import Judge
from judgebias.replies import Reply


class FreeJudge:
    """Asks another judge, one without a network."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    async def ask(self, call: Call) -> Reply:
        """Ask, and put down that it cost nothing."""
        reply = await self._judge.ask(call)
        return replace(reply, cost_usd=0.0) if reply.cost_usd is None else reply

    async def aclose(self) -> None:
        """Close the other judge."""
        await self._judge.aclose()
