"""A judge that repeats recorded verdicts: how recorded judges go through the whole pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

import polars as pl

from judgebias.calls import Call
from judgebias.config import ReplayJudge
from judgebias.errors import ConfigError
from judgebias.records import read_records
from judgebias.records.sources import find_files
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Slot

Recording: TypeAlias = Mapping[tuple[str, str, int, str], str | None]
"""(task, pair_id, repeat, order) -> slot, or None for a recorded null."""


class Replay:
    """Looks a call up by its pair's key; there is nothing to draw and nothing to buy."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    async def ask(self, call: Call) -> Reply:
        """Repeat the record; a null is a failure `recorded`, no record `not_recorded`."""
        key = (call.pair.task, call.pair.pair_id, call.repeat, call.order.value)
        try:
            slot = self._recording[key]
        except KeyError:
            return Reply(failure=FailureKind.NOT_RECORDED, message="no record of this call")
        if slot is None:
            return Reply(failure=FailureKind.RECORDED, message="the record holds no verdict")
        return Reply(slot=Slot(slot))

    async def aclose(self) -> None:
        """Nothing is held open."""


def load_recording(config: ReplayJudge, base: str) -> Recording:
    """Read the records of one judge.

    Raises
    ------
    ConfigError
        When the files hold no record of that judge; the judges they do hold are named.
    InputError
        When the files cannot be read.
    """
    name = config.recorded_as or config.name
    by_judge = _by_judge(str(Path(base) / config.path))
    if (name,) not in by_judge:
        held = ", ".join(sorted(str(key[0]) for key in by_judge)) or "none"
        raise ConfigError(
            f"{config.path} has no record of the judge {name!r}",
            expected=f"one of the judges in it: {held}",
            do="set `recorded_as` to the name in the records",
        )
    frame = by_judge[(name,)]
    keys = zip(frame["task"], frame["pair_id"], frame["repeat"], frame["order"], strict=True)
    return dict(zip(keys, frame["slot"], strict=True))


def recorded_bytes(config: ReplayJudge, base: str) -> Iterator[bytes]:
    """Give the content of the records, file by file: other records make another judge."""
    for path in find_files([Path(base) / config.path]):
        yield path.read_bytes()


@lru_cache(maxsize=4)
def _by_judge(path: str) -> dict[tuple[object, ...], pl.DataFrame]:
    """Read the files once for all the judges in them."""
    calls = read_records([path]).calls.lazy().collect()
    return calls.partition_by("judge", as_dict=True)
