"""What is found out before anything is asked: by the files alone, without Ray."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from judgebias.calls import Call
from judgebias.config.runfile import check_run
from judgebias.errors import ConfigError, InputError, UsageError
from judgebias.journal import Segment, row_of
from judgebias.pipeline.blocks import Assignment
from judgebias.pipeline.missing import missing_calls
from judgebias.pipeline.prepare import Ready, prepared
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Slot
from tests.pipeline.run_files import write_pairs

ONE = {"name": "one", "provider": "simulated"}
TWO = {"name": "two", "provider": "simulated", "offset": 1.0}
VERDICT = Reply(slot=Slot.FIRST)


class Folder:
    """A run that is prepared again and again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._workers = 0
        self.pairs(100)

    def pairs(self, n: int, **how: Any) -> None:
        write_pairs(self.path / "pairs.jsonl", n, **how)

    def ready(self, *judges: dict[str, Any], limit: int = 0, only: str = "", **run: Any) -> Ready:
        given = {"pairs": "pairs.jsonl", "out": "out", "judges": list(judges or [ONE]), **run}
        config = check_run(given, where="here")
        names = (only,) if only else ()
        with prepared(config, base=self.path, limit=limit, only=names) as ready:
            return ready

    def answer(self, ready: Ready, calls: Iterable[tuple[str, Call]], reply: Reply) -> None:
        """Write replies as a worker of this start would."""
        self._workers += 1
        worker = f"w{self._workers}"
        segment = Segment.create(Path(ready.plan.journal), epoch=ready.plan.epoch, worker=worker)
        for judge, call in calls:
            print_ = ready.plan.fingerprints[judge].hex()
            row = row_of(call, reply, digest=call.digest, judge=judge, fingerprint=print_)
            segment.append(row)
        segment.flush()
        segment.close()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def calls(ready: Ready, *again: str) -> list[tuple[str, Call]]:
    """All calls that the workers would make."""
    return [
        (block.judge, call)
        for block in ready.blocks
        for call in missing_calls(
            ready.plan, Assignment(block=block, again=again), ready.done, ready.tried
        )
    ]


def names(found: list[tuple[str, Call]]) -> set[tuple[str, str, str, int]]:
    return {(judge, call.pair.pair_id, call.order.value, call.repeat) for judge, call in found}


def test_everything_is_missing_at_first(folder: Folder) -> None:
    ready = folder.ready(ONE, TWO, repeats=2, engine={"pairs_per_block": 32})
    assert ready.expected == ready.missing == {"one": 400, "two": 400}
    assert [(b.judge, b.number) for b in ready.blocks[:4]] == [
        ("one", 0), ("two", 0), ("one", 1), ("two", 1),
    ]  # fmt: skip
    assert sum(block.n_calls for block in ready.blocks) == 800
    found = calls(ready)
    assert len({call.key for _, call in found}) == len(names(found)) == 800
    assert ready.notices == ()


def test_each_block_makes_as_many_calls_as_were_counted(folder: Folder) -> None:
    ready = folder.ready(ONE, limit=70, repeats=2, engine={"pairs_per_block": 32})
    for block in ready.blocks:
        made = missing_calls(ready.plan, Assignment(block=block), ready.done, ready.tried)
        assert len(made) == block.n_calls
    assert ready.missing["one"] == 280
    assert len(ready.blocks) == 4


def test_both_orders_of_a_pair_are_asked_together(folder: Folder) -> None:
    found = [call for _, call in calls(folder.ready(ONE, repeats=2))]
    for start in range(0, len(found), 4):
        asked = found[start : start + 4]
        assert len({call.pair.pair_id for call in asked}) == 1
        assert [(c.repeat, c.order) for c in asked] == [(1, "ab"), (1, "ba"), (2, "ab"), (2, "ba")]


def test_a_second_start_asks_what_has_no_verdict(folder: Folder) -> None:
    first = folder.ready(ONE, TWO)
    found = calls(first)
    folder.answer(first, found[:150], VERDICT)
    folder.answer(first, found[150:180], Reply(failure=FailureKind.TIMEOUT))
    second = folder.ready(ONE, TWO)
    assert second.plan.epoch == first.plan.epoch + 1
    assert second.expected == first.expected
    assert sum(second.missing.values()) == 250
    assert names(calls(second)) == names(found[150:])


def test_a_run_with_everything_on_disk_has_no_block(folder: Folder) -> None:
    first = folder.ready()
    folder.answer(first, calls(first), VERDICT)
    second = folder.ready()
    assert (second.blocks, second.missing) == ((), {"one": 0})


def test_blocks_of_another_size_find_the_same_calls(folder: Folder) -> None:
    first = folder.ready(engine={"pairs_per_block": 16})
    found = calls(first)
    folder.answer(first, found[:77], VERDICT)
    assert names(calls(folder.ready(engine={"pairs_per_block": 64}))) == names(found[77:])


@pytest.mark.parametrize(("tries", "left"), [(1, 10), (2, 5), (3, 5)])
def test_a_call_is_not_asked_again_once_its_tries_are_used_up(
    folder: Folder, tries: int, left: int
) -> None:
    folder.pairs(5)
    judge = {**ONE, "max_tries_total": 4}
    ready = folder.ready(judge)
    failed = Reply(failure=FailureKind.TIMEOUT, attempts=2)
    found = calls(ready)
    for _ in range(tries):
        folder.answer(ready, found[:5], failed)
    again = folder.ready(judge)
    assert again.missing == {"one": left}
    assert names(calls(again)) == names(found[-left:])
    told = [line for line in again.notices if "max_tries_total" in line]
    assert len(told) == (left == 5)


def test_a_raised_bound_asks_them_again(folder: Folder) -> None:
    ready = folder.ready({**ONE, "max_tries_total": 2})
    folder.answer(ready, calls(ready), Reply(failure=FailureKind.SERVER, attempts=2))
    assert folder.ready({**ONE, "max_tries_total": 2}).blocks == ()
    assert folder.ready({**ONE, "max_tries_total": 3}).missing == {"one": 200}


def test_a_block_that_a_dead_worker_had_is_read_from_the_journal_first(folder: Folder) -> None:
    ready = folder.ready()
    found = calls(ready)
    folder.answer(ready, found[:60], VERDICT)
    # Without the word of a death, the keys that the start found are all there is to know.
    assert len(calls(ready)) == 200
    assert names(calls(ready, "dead")) == names(found[60:])


def test_self_pairs_are_asked_with_their_block_and_known_after_a_death(folder: Folder) -> None:
    ready = folder.ready(ONE, TWO, self_pair=20, repeats=2, engine={"pairs_per_block": 32})
    assert ready.expected == ready.missing == {"one": 440, "two": 440}
    for block in ready.blocks:
        made = missing_calls(ready.plan, Assignment(block=block), ready.done, ready.tried)
        assert len(made) == block.n_calls
    found = calls(ready)
    assert len({call.key for _, call in found}) == 880
    same = [(judge, call) for judge, call in found if call.first == call.second]
    assert len(same) == 80
    folder.answer(ready, same[:50], VERDICT)
    left = calls(ready, "dead")
    assert {call.key for _, call in left} == {c.key for _, c in found} - {
        c.key for _, c in same[:50]
    }
    again = folder.ready(ONE, TWO, self_pair=20, repeats=2)
    assert sum(again.missing.values()) == 830
    # The calls of pairs are those of a run without a probe.
    plain = folder.ready(ONE, TWO, repeats=2)
    assert {c.key for _, c in calls(plain)} == {c.key for _, c in found} - {c.key for _, c in same}


def test_the_texts_of_self_pairs_are_in_the_price_at_most(folder: Folder) -> None:
    plain, probed = folder.ready(), folder.ready(self_pair=30)
    sent = sum(
        len((call.pair.question + call.first + call.second).encode())
        for _, call in calls(probed)
        if call.first == call.second
    )
    assert sent <= probed.text_bytes["one"] - plain.text_bytes["one"] < 4 * sent


def test_only_some_judges_are_asked_and_all_stay_on_record(folder: Folder) -> None:
    ready = folder.ready(ONE, TWO, only="two")
    assert set(ready.missing) == {"two"}
    assert set(ready.rundir.manifest().fingerprints) == {"one", "two"}


def test_a_larger_sample_asks_only_what_is_new(folder: Folder) -> None:
    small = folder.ready(limit=30)
    found = calls(small)
    folder.answer(small, found, VERDICT)
    large = folder.ready(limit=50)
    assert large.missing == {"one": 40}
    assert not names(found) & names(calls(large))


def told(ready: Ready) -> list[str]:
    """The notices without the reasons behind the colon."""
    return [line.partition(": ")[0] for line in ready.notices]


def test_what_a_start_asks_otherwise_than_the_last_one_is_said_in_numbers(folder: Folder) -> None:
    assert folder.ready(ONE, TWO, limit=40, repeats=2).notices == ()
    assert folder.ready(ONE, TWO, limit=40, repeats=2).notices == ()
    # Fewer pairs for one judge are fewer pairs in the tables of all.
    assert folder.ready(ONE, TWO, limit=10, repeats=2, only="two").notices == (
        "the sample has 10 pairs instead of 40: 0 came in, 30 left it: the replies are kept and "
        "are out of the tables",
        "the tables of 1 judge (one), not asked now, follow: they are made of 10 pairs and "
        "2 repeats too",
    )
    assert folder.ready(ONE, TWO, limit=30, repeats=2).notices == (
        "the sample has 30 pairs instead of 10: 20 came in",
    )
    assert folder.ready(ONE, TWO, limit=30).notices == (
        "repeats = 1 instead of 2: up to 60 replies of each judge are kept and are out of the "
        "tables",
    )
    assert folder.ready(ONE, TWO, limit=30, repeats=3, only="one").notices == (
        "repeats = 3 instead of 1: 120 calls more of each judge",
        "the tables of 1 judge (two), not asked now, follow: they are made of 30 pairs and "
        "3 repeats too",
    )
    assert told(folder.ready(ONE, TWO)) == [
        "the sample has 100 pairs instead of 30",
        "repeats = 1 instead of 3",
    ]


def test_another_seed_is_another_sample(folder: Folder) -> None:
    folder.ready(limit=50)
    (line,) = folder.ready(limit=50, seed=1).notices
    gone = int(line.split(": ")[1].split(", ")[1].split()[0])
    assert line.startswith(f"the sample has 50 pairs instead of 50: {gone} came in, {gone} left")
    assert 10 < gone < 40
    # All pairs are all pairs, whatever the seed.
    assert told(folder.ready(seed=1)) == ["the sample has 100 pairs instead of 50"]
    assert folder.ready(seed=2).notices == ()


def test_rows_that_are_added_are_no_change_of_the_sample(folder: Folder) -> None:
    folder.ready()
    folder.pairs(120)
    assert told(folder.ready()) == ["20 rows were added to the input and will be judged"]


def test_judges_that_leave_and_come_are_said(folder: Folder) -> None:
    folder.ready(ONE)
    assert folder.ready(TWO).notices == (
        "1 judge (one) left the run file: the replies are kept and are out of the tables",
        "1 judge (two) came new to the run file",
    )
    assert folder.ready(ONE, TWO).notices == (
        "1 judge (one) came back to the run file: the replies are in the tables again",
    )
    assert folder.ready(TWO, ONE).notices == ()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"cluster": "pair"}, "cluster = 'pair' instead of 'question'"),
        ({"panel": {"quorum": 2}}, "panel.quorum = 2 instead of 0"),
        ({"families": {"x-*": "x"}}, "[families] has 1 entries and changed"),
        ({"engine": {"workers": 3}}, None),
        ({"budget": {}}, None),
    ],
)
def test_settings_that_make_other_tables_are_said(
    folder: Folder, now: dict[str, Any], said: str | None
) -> None:
    folder.ready()
    expected = [] if said is None else [f"{said}: all tables are made by it"]
    assert list(folder.ready(**now).notices) == expected
    assert folder.ready(**now).notices == ()


def test_edited_rows_are_asked_anew_and_told(folder: Folder) -> None:
    first = folder.ready()
    folder.answer(first, calls(first), VERDICT)
    text = (folder.path / "pairs.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    rows[3]["answer_a"] += "!"
    rows.reverse()
    lines = [json.dumps(row) + "\n" for row in rows[:-1]]
    (folder.path / "pairs.jsonl").write_text("".join(lines), encoding="utf-8")
    second = folder.ready()
    assert names(calls(second)) == {("one", "00003", order, 1) for order in ("ab", "ba")}
    assert [line[:22] for line in second.notices] == [
        "1 rows left the input:",
        "1 rows were edited and",
    ]


def test_a_judge_that_changed_is_refused_and_its_limits_are_free(folder: Folder) -> None:
    folder.ready(ONE)
    folder.ready({**ONE, "max_in_flight": 3, "latency_s": 0.1})
    with pytest.raises(ConfigError, match=r"offset: 0\.0 -> 0\.5"):
        folder.ready({**ONE, "offset": 0.5})
    # A judge that was left out for a while is still known.
    folder.ready(TWO)
    with pytest.raises(ConfigError, match="was another one"):
        folder.ready({**ONE, "offset": 0.5})


def test_the_manifest_says_what_was_run(folder: Folder) -> None:
    ready = folder.ready(ONE, seed=3, limit=10)
    manifest = ready.rundir.manifest()
    assert (manifest.n_pairs, manifest.config.seed, manifest.epoch) == (100, 3, 1)
    assert {"python", "ray", "polars", "openai"} <= manifest.versions.keys()
    assert manifest.pairs_below == ready.plan.design.pairs_below < 2**64
    assert datetime.fromisoformat(manifest.started).utcoffset() == timedelta(0)
    before = manifest.input_fingerprint
    folder.pairs(99)
    assert folder.ready(ONE).rundir.manifest().input_fingerprint != before


def test_rejects_go_to_their_file(folder: Folder) -> None:
    with (folder.path / "pairs.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"pair_id": "x", "question": "?", "answer_a": 7, "answer_b": "b"}\n')
    ready = folder.ready()
    (line,) = ready.rundir.rejects.read_text(encoding="utf-8").splitlines()
    reject = json.loads(line)
    assert (reject["row"], reject["pair_id"], reject["field"]) == (101, "x", "answer_a")
    assert list(reject) == ["file", "row", "pair_id", "field", "reason"]
    assert any("1 input row cannot be judged" in line for line in ready.notices)
    assert ready.missing == {"one": 200}


def test_zero_rows_ask_nothing(folder: Folder) -> None:
    folder.pairs(0)
    ready = folder.ready()
    assert (ready.blocks, ready.expected) == ((), {"one": 0})
    assert any("no pairs to judge" in line for line in ready.notices)


@pytest.mark.parametrize(
    ("judge", "kind", "said"),
    [
        ({"name": "f", "provider": "function", "call": "nowhere:f"}, ConfigError, "nowhere:f"),
        ({"name": "r", "provider": "replay", "path": "none.jsonl"}, InputError, "none.jsonl"),
    ],
)
def test_a_judge_that_cannot_be_opened_is_found_before_the_start(
    folder: Folder, judge: dict[str, Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind, match=said):
        folder.ready(judge)
    assert not (folder.path / "out").exists()
    # Who a judge is depends on what it reads, so it has to be there even if another one is asked.
    with pytest.raises(kind, match=said):
        folder.ready(judge, ONE, only="one")


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"stop": {"decided": True}, "orders": "ab"}, "[stop] together with"),
    ],
)
def test_a_setting_that_would_silently_not_happen_is_refused(
    folder: Folder, setting: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError) as error:
        folder.ready(**setting)
    assert named in error.value.given
    assert not (folder.path / "out").exists()


def test_an_address_is_not_taken_for_a_folder(folder: Folder) -> None:
    with pytest.raises(UsageError, match="ftp://host/run cannot hold a run"):
        folder.ready(out="ftp://host/run")
    assert [path.name for path in folder.path.iterdir()] == ["pairs.jsonl"]


def test_input_that_cannot_be_read_leaves_no_trace_of_a_run(folder: Folder) -> None:
    (folder.path / "pairs.jsonl").write_text('{"pair_id": "1", "question": "?"}\n', "utf-8")
    with pytest.raises(InputError, match="answer_a"):
        folder.ready()
    left = {path.name for path in (folder.path / "out").iterdir()}
    assert left == {"journal", "owner.lock"}


def test_the_directory_is_held_while_the_run_goes_on(folder: Folder) -> None:
    config = check_run({"pairs": "pairs.jsonl", "out": "out", "judges": [ONE]}, where="here")
    with (
        prepared(config, base=folder.path),
        pytest.raises(UsageError, match=f"process {os.getpid()}"),
        prepared(config, base=folder.path),
    ):
        pass
    assert folder.ready().plan.epoch == 2


@pytest.mark.parametrize("edited", ["own.txt", "rubric.md"])
def test_an_edited_template_or_rubric_makes_another_judge(folder: Folder, edited: str) -> None:
    (folder.path / "own.txt").write_text("Compare.\n{rubric}\n{question}\n{first}\n{second}\n")
    (folder.path / "rubric.md").write_text("Brevity.\n")
    here = {"base_url": "http://127.0.0.1:9/v1", "template": "own.txt", "rubric": "rubric.md"}
    judge = {"name": "w", "provider": "openai", "model": "m", **here}
    first = folder.ready(judge)
    assert folder.ready(judge).plan.fingerprints == first.plan.fingerprints
    source = folder.path / edited
    source.write_text(source.read_text().replace("e.\n", "e!\n", 1).replace("y.\n", "y!\n", 1))
    with pytest.raises(ConfigError, match="'w' of this run directory was another one: template"):
        folder.ready(judge)
