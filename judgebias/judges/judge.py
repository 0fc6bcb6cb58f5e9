"""What every judge is: something that answers a call with a reply.

A judge never raises for what a call met on its way: that is a reply with a failure kind. It raises
`JudgeHalted` for what would meet every other call too (a refused key, a missing model, no money).
"""

from __future__ import annotations

from typing import Protocol

from judgebias.calls import Call
from judgebias.replies import Reply


class Judge(Protocol):
    """The protocol of a judge, made once per worker."""

    async def ask(self, call: Call) -> Reply:
        """Answer one call.

        Raises
        ------
        JudgeHalted
            When no other call of this judge could be answered either.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...
