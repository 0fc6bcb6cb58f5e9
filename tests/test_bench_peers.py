"""The parts of `scripts/bench_peers` that decide what its tables say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from judgebias.stats.binomial import sign_test_p
from scripts.benches.peers.calls import make_calls, make_pairs
from scripts.benches.peers.judging import Trial, figures
from scripts.benches.peers.layout import median, shown, table
from scripts.benches.peers.meter import Command
from scripts.benches.peers.textbook import Counts, binomial_sum, by_loop, by_pandas, by_summary
from scripts.benches.peers.ways import WAYS, Outcome, outcome_of
from scripts.benches.peers.work import answered, read_prompts, verdict_of, write_prompts
from scripts.benches.world import write_pairs

PAIRS = 400


def test_the_textbooks_ways_count_what_the_summary_counts() -> None:
    calls, pairs = make_calls(PAIRS), make_pairs(PAIRS)
    ours = by_summary(calls, pairs)
    rows = calls.select("task", "pair_id", "order", "slot").rows()
    assert by_loop(rows) == ours
    assert 0 < ours["ALL"].agreed < ours["ALL"].pairs < PAIRS
    assert len(ours) == 21


def test_a_pandas_groupby_counts_the_same() -> None:
    pandas = pytest.importorskip("pandas")
    calls, pairs = make_calls(PAIRS), make_pairs(PAIRS)
    columns = calls.select("task", "pair_id", "order", "slot").to_dict(as_series=False)
    assert by_pandas(pandas.DataFrame(columns)) == by_summary(calls, pairs)


def test_every_cell_is_counted_by_hand() -> None:
    slots = [("first", "second"), ("first", "first"), ("second", "tie"), ("tie", "tie")]
    slots += [("tie", "first"), ("first", None)]
    rows = [
        ("t", f"{number}", order, slot)
        for number, pair in enumerate(slots)
        for order, slot in zip(("ab", "ba"), pair, strict=True)
    ]
    by_hand = Counts(pairs=5, agreed=2, firsts=4, decisive=6)
    assert by_loop(rows) == {"t": by_hand, "ALL": by_hand}
    calls = pl.DataFrame(rows, ["task", "pair_id", "order", "slot"], orient="row").with_columns(
        judge=pl.lit("j"), repeat=pl.lit(1)
    )
    pairs = make_pairs(len(slots)).with_columns(
        task=pl.lit("t"), pair_id=pl.Series([f"{n}" for n in range(len(slots))])
    )
    assert by_summary(calls, pairs) == {"t": by_hand, "ALL": by_hand}


@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_the_binomial_sum_is_the_sign_test(n: int) -> None:
    assert [binomial_sum(k, n) for k in range(n + 1)] == [sign_test_p(k, n) for k in range(n + 1)]


def test_a_further_call_and_a_start_are_told_apart() -> None:
    def trial(calls: int, cpu_s: float) -> Trial:
        outcome = Outcome(answered=calls, failed=0, twice=0)
        rest = {"command_s": 9.0, "asking_s": 2.0, "cpu_ms_asking": 1.5, "rss_mib": 1.0}
        return Trial(
            calls=calls, cpu_s=cpu_s, exit=0, pss_mib=1.0, in_flight=64, outcome=outcome,
            last_words="", **rest,
        )  # fmt: skip

    found = figures(trial(1000, 12.0), trial(2000, 14.0))
    assert found["cpu_ms_more"] == pytest.approx(2.0)
    assert found["cpu_s_start"] == pytest.approx(10.0)
    assert found["cpu_ms_all"] == pytest.approx(7.0)
    assert found["calls_per_s"] == pytest.approx(999.5)


def test_medians_leave_out_what_was_not_measured() -> None:
    rounds = [{"s": 3.0}, {"s": None}, {"s": 1.0}, {"s": 2.0}]
    assert (median(rounds, "s"), median(rounds, "other")) == (2.0, None)


def test_a_table_has_the_columns_of_all_its_rows() -> None:
    rows = [{"way": "x", "n": 12345}, {"way": "y", "s": 1.2345, "same": True}]
    assert table("title", rows).splitlines()[3:] == [
        "| way | n | s | same |",
        "| --- | --- | --- | --- |",
        "| x | 12,345 | - | - |",
        "| y | - | 1.23 | yes |",
    ]
    assert shown(1234.5) == "1,234"


def test_rows_twice_and_calls_without_a_verdict_are_told_apart() -> None:
    rows = [("a", True), ("b", False), ("b", True), ("c", False), ("d", True), ("d", True)]
    assert outcome_of(rows) == Outcome(answered=3, failed=1, twice=2)
    assert outcome_of([]) == Outcome(answered=0, failed=0, twice=0)


def test_results_are_read_from_a_file_and_from_a_folder(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "verdict": "tie", "error": None},
        {"id": "b", "verdict": None, "error": "e"},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    way = next(way for way in WAYS if way.module == "loop")
    assert way.outcome(tmp_path) == Outcome(answered=0, failed=0, twice=0)
    (tmp_path / "out").write_text(text)
    assert way.outcome(tmp_path) == Outcome(answered=1, failed=1, twice=0)
    assert answered(tmp_path / "out") == {"a"}
    (tmp_path / "out").unlink()
    (tmp_path / "out").mkdir()
    for part in ("0.json", "1.json"):
        (tmp_path / "out" / part).write_text(text)
    assert way.outcome(tmp_path) == Outcome(answered=1, failed=1, twice=2)


def test_prompts_are_those_of_both_orders(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 3)
    assert write_prompts(pairs, tmp_path / "prompts.jsonl") == 6
    prompts = list(read_prompts(tmp_path / "prompts.jsonl"))
    assert len({prompt["user"] for prompt in prompts}) == 6
    assert {prompt["id"] for prompt in prompts} >= {"0000000-ab", "0000002-ba"}
    sizes = [len(prompt["system"]) + len(prompt["user"]) for prompt in prompts]
    assert all(2500 < size < 4000 for size in sizes), sizes


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("so.\nVERDICT: first", "first"), ("VERDICT: tie\n", "tie"), ("no idea", None), (None, None)],
)
def test_the_verdict_is_the_word_at_the_end(text: str | None, verdict: str | None) -> None:
    assert verdict_of(text) == verdict


def test_a_kill_reaches_what_has_a_group_of_its_own_when_everything_is_meant(
    tmp_path: Path,
) -> None:
    script = "import subprocess as s; s.Popen(['sleep', '60'], start_new_session=True).wait()"
    words = [sys.executable, "-c", script]
    command = Command.start(words, folder=tmp_path, environ={}, said=tmp_path / "said")
    command.wait(20.0, until=lambda: command.tree_size == 2)
    command.kill(everything=True)
    assert command.clear() == 0
