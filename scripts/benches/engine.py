"""(e) The engine alone: one worker's process with a judge that answers at once.

Everything a worker does for a call is done but for the request: the block is read, the keys are
made and compared, the prompt is rendered, the reply is recorded, and the journal is on disk at the
end. Run as `python -m scripts.benches.engine PAIRS`, it prints one line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import uvloop

from judgebias.calls import Call
from judgebias.config.runfile import check_run
from judgebias.journal import GroupCommit, Segment, row_of
from judgebias.pipeline.blocks import Assignment
from judgebias.pipeline.missing import missing_calls
from judgebias.pipeline.prepare import prepared
from judgebias.pipeline.ready import Ready
from judgebias.pipeline.window import Window
from judgebias.prompts import VerdictForm, load_template
from judgebias.replies import Reply
from judgebias.verdicts import Slot
from scripts.benches.world import write_pairs

TEMPLATE = load_template("pairwise")
RAW = "The first answer names the way. The second one does not.\nVERDICT: first"


class AtOnce:
    """Renders the prompt and answers without a wait."""

    def __init__(self) -> None:
        self.characters = 0

    async def ask(self, call: Call) -> Reply:
        """Render, and answer."""
        self.characters += len(TEMPLATE.render(call, VerdictForm.TEXT))
        return Reply(slot=Slot.FIRST, raw=RAW, latency_ms=0.0, model="none", cost_usd=0.0)

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(slots=True)
class Always:
    """A permit that is always granted."""

    granted: bool = True
    closed: bool = False

    async def changed(self) -> None:
        """Never waits long."""
        await asyncio.sleep(0)


async def engine(ready: Ready) -> tuple[int, float]:
    """Ask every block, three at a time; returns calls and seconds."""
    judge, fingerprint = "j", ready.plan.fingerprints["j"].hex()
    segment = Segment.create(Path(ready.plan.journal), epoch=1, worker="bench")
    journal = GroupCommit(segment)
    window = Window(judge=AtOnce(), permit=Always(), size=256, on_halt=lambda _: None)

    def record(call: Call, reply: Reply) -> None:
        row = row_of(call, reply, digest=call.digest, judge=judge, fingerprint=fingerprint)
        journal.record(row)

    waiting, asked = list(ready.blocks), 0

    async def turns() -> None:
        nonlocal asked
        while waiting:
            assignment = Assignment(block=waiting.pop(0))
            calls = await asyncio.to_thread(missing_calls, ready.plan, assignment, ready.done, {})
            await window.ask(calls, record)
            await journal.durable()
            asked += len(calls)

    started = time.perf_counter()
    await asyncio.gather(*(turns() for _ in range(3)))
    seconds = time.perf_counter() - started
    await journal.aclose()
    return asked, seconds


def main() -> None:
    """Measure once, after a small run that warms up."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 30_000
    for count in (500, pairs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_pairs(folder / "pairs.jsonl", count)
            judge = {"name": "j", "provider": "simulated"}
            run = {"pairs": "pairs.jsonl", "out": "out", "judges": [judge]}
            with prepared(check_run(run, where="the benchmark"), base=folder) as ready:
                before = time.process_time()
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    calls, seconds = runner.run(engine(ready))
                cpu = time.process_time() - before
    found = {"calls": calls, "calls_per_s": calls / seconds, "cpu_us_per_call": cpu / calls * 1e6}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
