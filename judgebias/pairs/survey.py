"""The one pass over the whole input before anything is asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
import polars as pl

from judgebias.calls import KEY_BYTES
from judgebias.leaks import find_leaks
from judgebias.pairs.block import Block, Chunk, Faults, Reject, Source
from judgebias.pairs.check import find_faults, find_leaking
from judgebias.pairs.columns import fill_labels
from judgebias.pairs.csv import read_chunks as read_csv
from judgebias.pairs.header import Header
from judgebias.pairs.index import INDEX, PRIVATE, to_index
from judgebias.pairs.jsonl import read_chunks as read_jsonl
from judgebias.pairs.parquet import read_chunks as read_parquet
from judgebias.pairs.repeats import drop_repeats, look_alikes
from judgebias.pairs.source import check_unchanged, find_sources
from judgebias.pairs.spec import PairsSpec

KEPT_REJECTS = 1000
"""A survey holds no more rejects than this; `on_reject` is given every one."""
_MERGED = 64
_READERS = {"csv": read_csv, "jsonl": read_jsonl, "parquet": read_parquet}


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """What an input holds, without its texts."""

    blocks: list[Block]
    """All blocks; `blocks[i].number == i`. One without accepted pairs stays, and reads as empty."""
    index: pl.DataFrame
    """One row an accepted, distinct pair, in input order; columns as in `INDEX`."""
    rejects: list[Reject]
    """The first thousand."""
    n_rejects: int
    notices: list[str]
    """What the user should be told, a line each."""
    fingerprint: str
    """Names the set of pairs, whatever their order and files."""
    skipped: dict[str, int]
    """Task -> pairs left out for an identity leak; they are among the rejects."""


def survey_pairs(spec: PairsSpec, *, on_reject: Callable[[Reject], None] | None = None) -> Survey:
    """Read and check the whole input; keep an index of it and the blocks to read it again by.

    `on_reject` is called with each reject as it is found, so that any number of them can go to a
    file. It may have been called before an error is raised.

    Raises
    ------
    InputError
        A file cannot be read, a column is missing, or a key stands for different pairs.
    """
    sources, notices = find_sources(spec)
    ledger = _Ledger(spec=spec, on_reject=on_reject, notices=notices)
    header = Header(spec)
    empty: list[str] = []
    for source in sources:
        before = ledger.n_rows
        for chunk in _READERS[source.format](source, spec, header):
            ledger.add(source, chunk)
        check_unchanged(source)
        if ledger.n_rows == before:
            empty.append(source.file)
    if empty:
        notices.append(f"no rows in {len(empty)} files: {', '.join(empty[:5])}")
    notices += header.close()
    return ledger.close()


@dataclass(kw_only=True, slots=True)
class _Ledger:
    """Gathers chunks into blocks, index and rejects."""

    spec: PairsSpec
    on_reject: Callable[[Reject], None] | None
    notices: list[str]
    n_rows: int = 0
    n_rejects: int = 0
    n_blank_questions: int = 0
    rejects: list[Reject] = field(default_factory=list[Reject])
    blocks: list[Block] = field(default_factory=list[Block])
    frames: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    skipped: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, source: Source, chunk: Chunk) -> None:
        frame = fill_labels(chunk.frame)
        frame = frame.with_columns(find_leaks(frame))
        faults = find_faults(frame, self.spec) | chunk.faults
        if self.spec.on_leak == "skip":
            faults = self._leaking(frame, faults) | faults
        faults = dict(sorted(faults.items()))
        self._reject(source, chunk, faults)
        self.n_rows += frame.height - sum(fault is None for fault in faults.values())
        frame = self._cut(source, chunk, list(faults), frame)
        if faults:
            frame = frame.filter(_all_but(frame.height, list(faults)))
        self.n_blank_questions += frame.height - int(frame["question"].str.contains(r"\S").sum())
        self._keep(to_index(frame, self.spec))

    def _leaking(self, frame: pl.DataFrame, faults: Faults) -> Faults:
        """Find the leaks of rows that are no rejects anyhow, and count them by task."""
        leaking = {row: f for row, f in find_leaking(frame).items() if row not in faults}
        for task in frame["task"][list(leaking)]:
            self.skipped[task] = self.skipped.get(task, 0) + 1
        return leaking

    def _reject(self, source: Source, chunk: Chunk, faults: Faults) -> None:
        for place, fault in faults.items():
            if fault is None:
                continue
            reject = Reject(
                file=source.file,
                row=chunk.first_row + place + 1,
                pair_id=chunk.frame["pair_id"][place],
                field=fault.field,
                reason=fault.reason,
            )
            self.n_rejects += 1
            if len(self.rejects) < KEPT_REJECTS:
                self.rejects.append(reject)
            if self.on_reject is not None:
                self.on_reject(reject)

    def _cut(
        self, source: Source, chunk: Chunk, skip: list[int], frame: pl.DataFrame
    ) -> pl.DataFrame:
        """Cut a chunk into blocks, and mark each row with its block and its place there."""
        places = np.arange(frame.height, dtype=np.int32)
        numbers, offsets = np.divmod(places, np.int32(self.spec.block_rows))
        numbers = numbers + np.int32(len(self.blocks))
        for first in range(0, frame.height, self.spec.block_rows):
            end = min(first + self.spec.block_rows, frame.height)
            inside = skip[bisect_left(skip, first) : bisect_left(skip, end)]
            self.blocks.append(
                Block(
                    number=len(self.blocks),
                    source=source,
                    first_row=chunk.first_row + first,
                    n_rows=end - first,
                    offset=chunk.starts[first] if chunk.starts else 0,
                    length=chunk.starts[end] - chunk.starts[first] if chunk.starts else 0,
                    header=chunk.header,
                    skip=tuple(place - first for place in inside),
                )
            )
        return frame.with_columns(block=pl.Series(numbers), offset=pl.Series(offsets))

    def _keep(self, index: pl.DataFrame) -> None:
        self.frames.append(index)
        if len(self.frames) % _MERGED == 0:
            self.frames[-_MERGED:] = [pl.concat(self.frames[-_MERGED:], rechunk=True)]

    def close(self) -> Survey:
        empty = pl.DataFrame(schema={**INDEX, **PRIVATE})
        distinct = drop_repeats(pl.concat([empty, *self.frames]), self._place)
        self._skip(distinct.dropped)
        self._note(distinct.dropped.height, distinct.index)
        return Survey(
            blocks=self.blocks,
            index=distinct.index.select(*INDEX),
            rejects=self.rejects,
            n_rejects=self.n_rejects,
            notices=self.notices,
            fingerprint=_fingerprint(distinct.index["digest"]),
            skipped=dict(sorted(self.skipped.items())),
        )

    def _place(self, block: int, offset: int) -> str:
        found = self.blocks[block]
        return f"{found.source.file} row {found.first_row + offset + 1}"

    def _skip(self, dropped: pl.DataFrame) -> None:
        by_block = dropped.group_by("block").agg(pl.col("offset"))
        for number, offsets in by_block.select("block", "offset").iter_rows():
            block = self.blocks[number]
            self.blocks[number] = replace(block, skip=tuple(sorted({*block.skip, *offsets})))

    def _note(self, n_repeats: int, index: pl.DataFrame) -> None:
        if n_repeats:
            self.notices.append(f"{n_repeats} rows repeat an earlier row and are judged once")
        if self.n_blank_questions:
            self.notices.append(
                f"{self.n_blank_questions} pairs have an empty or blank question;"
                " with cluster = question they are one cluster"
            )
        n_skipped = sum(self.skipped.values())
        if n_skipped:
            self.notices.append(
                f"{n_skipped} pairs have an answer that tells who wrote it and are left out"
                " (on_leak = skip): each is a line among the rejects"
            )
        if index.is_empty():
            self.notices.append("no pairs to judge: every figure will be not available")
        self.notices += look_alikes(index)


def _all_but(n_rows: int, left_out: list[int]) -> pl.Series:
    keep = np.ones(n_rows, dtype=np.bool_)
    keep[left_out] = False
    return pl.Series(keep)


def _fingerprint(digests: pl.Series) -> str:
    """Hash a set of digests whatever their order: their sum, with their number."""
    total = np.zeros(2, dtype=np.uint64)
    for part in digests.get_chunks():
        words = np.frombuffer(b"".join(part.to_list()), dtype=np.uint64).reshape(-1, 2)
        total += words.sum(axis=0, dtype=np.uint64)
    return blake2b(total.tobytes() + len(digests).to_bytes(8), digest_size=KEY_BYTES).hexdigest()
