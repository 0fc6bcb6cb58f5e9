"""(b) CPU per call: ours with everything a worker does, against what users write by hand.

Each way runs in a process of its own (`python -m scripts.benches.clients WAY URL CALLS WINDOW`),
against the same server, and prints CPU milliseconds per call of its whole process.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvloop
from openai import AsyncOpenAI, OpenAI

from judgebias.calls import Call, Pair
from judgebias.config import WireJudge
from judgebias.journal import GroupCommit, Segment, row_of
from judgebias.judges.open_judge import open_judge
from judgebias.judges.secrets import Secret
from judgebias.judges.wire_form import WireForm
from judgebias.pace.gate import PacedGate
from judgebias.pace.lease import Lease, Report
from judgebias.pace.limits import Limits
from judgebias.pace.pacer import Pacer
from judgebias.pipeline.window import Window
from judgebias.prompts import VerdictForm, load_template
from judgebias.replies import Reply
from judgebias.verdicts import Order
from scripts.benches.engine import Always
from scripts.benches.world import FILLER

KEY = "bench-key"
TEMPLATE = load_template("pairwise")


def calls(count: int, part: int) -> list[Call]:
    """Make calls whose prompts have about 3 kB, no two alike."""
    filler = FILLER * 10
    made: list[Call] = []
    for number in range(count):
        pair = Pair(
            pair_id=f"{part}-{number}",
            question="Which way is the shortest?",
            answer_a=f"{number} {part} {filler}",
            answer_b=f"{filler} {part} {number}",
        )
        key = number.to_bytes(16, "little")
        made.append(Call(pair=pair, order=Order.AB, key=key, digest=pair.digest()))
    return made


def request(call: Call) -> dict[str, object]:
    """Put the request together that every way sends."""
    prompt = TEMPLATE.render(call, VerdictForm.TEXT)
    said = [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": prompt.user},
    ]
    return {"model": "bench", "max_tokens": 4096, "messages": said}


async def plain(url: str, count: int, window: int, part: int) -> None:
    """Ask as the SDK's README shows it: one gather, one semaphore."""
    free = asyncio.Semaphore(window)
    async with AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1") as client:

        async def one(call: Call) -> str | None:
            async with free:
                reply = await client.chat.completions.create(**request(call))
                return reply.choices[0].message.content

        await asyncio.gather(*(one(call) for call in calls(count, part)))


def threads(url: str, count: int, window: int, part: int) -> None:
    """Ask with the sync SDK in a pool of threads."""
    with OpenAI(api_key=KEY, base_url=f"{url}/v1") as client:

        def one(call: Call) -> str | None:
            reply = client.chat.completions.create(**request(call))
            return reply.choices[0].message.content

        with ThreadPoolExecutor(window) as pool:
            list(pool.map(one, calls(count, part)))


async def ours(url: str, count: int, window: int, part: int) -> None:
    """Ask as a worker does: window, gate, retry layer, verdict, cost, journal on disk."""
    config = WireJudge.model_validate(
        {"name": "bench", "provider": "openai", "model": "bench", "base_url": f"{url}/v1"}
    )
    pacer = Pacer(Limits(), "bench", asyncio.get_running_loop().time)

    async def exchange(report: Report) -> Lease:
        return pacer.exchange(report)

    gate = PacedGate("w", exchange, lambda: asking.in_flight, paced=False)
    form = WireForm(verdict=VerdictForm.TEXT)
    judge = open_judge(config, TEMPLATE, Secret(KEY), window=window, gate=gate, form=form)
    asking = Window(judge=judge, permit=Always(), size=window, on_halt=lambda _: None)
    with tempfile.TemporaryDirectory() as folder:
        journal = GroupCommit(Segment.create(Path(folder), epoch=1, worker="bench"))

        def record(call: Call, reply: Reply) -> None:
            journal.record(row_of(call, reply, digest=call.digest, judge="j", fingerprint="f"))

        keeping = asyncio.create_task(gate.keep())
        await asking.ask(calls(count, part), record)
        await journal.durable()
        keeping.cancel()
        await journal.aclose()
    await judge.aclose()


def main() -> None:
    """Warm up, measure, print milliseconds of CPU per call."""
    way, url, count, window = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    run: dict[str, Callable[[int, int], object]] = {
        "ours": lambda n, part: _on(uvloop.new_event_loop, ours(url, n, window, part)),
        "plain": lambda n, part: _on(None, plain(url, n, window, part)),
        "threads": lambda n, part: threads(url, n, window, part),
    }
    run[way](2 * window, 0)
    before = time.process_time()
    run[way](count, 1)
    print((time.process_time() - before) / count * 1000)


def _on(factory: Callable[[], asyncio.AbstractEventLoop] | None, work: object) -> None:
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
