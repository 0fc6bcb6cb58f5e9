"""The bundled pairs, and whether what is said of the planted judges is true of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from judgebias.calls import Call, Pair
from judgebias.demo import PLANTED, Planted, demo_config
from judgebias.judges.simulated import Simulated
from judgebias.pairs import PairsSpec, read_block, survey_pairs
from judgebias.verdicts import Cell, Order, settle

JUDGES = {planted.judge.name: planted for planted in PLANTED}
# Makers and models: a sample about real ones would read as a finding about them.
VENDORS = [
    "openai",
    "chatgpt",
    "gpt-3",
    "gpt-4",
    "gpt-5",
    "anthropic",
    "claude",
    "gemini",
    "deepmind",
    "llama",
    "mistral",
    "mixtral",
    "qwen",
    "deepseek",
    "grok",
    "cohere",
    "copilot",
    "bard",
    "palm",
    "vicuna",
    "alpaca",
    "falcon",
]


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    spec = PairsSpec(source=demo_config(Path("out")).pairs)
    survey = survey_pairs(spec)
    assert survey.n_rejects == 0
    # Nothing that a user would have to be told about the sample itself.
    assert survey.notices == []
    return [pair for block in survey.blocks for pair in read_block(block, spec)]


@pytest.fixture(scope="module")
def cells(pairs: list[Pair]) -> dict[str, dict[str, Counter[Cell]]]:
    """Cells of each judge, over all pairs and over the short and the long ones."""

    bound = JUDGES["second-if-long"].judge.long_chars

    async def ask(planted: Planted) -> dict[str, Counter[Cell]]:
        judge, found = Simulated(planted.judge), {k: Counter[Cell]() for k in ("short", "long")}
        for pair in pairs:
            ab, ba = [(await judge.ask(Call(pair=pair, order=order))).slot for order in Order]
            assert ab is not None
            assert ba is not None
            size = len(pair.answer_a) + len(pair.answer_b)
            found["long" if size > bound else "short"][settle(ab, ba)] += 1
        return {**found, "all": found["short"] + found["long"]}

    return {name: asyncio.run(ask(planted)) for name, planted in JUDGES.items()}


def leans(counts: Counter[Cell]) -> tuple[int, int]:
    """Calls pulled to the first and to the second slot."""
    first = 2 * counts[Cell.STUCK_FIRST] + counts[Cell.HALF_FIRST]
    return first, 2 * counts[Cell.STUCK_SECOND] + counts[Cell.HALF_SECOND]


def test_there_are_enough_pairs_of_several_tasks(pairs: list[Pair]) -> None:
    tasks = Counter(pair.task for pair in pairs)
    assert len(pairs) >= 200
    assert len(tasks) == 5
    assert min(tasks.values()) >= 30
    assert len({(pair.task, pair.pair_id) for pair in pairs}) == len(pairs)
    assert len({pair.pair_id for pair in pairs}) == len(pairs)


def test_the_lengths_vary_and_neither_column_is_always_the_longer(pairs: list[Pair]) -> None:
    sizes = [len(text) for pair in pairs for text in (pair.answer_a, pair.answer_b)]
    assert (min(sizes) < 100, max(sizes) > 1500, 100 < median(sizes) < 1000) == (True, True, True)
    longer_a = sum(len(pair.answer_a) > len(pair.answer_b) for pair in pairs)
    assert 0.4 < longer_a / len(pairs) < 0.6


def test_no_two_answers_are_equal_and_none_is_blank(pairs: list[Pair]) -> None:
    assert all(pair.answer_a.strip() and pair.answer_b.strip() for pair in pairs)
    assert all(pair.answer_a != pair.answer_b for pair in pairs)


def test_no_maker_or_model_is_named() -> None:
    file = resources.files("judgebias.demo") / "pairs.jsonl"
    text = file.read_text(encoding="utf-8").lower()
    assert [name for name in VENDORS if name in text] == []


def test_every_line_has_the_columns_of_a_pair() -> None:
    file = resources.files("judgebias.demo") / "pairs.jsonl"
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    names = {"pair_id", "task", "question", "answer_a", "answer_b", "model_a", "model_b", "gold"}
    assert all(names | {"quality_a", "quality_b"} == row.keys() for row in rows)
    assert {row["gold"] for row in rows} <= {"A", "B", "tie"}


def test_the_gold_label_follows_the_qualities(pairs: list[Pair]) -> None:
    for pair in pairs:
        assert pair.quality_a is not None
        assert pair.quality_b is not None
        gap = pair.quality_a - pair.quality_b
        assert pair.gold == "tie" or (gap > 0) == (pair.gold == "A"), pair.pair_id


def test_the_words_of_the_planted_judges_are_true_of_their_configuration() -> None:
    first, second = JUDGES["first-leaning"].judge, JUDGES["second-if-long"].judge
    assert JUDGES["honest"].planted == "no bias"
    for name in ("honest", "tie-shy"):
        judge = JUDGES[name].judge
        assert (judge.offset, judge.offset_long, judge.length_weight) == (0.0, None, 0.0)
    assert f"offset {first.offset:+.1f}: pulls to the first slot" == JUDGES["first-leaning"].planted
    assert second.offset == 0
    assert second.offset_long is not None
    assert JUDGES["second-if-long"].planted.startswith(
        f"offset {second.offset_long:.1f} above {second.long_chars:,} characters"
    )
    assert (JUDGES["tie-shy"].judge.tie_width, JUDGES["tie-shy"].planted[:11]) == (0, "never a tie")
    assert all(planted.judge.failure_rate == 0 for planted in PLANTED)


def test_what_was_planted_is_what_the_judges_do(cells: dict[str, dict[str, Counter[Cell]]]) -> None:
    first, second = leans(cells["first-leaning"]["all"])
    assert first > 10 * max(1, second)
    first, second = leans(cells["second-if-long"]["long"])
    assert second > 10 * max(1, first)
    ties = (Cell.AGREED_TIE, Cell.HALF_FIRST, Cell.HALF_SECOND)
    assert sum(cells["tie-shy"]["all"][cell] for cell in ties) == 0
    # Three standard deviations of an even split.
    for name, size in (("honest", "all"), ("tie-shy", "all"), ("second-if-long", "short")):
        first, second = leans(cells[name][size])
        assert abs(first - second) < 3 * (2 * (first + second)) ** 0.5, name


def test_the_honest_judge_is_the_most_consistent(
    cells: dict[str, dict[str, Counter[Cell]]],
) -> None:
    agreed = (Cell.AGREED_A, Cell.AGREED_B, Cell.AGREED_TIE)
    shares = {n: sum(found["all"][c] for c in agreed) for n, found in cells.items()}
    assert max(shares, key=lambda name: shares[name]) == "honest"


def test_the_demo_asks_both_orders_on_a_ray_of_its_own(tmp_path: Path) -> None:
    config = demo_config(tmp_path / "out")
    assert (config.orders, config.engine.address) == ("both", "local")
    assert Path(config.out).is_absolute()
    assert [judge.name for judge in config.judges] == list(JUDGES)
