"""A second request for stragglers: whichever reply comes first counts, and how many are sent."""

from __future__ import annotations

import asyncio
import random

import pytest

from judgebias.judges.hedge import SLOW, Hedge
from tests.pace.fleet import in_virtual_time, now


class Server:
    """Takes a tenth of a second, or ten where it dawdles, and counts what comes and what ends."""

    def __init__(self, slow_every: int = 0, *, usual_s: float = 0.1) -> None:
        self.sent = self.ended = self.broken = self.again = 0
        self._slow_every, self._usual_s = slow_every, usual_s

    async def send(self) -> str:
        self.sent += 1
        slow = self._slow_every and self.sent % self._slow_every == 0
        return await self._answer("first", 10.0 if slow else self._usual_s)

    async def second(self) -> str | None:
        self.again += 1
        return await self._answer("second", self._usual_s)

    async def _answer(self, said: str, seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.broken += 1
            raise
        self.ended += 1
        return said


async def ask(hedge: Hedge, server: Server, calls: int) -> list[str]:
    return [await hedge.first_of(server.send, server.second) for _ in range(calls)]


def test_a_straggler_is_sent_once_more_and_the_loser_is_broken_off() -> None:
    async def story() -> None:
        hedge, server = Hedge(0.05), Server(slow_every=50)
        said = await ask(hedge, server, 49)
        started = now()
        said += await ask(hedge, server, 1)
        assert said == ["first"] * 49 + ["second"]
        assert now() - started == pytest.approx((SLOW + 1) * 0.1)
        assert (server.sent, server.again, server.ended, server.broken) == (50, 1, 50, 1)

    in_virtual_time(story())


def test_without_a_share_nothing_is_sent_twice() -> None:
    async def story() -> None:
        server = Server(slow_every=10)
        await ask(Hedge(0.0), server, 60)
        assert (server.again, server.ended) == (0, 60)

    in_virtual_time(story())


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("at_once", [1, 16, 64])
def test_a_slow_server_is_not_sent_more_than_the_share(share: float, at_once: int) -> None:
    async def story() -> None:
        hedge, server, draw = Hedge(share), Server(), random.Random(1).random
        most = open_ = 0

        async def send() -> str:
            server.sent += 1
            # Every second one takes long, and of those sent again as well.
            await asyncio.sleep(0.1 if draw() < 0.5 else 2.0)
            return "first"

        async def second() -> str | None:
            nonlocal most, open_
            server.again, open_ = server.again + 1, open_ + 1
            most = max(most, open_)
            try:
                return await send()
            finally:
                open_ -= 1

        async def some() -> None:
            for _ in range(100):
                await hedge.first_of(send, second)

        await asyncio.gather(*(some() for _ in range(at_once)))
        assert 0 < server.again <= share * 100 * at_once
        assert most <= max(1, share * at_once)

    in_virtual_time(story())


def test_a_second_request_that_may_not_be_sent_leaves_the_first_its_time() -> None:
    async def story() -> None:
        hedge, server = Hedge(0.5), Server(slow_every=30)

        async def never() -> str | None:
            return None

        said = [await hedge.first_of(server.send, never) for _ in range(30)]
        assert said == ["first"] * 30
        assert server.broken == 0

    in_virtual_time(story())


def test_a_call_that_is_given_up_breaks_off_both() -> None:
    async def story() -> None:
        hedge, server = Hedge(0.5), Server(slow_every=30)
        await ask(hedge, server, 29)

        async def hanging() -> str | None:
            await asyncio.Event().wait()
            return None

        asking = asyncio.create_task(hedge.first_of(server.send, hanging))
        await asyncio.sleep(1.0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (server.broken, server.ended) == (1, 29)

    in_virtual_time(story())
