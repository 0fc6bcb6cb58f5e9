"""Asking the counting server through the real SDKs, with a clock that only waiting moves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from judgebias.calls import Call, Pair
from judgebias.config import WireJudge
from judgebias.errors import JudgeHalted
from judgebias.judges import anthropic, openai
from judgebias.judges.asker import Asker
from judgebias.judges.gate import SharedPause
from judgebias.judges.secrets import Secret
from judgebias.judges.wire_form import WireForm
from judgebias.prompts import load_template
from judgebias.replies import Reply
from judgebias.verdicts import Order
from tests.server import CountingServer

KEY = "sk-test-0123456789abcdef"
WIRES = ("openai", "anthropic")


class Clock:
    """The time that a judge's pauses take; nothing is waited for."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@dataclass(kw_only=True, slots=True)
class Result:
    """What came back, and what it took."""

    replies: list[Reply]
    halted: list[JudgeHalted]
    waited_s: float
    settled: WireForm | None

    @property
    def reply(self) -> Reply:
        """The only reply."""
        (only,) = self.replies
        return only


def call(number: int = 0, order: Order = Order.AB, **more: str) -> Call:
    """Make a call whose texts no other has."""
    texts = {
        "question": f"question {number}?",
        "answer_a": f"an answer {number}",
        "answer_b": f"another answer {number}",
        **more,
    }
    pair = Pair(pair_id=str(number), **texts)
    return Call(pair=pair, order=order, key=number.to_bytes(15, "little") + order.encode()[:1])


def config(server: CountingServer, wire: str, **more: object) -> WireJudge:
    """Configure a judge on the server."""
    url = server.openai_url if wire == "openai" else server.url
    fields = {"name": "j", "provider": wire, "model": "m", "base_url": url, "timeout_s": 30.0}
    return WireJudge.model_validate({**fields, **more})


def make_judge(
    judge: WireJudge,
    clock: Clock,
    *,
    window: int = 64,
    form: WireForm | None = None,
    key: str = KEY,
) -> Asker:
    """Make a judge whose pauses take no time."""
    template = load_template(judge.template, criteria=judge.criteria)
    gate = SharedPause(clock=clock, sleep=clock.sleep, draw=lambda: 0.0)
    secret = Secret(key)
    if judge.provider == "openai":
        client = openai.open_client(judge, secret, window)
        return openai.OpenAIJudge(
            judge, template, secret, client, gate=gate, form=form, sleep=clock.sleep
        )
    messages = anthropic.open_client(judge, secret, window)
    return anthropic.AnthropicJudge(
        judge, template, secret, messages, gate=gate, form=form, sleep=clock.sleep
    )


def ask(
    judge: WireJudge,
    calls: Iterable[Call] | None = None,
    *,
    in_turn: bool = False,
    window: int = 64,
    form: WireForm | None = None,
    key: str = KEY,
) -> Result:
    """Ask calls all at once, or one after the other; replies come in the calls' order."""
    clock = Clock()
    result = Result(replies=[], halted=[], waited_s=0.0, settled=None)

    async def one(asker: Asker, single: Call) -> Reply | None:
        try:
            return await asker.ask(single)
        except JudgeHalted as error:
            result.halted.append(error)
            return None

    async def run() -> None:
        asker = make_judge(judge, clock, window=window, form=form, key=key)
        wanted = [call()] if calls is None else list(calls)
        if in_turn:
            found = [await one(asker, single) for single in wanted]
        else:
            found = await asyncio.gather(*(one(asker, single) for single in wanted))
        result.replies = [reply for reply in found if reply is not None]
        result.settled = asker.settled
        await asker.aclose()

    asyncio.run(run())
    result.waited_s = clock.now
    return result


def requests(server: CountingServer) -> int:
    """Count the requests that the server accepted."""
    total = server.bill()["requests"]
    assert isinstance(total, int)
    return total
