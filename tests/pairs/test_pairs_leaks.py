"""Pairs whose answers tell who wrote them: marked in the index, or left out and accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgebias.pairs import PairsSpec, Reject, survey_pairs
from tests.pairs.sample_pairs import row, survey, survey_and_read, write_rows

ROWS = [
    row("1", task="x"),
    row("2", task="x", answer_a="I am ChatGPT."),
    row("3", task="y", answer_b="Ask tuned-7b.", model_a="tuned-7b"),
    row("4", task="x", answer_a="As Claude, no.", answer_b="OpenAI made me."),
    row("5", task="y", answer_a=None, answer_b="I am Gemini."),
]


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet", "in.csv.gz"])
def test_leaks_are_marked_in_the_index(tmp_path: Path, name: str) -> None:
    found = survey(write_rows(tmp_path / name, ROWS[:4]))
    told = found.index.select("pair_id", "leaks_a", "leaks_b").rows()
    assert told == [
        ("1", None, None),
        ("2", "self chatgpt", None),
        ("3", None, "model tuned-7b"),
        ("4", "self claude", "name openai"),
    ]
    assert (found.n_rejects, found.skipped) == (0, {})


@pytest.mark.parametrize("pairs_per_block", [0, 2])
def test_skipped_pairs_are_rejects_with_a_reason_and_a_count(
    tmp_path: Path, pairs_per_block: int
) -> None:
    path = write_rows(tmp_path / "in.jsonl", ROWS)
    found, pairs = survey_and_read(path, on_leak="skip", pairs_per_block=pairs_per_block)
    assert [pair.pair_id for pair in pairs] == ["1"]
    assert found.skipped == {"x": 2, "y": 1}
    # The row without an answer is a fault of its own and no skipped pair.
    assert found.n_rejects == 4
    reason = "identity leak ({}), and on_leak = skip"
    assert [(r.row, r.pair_id, r.field, r.reason) for r in found.rejects] == [
        (2, "2", "answer_a", reason.format("self chatgpt")),
        (3, "3", "answer_b", reason.format("model tuned-7b")),
        (4, "4", "answer_a", reason.format("self claude")),
        (5, "5", "answer_a", "missing or null"),
    ]
    assert any("3 pairs have an answer that tells who wrote it" in n for n in found.notices)


def test_every_skipped_pair_is_handed_on(tmp_path: Path) -> None:
    rows = [row(str(n), answer_a="I am ChatGPT.") for n in range(1200)]
    seen: list[Reject] = []
    spec = PairsSpec(source=str(write_rows(tmp_path / "in.jsonl", rows)), on_leak="skip")
    found = survey_pairs(spec, on_reject=seen.append)
    assert (found.n_rejects, found.index.height, len(seen)) == (1200, 0, 1200)
    assert found.skipped == {"default": 1200}
