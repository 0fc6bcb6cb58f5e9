from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from judgebias.journal import GroupCommit, JournalWriteError, Segment
from tests.journal.sample_rows import ids, row

NEVER = 3600.0


def commit(
    folder: Path, body: Callable[[GroupCommit, Segment], Awaitable[None]], **how: float
) -> None:
    async def main() -> None:
        segment = Segment.create(folder, epoch=1, worker="w0")
        rows = int(how.pop("rows", 8192))
        group = GroupCommit(segment, every_s=how.get("every_s", 0.0), rows=rows)
        async with asyncio.timeout(30):
            await body(group, segment)
            await group.aclose()

    asyncio.run(main())


def test_durable_means_on_disk(tmp_path: Path) -> None:
    async def body(group: GroupCommit, segment: Segment) -> None:
        await group.durable()
        for number in range(3):
            group.record(row(number))
        assert segment.durable == 0
        await group.durable()
        assert ids(tmp_path) == ["p0", "p1", "p2"]

    commit(tmp_path, body)


def test_many_waiters_share_one_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes: list[int] = []
    real = Segment.flush

    def counted(self: Segment) -> int:
        flushes.append(self.buffered)
        return real(self)

    monkeypatch.setattr(Segment, "flush", counted)

    async def body(group: GroupCommit, segment: Segment) -> None:
        async def one(number: int) -> None:
            group.record(row(number))
            await group.durable()

        await asyncio.gather(*(one(number) for number in range(100)))
        assert (flushes, segment.durable) == ([100], 100)

    commit(tmp_path, body)


def test_a_full_buffer_does_not_wait_for_the_clock(tmp_path: Path) -> None:
    async def body(group: GroupCommit, segment: Segment) -> None:
        for number in range(10):
            group.record(row(number))
        await group.durable()
        assert segment.durable == 10

    commit(tmp_path, body, every_s=NEVER, rows=10)


def test_flush_and_close_do_not_wait_for_the_clock(tmp_path: Path) -> None:
    async def body(group: GroupCommit, segment: Segment) -> None:
        group.record(row(0))
        await group.flush()
        assert segment.durable == 1
        group.record(row(1))

    commit(tmp_path, body, every_s=NEVER)
    assert ids(tmp_path) == ["p0", "p1"]


def test_what_is_recorded_during_a_flush_is_flushed_next(tmp_path: Path) -> None:
    async def body(group: GroupCommit, segment: Segment) -> None:
        group.record(row(0))
        first = asyncio.create_task(group.durable())
        second: list[asyncio.Task[None]] = []
        while not first.done():
            if segment.buffered == 0 and not second:
                group.record(row(1))
                second.append(asyncio.create_task(group.durable()))
            await asyncio.sleep(0)
        await group.durable()
        await asyncio.gather(first, *second)
        assert segment.durable == 1 + len(second)

    commit(tmp_path, body)


def test_a_failed_flush_reaches_every_waiter_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int, __: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def body(group: GroupCommit, segment: Segment) -> None:
        with monkeypatch.context() as patch:
            # asyncio wakes its own loop by `send`, so only the journal meets this.
            patch.setattr("judgebias.journal.segment.os.write", full)
            group.record(row(0))
            waiters = [group.durable() for _ in range(3)]
            ends = await asyncio.gather(*waiters, return_exceptions=True)
        assert [type(end) for end in ends] == [JournalWriteError] * 3
        assert isinstance(group.error, JournalWriteError)
        group.record(row(1))
        assert segment.buffered == 2
        await group.durable()
        assert group.error is None

    commit(tmp_path, body)
    assert ids(tmp_path) == ["p0", "p1"]


def test_a_cancelled_waiter_harms_nobody(tmp_path: Path) -> None:
    async def body(group: GroupCommit, segment: Segment) -> None:
        group.record(row(0))
        gone = asyncio.create_task(group.durable())
        await asyncio.sleep(0)
        gone.cancel()
        await group.durable()
        assert gone.cancelled()
        assert segment.durable == 1

    commit(tmp_path, body)


def test_a_fault_of_ours_reaches_the_waiters_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Segment) -> int:
        raise ZeroDivisionError

    async def body(group: GroupCommit, segment: Segment) -> None:
        group.record(row(0))
        with monkeypatch.context() as patch:
            patch.setattr(Segment, "flush", broken)
            with pytest.raises(ZeroDivisionError):
                await group.durable()
        assert segment.buffered == 1

    commit(tmp_path, body)
