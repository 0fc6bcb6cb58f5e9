"""The one pass over the whole input before anything is asked."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from judgebias.calls import KEY_BYTES
from judgebias.design import Words, digest_words
from judgebias.pairs.block import Block, Chunk, Faults, Reject, Source
from judgebias.pairs.csv import read_chunks as read_csv
from judgebias.pairs.header import Header
from judgebias.pairs.index_rows import IndexRows, IndexWriter, scan_file
from judgebias.pairs.jsonl import read_chunks as read_jsonl
from judgebias.pairs.look import Looked, look_at_all
from judgebias.pairs.offsets import Offsets
from judgebias.pairs.parquet import read_chunks as read_parquet
from judgebias.pairs.repeats import Hashes, find_repeats, look_alikes
from judgebias.pairs.source import check_unchanged, find_sources
from judgebias.pairs.spec import PairsSpec

KEPT_REJECTS = 1000
"""A survey holds no more rejects than this; `on_reject` is given every one."""
_READERS = {"csv": read_csv, "jsonl": read_jsonl, "parquet": read_parquet}


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """What an input holds, without its texts."""

    blocks: list[Block]
    """All blocks; `blocks[i].number == i`. One without accepted pairs stays, and reads as empty."""
    rows: IndexRows
    """The index: one row an accepted, distinct pair, in input order; columns as in `INDEX`."""
    rejects: list[Reject]
    """The first thousand."""
    n_rejects: int
    notices: list[str]
    """What the user should be told, a line each."""
    fingerprint: str
    """Names the set of pairs, whatever their order and files."""
    skipped: dict[str, int]
    """Task -> pairs left out for an identity leak; they are among the rejects."""

    @property
    def index(self) -> pl.DataFrame:
        """The whole index in memory, half a kilobyte a pair; a run reads `rows` in parts."""
        return self.rows.scan.collect()

    def digests(self) -> Words:
        """Read the pairs' digests, in the order of the index, as (n, 2) words."""
        parts = [digest_words(part["digest"]) for part in self.rows.parts("digest")]
        return np.concatenate([np.empty((0, 2), np.uint64), *parts])

    def moved(self, file: Path) -> Survey:
        """Give the survey with the file of its index at another place."""
        return replace(self, rows=replace(self.rows, scan=scan_file(file), file=file))

    @property
    def n_pairs(self) -> int:
        """Accepted, distinct pairs."""
        return self.rows.height

    @property
    def block_of(self) -> npt.NDArray[np.int32]:
        """The block of each pair."""
        numbers = np.arange(len(self.blocks), dtype=np.int32)
        return np.repeat(numbers, [block.n_pairs for block in self.blocks])


def survey_pairs(
    spec: PairsSpec,
    *,
    on_reject: Callable[[Reject], None] | None = None,
    index_file: Path | None = None,
) -> Survey:
    """Read and check the whole input; keep an index of it and the blocks to read it again by.

    Parameters
    ----------
    spec
        The input.
    on_reject
        Called with each reject as it is found, so that any number of them can go to a file. It may
        have been called before an error is raised.
    index_file
        The file that the index is written to; None = memory, or a temporary file where the input
        is large.

    Raises
    ------
    InputError
        A file cannot be read, a column is missing, or a key stands for different pairs.
    """
    sources, notices = find_sources(spec)
    header = Header(spec)
    empty: list[str] = []
    with IndexWriter(index_file) as writer:
        ledger = _Ledger(spec=spec, on_reject=on_reject, notices=notices, writer=writer)
        for source in sources:
            before = ledger.n_rows
            chunks = _READERS[source.format](source, spec, header)
            for looked in look_at_all(chunks, spec):
                ledger.add(source, looked)
            check_unchanged(source)
            if ledger.n_rows == before:
                empty.append(source.file)
        if empty:
            notices.append(f"no rows in {len(empty)} files: {', '.join(empty[:5])}")
        notices += header.close()
        survey = ledger.close()
    # What the texts took is not wanted again before the workers of a run read theirs.
    pa.default_memory_pool().release_unused()
    return survey


@dataclass(kw_only=True, slots=True)
class _Ledger:
    """Gathers chunks into blocks, index and rejects; of a pair it holds 16 bytes."""

    spec: PairsSpec
    on_reject: Callable[[Reject], None] | None
    notices: list[str]
    writer: IndexWriter
    n_rows: int = 0
    n_rejects: int = 0
    n_blank_questions: int = 0
    rejects: list[Reject] = field(default_factory=list[Reject])
    blocks: list[Block] = field(default_factory=list[Block])
    keys: list[Hashes] = field(default_factory=lambda: [np.empty(0, np.uint64)])
    rests: list[Hashes] = field(default_factory=lambda: [np.empty(0, np.uint64)])
    ids_are_plain: bool = True
    skipped: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, source: Source, looked: Looked) -> None:
        chunk, faults, index = looked.chunk, looked.faults, looked.index
        for task in looked.leaking:
            self.skipped[task] = self.skipped.get(task, 0) + 1
        self._reject(source, chunk, faults)
        self.n_rows += chunk.frame.height - sum(fault is None for fault in faults.values())
        self.n_blank_questions += looked.n_blank_questions
        self.ids_are_plain = self.ids_are_plain and looked.ids_are_plain
        numbers = looked.places // self.spec.block_rows + len(self.blocks)
        self._cut(source, chunk, list(faults))
        self.writer.add(index.with_columns(block=pl.Series(numbers.astype(np.int32))))
        self.keys.append(index["key"].to_numpy())
        self.rests.append(index["rest"].to_numpy())

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

    def _cut(self, source: Source, chunk: Chunk, skip: list[int]) -> None:
        """Cut a chunk into blocks."""
        for first in range(0, chunk.frame.height, self.spec.block_rows):
            end = min(first + self.spec.block_rows, chunk.frame.height)
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
                    group=chunk.group,
                    skip=tuple(place - first for place in inside),
                )
            )

    def close(self) -> Survey:
        rows, offsets = self.writer.close(), Offsets(self.blocks)
        later = find_repeats(
            rows, np.concatenate(self.keys), np.concatenate(self.rests), offsets.place
        )
        if later.height:
            self._skip(later, offsets)
            rows = rows.without(later["at"].to_numpy())
        self._note(later.height, rows)
        return Survey(
            blocks=self.blocks,
            rows=rows,
            rejects=self.rejects,
            n_rejects=self.n_rejects,
            notices=self.notices,
            fingerprint=_fingerprint(rows),
            skipped=dict(sorted(self.skipped.items())),
        )

    def _skip(self, later: pl.DataFrame, offsets: Offsets) -> None:
        """Leave repeated rows out of their blocks."""
        by_block = later.group_by("block").agg(pl.col("at"))
        for number, places in by_block.select("block", "at").iter_rows():
            block = self.blocks[number]
            more = offsets.within(number, np.array(places)).tolist()
            self.blocks[number] = replace(block, skip=tuple(sorted({*block.skip, *more})))

    def _note(self, n_repeats: int, rows: IndexRows) -> None:
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
        if not rows.height:
            self.notices.append("no pairs to judge: every figure will be not available")
        if not self.ids_are_plain:
            self.notices += look_alikes(rows)


def _fingerprint(rows: IndexRows) -> str:
    """Hash the set of digests whatever their order: their sum, with their number."""
    total = np.zeros(2, dtype=np.uint64)
    for part in rows.parts("digest"):
        total += digest_words(part["digest"]).sum(axis=0, dtype=np.uint64)
    return blake2b(total.tobytes() + rows.height.to_bytes(8), digest_size=KEY_BYTES).hexdigest()
