from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from judgebias.calls import Call, Pair
from judgebias.config import ReplayJudge
from judgebias.errors import ConfigError, InputError
from judgebias.judges.local import open_local
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot

RECORDS: list[dict[str, Any]] = [
    {"pair_id": "1", "task": "t", "judge": "j", "order": "ab", "verdict": "first"},
    {"pair_id": "1", "task": "t", "judge": "j", "order": "ba", "verdict": "tie"},
    {"pair_id": "2", "task": "t", "judge": "j", "order": "ab", "verdict": None},
    {"pair_id": "3", "task": "t", "judge": "j", "order": "ab", "verdict": "second", "repeat": 2},
    {"pair_id": "1", "task": "t", "judge": "other", "order": "ab", "verdict": "second"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS)
    (tmp_path / "verdicts.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def ask(
    folder: Path,
    pair_id: str,
    order: Order = Order.AB,
    *,
    task: str = "t",
    repeat: int = 1,
    **fields: str,
) -> Reply:
    settings = {"name": "j", "provider": "replay", "path": "verdicts.jsonl", **fields}
    judge = open_local(ReplayJudge.model_validate(settings), str(folder))
    # Equal and empty answers: a replay looks at neither.
    pair = Pair(pair_id=pair_id, task=task, question="", answer_a="", answer_b="")
    return asyncio.run(judge.ask(Call(pair=pair, order=order, repeat=repeat)))


def test_the_recorded_slot_comes_back_for_its_order(folder: Path) -> None:
    assert ask(folder, "1").slot is Slot.FIRST
    assert ask(folder, "1", Order.BA).slot is Slot.TIE
    assert ask(folder, "3", repeat=2).slot is Slot.SECOND


def test_a_recorded_null_is_a_failure_of_its_own_kind(folder: Path) -> None:
    assert ask(folder, "2").failure is FailureKind.RECORDED


@pytest.mark.parametrize(
    ("pair_id", "more"),
    [("2", {"order": Order.BA}), ("9", {}), ("1", {"task": "u"}), ("3", {"repeat": 1})],
)
def test_what_was_not_recorded_is_no_verdict(
    folder: Path, pair_id: str, more: dict[str, Any]
) -> None:
    assert ask(folder, pair_id, **more).failure is FailureKind.NOT_RECORDED


def test_a_judge_may_have_another_name_in_the_records(folder: Path) -> None:
    assert ask(folder, "1", name="mine", recorded_as="other").slot is Slot.SECOND


def test_a_judge_that_is_not_in_the_records_is_refused_and_the_others_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no record of the judge 'mine'") as error:
        ask(folder, "1", name="mine")
    assert error.value.expected == "one of the judges in it: j, other"
    assert "recorded_as" in error.value.do


def test_records_that_are_not_there_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        ask(folder, "1", path="nowhere.jsonl")
