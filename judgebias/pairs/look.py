"""A look at each chunk of the input: what is wrong with its rows, and the index of the others.

Chunks are independent of each other, so several are looked at side by side while the next is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.leaks import find_leaks
from judgebias.pairs.block import Chunk, Faults
from judgebias.pairs.check import find_faults, find_leaking
from judgebias.pairs.columns import fill_labels
from judgebias.pairs.index import to_index
from judgebias.pairs.repeats import is_plain
from judgebias.pairs.spec import PairsSpec

AT_ONCE = 2
"""Chunks looked at side by side: each is held whole, and Polars has threads of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Looked:
    """What a chunk holds."""

    chunk: Chunk
    faults: Faults
    """In the order of the rows."""
    leaking: tuple[str, ...]
    """The tasks of the rows that only a leak makes faults."""
    index: pl.DataFrame
    """The rows without a fault, but for their `block`; columns of `INDEX` and `PRIVATE`."""
    places: npt.NDArray[np.int64]
    """Their places in the chunk."""
    n_blank_questions: int
    ids_are_plain: bool


def look_at_all(chunks: Iterable[Chunk], spec: PairsSpec) -> Iterator[Looked]:
    """Look at chunks, and give what was found in their order."""
    waiting: deque[Future[Looked]] = deque()
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="survey") as pool:
        for chunk in chunks:
            waiting.append(pool.submit(look_at, chunk, spec))
            if len(waiting) > AT_ONCE:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def look_at(chunk: Chunk, spec: PairsSpec) -> Looked:
    """Look at one chunk."""
    frame = fill_labels(chunk.frame)
    frame = frame.with_columns(find_leaks(frame))
    faults = find_faults(frame, spec) | chunk.faults
    leaks: Faults = {}
    if spec.on_leak == "skip":
        # Rows that are no rejects anyhow.
        leaks = {row: fault for row, fault in find_leaking(frame).items() if row not in faults}
    leaking = tuple(frame["task"][list(leaks)]) if leaks else ()
    places = np.delete(np.arange(frame.height), np.array([*faults, *leaks], dtype=np.int64))
    if faults or leaks:
        frame = frame[places]
    return Looked(
        chunk=chunk,
        faults=dict(sorted((leaks | faults).items())),
        leaking=leaking,
        index=to_index(frame, spec),
        places=places,
        n_blank_questions=frame.height - int(frame["question"].str.contains(r"\S").sum()),
        ids_are_plain=is_plain(frame["pair_id"]),
    )
