"""Random lives of a journal against a model that is a list of rows in memory.

What hypothesis does to the journal: replies and failures come, are flushed or not, workers are
killed with what they hold, writes are torn, a worker loses its lease and speaks late, the command
starts again, judges, repeats and pairs are added, a pair is edited, segments are merged (and the
merge is killed), a disk spoils a frame and it is salvaged. After each, nothing may be lost that was
durable, nothing counted twice, and every call has the verdict that the model says.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from judgebias.calls import call_key, call_mask
from judgebias.errors import JournalDamaged
from judgebias.journal import (
    Row,
    Segment,
    contains,
    done_keys,
    failed_tries,
    first_wins,
    merge_segments,
    read_journal,
    recover,
    salvage_journal,
    write_calls,
)
from judgebias.journal.frame import Frame, decode
from judgebias.journal.read import OpenSegment, segment_paths
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot
from tests.journal.sample_rows import digest, row

pytestmark = pytest.mark.slow

JUDGES = {name: name.encode() * 16 for name in "jkl"}
FAILURES = (FailureKind.TIMEOUT, FailureKind.SERVER, FailureKind.REFUSED)


class Killed(Exception):
    """What stands for SIGKILL at a crash point."""


@dataclass
class Writer:
    """A worker with its segment, and the rows that are not durable yet."""

    name: str
    segment: Segment
    held: list[Row] = field(default_factory=list)
    lapsed: bool = False


@dataclass(frozen=True)
class Committed:
    """A row that is on disk, with the worker that wrote it."""

    row: Row
    worker: str

    @property
    def call(self) -> tuple[object, ...]:
        made = self.row
        return (made.judge, made.pair, made.pair_id, made.repeat, made.order)

    @property
    def place(self) -> tuple[int, str, str]:
        return (self.row.time, self.worker, self.row.reply.request_id or "")


def key_of(made: Row) -> bytes:
    mask = call_mask(bytes.fromhex(made.fingerprint), Order(made.order), made.repeat)
    return call_key(made.pair, mask)


class JournalLife(RuleBasedStateMachine):
    """The journal, and the list that it has to equal."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.journal = self.folder / "journal"
        self.committed: list[Committed] = []
        self.writers: list[Writer] = []
        self.judges, self.repeats = ["j"], 1
        self.versions = dict.fromkeys(range(2), 0)
        self.epoch = self.time = self.number = 0
        self.known_done: set[bytes] = set()
        self.resume(keep_below=2)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            for writer in self.writers:
                writer.segment.close()
            shutil.rmtree(self.folder)

    # What workers do.

    @rule(
        data=st.data(),
        slots=st.lists(st.sampled_from([*Slot, *Slot, None, None]), min_size=1, max_size=5),
        flushed=st.booleans(),
    )
    def replies(self, data: st.DataObject, slots: list[Slot | None], flushed: bool) -> None:
        writer = data.draw(st.sampled_from(self.active()))
        for slot in slots:
            missing = self.expected() - self.answered()
            if missing:
                self.reply(writer, data.draw(st.sampled_from(sorted(missing))), slot, data)
        if flushed:
            self.flush(writer)

    @rule(data=st.data(), slots=st.tuples(*[st.sampled_from([*Slot, None])] * 2))
    def answer_twice(self, data: st.DataObject, slots: tuple[Slot | None, Slot | None]) -> None:
        """A worker loses its lease with a call under way, and another is given the call."""
        missing = sorted(self.expected() - self.answered())
        if not missing:
            return
        call = data.draw(st.sampled_from(missing))
        first, second = data.draw(st.sampled_from(self.active())), self.hire()
        for writer, slot in zip((first, second), slots, strict=True):
            self.reply(writer, call, slot, data)
        first.lapsed = True
        for writer in data.draw(st.permutations([first, second])):
            self.flush(writer)

    @rule(data=st.data())
    def speak_late(self, data: st.DataObject) -> None:
        for writer in [w for w in self.writers if w.lapsed]:
            self.flush(writer)
        self.flush(data.draw(st.sampled_from(self.writers)))

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        self.bury(data.draw(st.sampled_from(self.writers)))
        self.hire()

    @rule(data=st.data(), at=st.floats(0, 1, exclude_max=True))
    def kill_in_a_write(self, data: st.DataObject, at: float) -> None:
        writer = data.draw(st.sampled_from(self.writers))
        path, before = writer.segment.path, writer.segment.path.stat().st_size
        if not writer.segment.flush():
            return
        after = path.stat().st_size
        os.truncate(path, before + int(at * (after - before)))
        self.bury(writer)
        self.hire()

    @rule(at=st.floats(0, 1, exclude_max=True))
    def kill_in_the_first_write(self, at: float) -> None:
        writer = self.hire()
        os.truncate(writer.segment.path, int(at * writer.segment.path.stat().st_size))
        self.bury(writer)

    @rule(data=st.data())
    def lose_the_lease(self, data: st.DataObject) -> None:
        """The calls that it still holds are given to another; it speaks when it likes."""
        data.draw(st.sampled_from(self.writers)).lapsed = True
        self.hire()

    # What the command does.

    @rule(keep_below=st.integers(2, 8))
    def resume(self, keep_below: int) -> None:
        while self.writers:
            self.bury(self.writers[0])
        if self.journal.exists():
            recover(self.journal, wait_s=0)
            merge_segments(self.journal, keep_below=keep_below)
            assert recover(self.journal, wait_s=0).torn_bytes == 0
        self.epoch += 1
        self.hire()
        self.known_done = self.keys_done()
        self.compare()

    @rule(step=st.sampled_from(["merge:before_rename", "merge:before_delete"]))
    def resume_that_is_killed_in_the_merge(self, step: str) -> None:
        while self.writers:
            self.bury(self.writers[0])

        def point(passed: str) -> None:
            if passed == step:
                raise Killed

        recover(self.journal, wait_s=0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("judgebias.journal.merge.crash_point", point)
            try:
                merge_segments(self.journal, keep_below=2)
            except Killed:
                self.compare()
        self.resume(keep_below=4)

    @rule()
    def resume_that_is_killed_while_it_cuts(self) -> None:
        while self.writers:
            self.bury(self.writers[0])

        def cut(_file: int, _size: int) -> None:
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "ftruncate", cut)
            try:
                recover(self.journal, wait_s=0)
            except Killed:
                self.compare()
        self.resume(keep_below=4)

    @rule(what=st.sampled_from(["judge", "repeat", "pair"]))
    def extend(self, what: str) -> None:
        if what == "judge" and len(self.judges) < len(JUDGES):
            self.judges.append("jkl"[len(self.judges)])
        elif what == "repeat":
            self.repeats = min(3, self.repeats + 1)
        else:
            self.versions[len(self.versions)] = 0
        self.resume(keep_below=64)

    @rule(data=st.data())
    def edit_a_pair(self, data: st.DataObject) -> None:
        self.versions[data.draw(st.sampled_from(sorted(self.versions)))] += 1
        self.resume(keep_below=64)

    @precondition(lambda self: self.committed)
    @rule(data=st.data(), at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
    def spoil_and_salvage(self, data: st.DataObject, at: float, bit: int) -> None:
        while self.writers:
            self.bury(self.writers[0])
        recover(self.journal, wait_s=0)
        # What a killed merge left is gone before a disk spoils anything.
        merge_segments(self.journal, keep_below=64)
        path, frame, lost = data.draw(st.sampled_from(self.frames()))
        spoiled = bytearray(path.read_bytes())
        spoiled[frame.offset + int(at * (frame.end - frame.offset))] ^= 1 << bit
        path.write_bytes(spoiled)
        with pytest.raises(JournalDamaged):
            recover(self.journal, wait_s=0)
        assert len(salvage_journal(self.journal)) == 1
        assert salvage_journal(self.journal) == []
        self.committed = [c for c in self.committed if c.row.reply.request_id not in lost]
        self.resume(keep_below=64)

    @rule()
    def look(self) -> None:
        self.compare()

    # The model.

    def reply(
        self,
        writer: Writer,
        call: tuple[int, str, int, str],
        slot: Slot | None,
        data: st.DataObject,
    ) -> None:
        pair, judge, repeat, order = call
        self.number += 1
        # Failures never share a time: which of two came last would be a matter of the files.
        self.time += slot is None or data.draw(st.booleans())
        reply = Reply(
            slot=slot,
            failure=None if slot else data.draw(st.sampled_from(FAILURES)),
            attempts=data.draw(st.integers(1, 3)),
            request_id=f"r{self.number:05}",
        )
        made = row(
            pair, time=self.time, order=Order(order), repeat=repeat, judge=judge, reply=reply
        )
        made = made._replace(pair=self.digest(pair), fingerprint=JUDGES[judge].hex())
        writer.segment.append(made)
        writer.held.append(made)
        self.time += slot is None

    def flush(self, writer: Writer) -> None:
        assert writer.segment.flush() == len(writer.held)
        self.commit(writer)

    def expected(self) -> set[tuple[int, str, int, str]]:
        return {
            (pair, judge, repeat, order.value)
            for pair in self.versions
            for judge in self.judges
            for repeat in range(1, self.repeats + 1)
            for order in Order
        }

    def active(self) -> list[Writer]:
        return [writer for writer in self.writers if not writer.lapsed]

    def answered(self) -> set[tuple[int, str, int, str]]:
        """What this start does not ask: done before, or on its way in a worker that may speak."""
        rows = [c.row for c in self.committed if self.is_known(c)]
        rows += [made for writer in self.writers if not writer.lapsed for made in writer.held]
        versions = {self.digest(pair): pair for pair in self.versions}
        return {
            (versions[made.pair], made.judge, made.repeat, made.order)
            for made in rows
            if made.pair in versions
        }

    def is_known(self, one: Committed) -> bool:
        return key_of(one.row) in self.known_done or one.row.time >= self.started

    def digest(self, pair: int) -> bytes:
        return digest(f"p{pair}v{self.versions[pair]}")

    def commit(self, writer: Writer) -> None:
        self.committed += [Committed(made, writer.name) for made in writer.held]
        writer.held = []

    def bury(self, writer: Writer) -> None:
        """The kernel closes the file of a killed process; what it held is gone."""
        writer.segment._file.close()
        self.writers.remove(writer)

    def hire(self) -> Writer:
        self.number += 1
        # The order of the files says nothing of the order of the replies.
        name = f"w{self.number * 7 % 10}-{self.number}"
        if not self.writers:
            self.started = self.time
        segment = Segment.create(self.journal, epoch=self.epoch, worker=name)
        self.writers.append(Writer(name, segment))
        return self.writers[-1]

    def keys_done(self) -> set[bytes]:
        return {key_of(c.row) for c in self.committed if c.row.reply.slot is not None}

    def frames(self) -> list[tuple[Path, Frame, set[str]]]:
        found: list[tuple[Path, Frame, set[str]]] = []
        for path in segment_paths(self.journal):
            segment = OpenSegment.open(path)
            for piece in segment.pieces():
                if isinstance(piece, Frame):
                    ids = set(decode(piece)["request_id"].to_pylist())
                    found.append((path, piece, ids))
            segment.close()
        return found

    # The comparison.

    def compare(self) -> None:
        table = read_journal(self.journal).table
        mine = Counter(c.row.reply.request_id for c in self.committed)
        assert Counter(table["request_id"].to_list()) == mine
        calls, extra = first_wins(table)
        chosen = self.chosen()
        assert sorted(calls["request_id"]) == sorted(chosen)
        assert calls.height + extra.height == len(self.committed)
        tries = dict(calls.select("request_id", "attempts").iter_rows())
        assert tries == chosen
        self.compare_keys()
        assert write_calls(self.journal, self.folder / "calls.parquet") == len(chosen)
        written = pl.read_parquet(self.folder / "calls.parquet")
        assert sorted(written["request_id"]) == sorted(chosen)

    def chosen(self) -> dict[str, int]:
        """The request id of each call's answer, and the call's tries in all."""
        by_call: dict[tuple[object, ...], list[Committed]] = {}
        for one in sorted(self.committed, key=lambda one: one.place):
            by_call.setdefault(one.call, []).append(one)
        found: dict[str, int] = {}
        for tries in by_call.values():
            verdicts = [one for one in tries if one.row.reply.slot is not None]
            winner = verdicts[0] if verdicts else tries[-1]
            found[winner.row.reply.request_id or ""] = sum(t.row.reply.attempts for t in tries)
        return found

    def compare_keys(self) -> None:
        done = done_keys(self.journal, JUDGES)
        keys = self.keys_done()
        assert {done[:, at].tobytes() for at in range(done.shape[1])} == keys
        assert done.shape[1] == len(keys)
        everything = b"".join(key_of(c.row) for c in self.committed)
        inside = contains(done, everything)
        assert inside.tolist() == [key_of(c.row) in keys for c in self.committed]
        assert isinstance(inside, np.ndarray)
        failed = failed_tries(self.journal, JUDGES, done)
        tries: Counter[bytes] = Counter()
        for one in self.committed:
            if key_of(one.row) not in keys:
                tries[key_of(one.row)] += one.row.reply.attempts
        assert dict(failed.select("key", "attempts").iter_rows()) == dict(tries)


JournalLife.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestJournalLife = JournalLife.TestCase
