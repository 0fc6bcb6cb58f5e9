"""Asking in this process what a run would ask on Ray, so that a command is tested whole."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from judgebias.calls import Call
from judgebias.journal import create_segment, row_of
from judgebias.judges.local import open_local
from judgebias.pipeline.blocks import Assignment
from judgebias.pipeline.missing import missing_calls
from judgebias.pipeline.prepare import Ready
from judgebias.progress import Progress, RunEnd
from judgebias.replies import Reply


@dataclass(kw_only=True, slots=True)
class Asking:
    """Stands for the asking on Ray, and counts it."""

    most: int | None = None
    """Calls to ask before it stops; None = all."""
    frame_rows: int = 1000
    """Replies that are made durable together."""
    end: RunEnd = field(default_factory=RunEnd)
    asked: list[str] = field(default_factory=list[str])
    """The judge of each call that was asked."""

    def __call__(self, ready: Ready, watch: Callable[[Progress], None]) -> RunEnd:
        calls = [
            (block.judge, call)
            for block in ready.blocks
            for call in missing_calls(ready.plan, Assignment(block=block), ready.done, ready.tried)
        ][: self.most]
        replies = asyncio.run(_replies(ready, calls))
        segment = create_segment(ready.plan.journal, epoch=ready.plan.epoch, worker="w")
        for (judge, call), reply in zip(calls, replies, strict=True):
            name = ready.plan.fingerprints[judge].hex()
            row = row_of(call, reply, digest=call.digest, judge=judge, fingerprint=name)
            segment.append(row)
            if segment.buffered == self.frame_rows:
                segment.flush()
        segment.flush()
        segment.close()
        self.asked += [judge for judge, _ in calls]
        counters = {judge: {"verdicts": 1.0} for judge, _ in calls}
        watch(Progress(counters=counters, workers=1, deaths=0, halted={}))
        self.end.asked = len(calls)
        self.end.pending = sum(ready.missing.values()) - len(calls)
        return self.end


async def _replies(ready: Ready, calls: list[tuple[str, Call]]) -> list[Reply]:
    judges = {j.name: open_local(j, ready.plan.base) for j in ready.plan.config.judges}
    return [await judges[name].ask(call) for name, call in calls]


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Put the asking of this module in the place of the one on Ray."""
    stand_in = types.ModuleType("judgebias.pipeline.run")
    stand_in.ask_missing = Asking()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    return stand_in.ask_missing
