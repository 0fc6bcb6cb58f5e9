"""`judgebias plan`: says what a run would say, and leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgebias.cli import run_app
from judgebias.rundir import RunDir
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, write_pairs

JUDGE = {"name": "j", "provider": "simulated"}
Read = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 9)
    return run_file(tmp_path / "run.toml", pairs=pairs, judges=[JUDGE], out="out")


def planned(run: Path, capsys: Read, *options: str) -> list[str]:
    assert run_app(["plan", str(run), *options]) == 0
    return capsys.readouterr().out.splitlines()


def content(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_plan_counts_and_writes_nothing(run: Path, capsys: Read) -> None:
    before = content(run.parent)
    assert planned(run, capsys) == [
        "9 pairs of 5 questions (task0 3, task1 3, task2 3)",
        "j: 18 calls to ask, 0 are on disk",
        "to know a consistency of about 80% within 10.0% from end to end (95%), 245 independent "
        'pairs must be asked in both orders, and there are 9: orders = "both"',
    ]
    assert content(run.parent) == before
    assert not (run.parent / "out").exists()


def test_a_plan_in_the_midst_of_a_run_directory_changes_nothing(
    run: Path, asking: Asking, capsys: Read
) -> None:
    asking.most = 7
    run_app(["run", str(run)])
    capsys.readouterr()
    before = content(run.parent)
    assert "j: 11 calls to ask, 7 are on disk" in planned(run, capsys)
    assert content(run.parent) == before


def test_rejected_rows_are_shown_and_no_file_is_named_that_is_not_written(
    run: Path, capsys: Read
) -> None:
    with (run.parent / "pairs.jsonl").open("a", encoding="utf-8") as file:
        file.write('[1]\n{"pair_id": "x", "question": "?", "answer_a": 7, "answer_b": "b"}\n')
    lines = planned(run, capsys)
    start = lines.index("2 input rows cannot be judged:")
    pairs = run.parent / "pairs.jsonl"
    assert lines[start + 1 : start + 3] == [
        f"  {pairs} row 10: not a JSON object",
        f"  {pairs} row 11, answer_a: expected a text, found a number",
    ]
    assert not any("rejects.jsonl" in line or "None" in line for line in lines)


def test_of_many_rejected_rows_the_first_are_shown(run: Path, capsys: Read) -> None:
    with (run.parent / "pairs.jsonl").open("a", encoding="utf-8") as file:
        file.write("[1]\n" * 2345)
    lines = planned(run, capsys)
    assert "2,345 input rows cannot be judged:" in lines
    assert sum("not a JSON object" in line for line in lines) == 10
    assert "  and 2,335 more" in lines


def test_a_missing_key_is_said_and_counting_goes_on(
    run: Path, capsys: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    judge = {"name": "o", "provider": "openai", "model": "m"}
    file = run_file(run, pairs=run.parent / "pairs.jsonl", judges=[judge], out="out")
    lines = planned(file, capsys)
    said = "the variable OPENAI_API_KEY (key of judge 'o') is empty or not set"
    assert f"a run would be refused here: {said}" in lines
    assert run_app(["run", str(file), "--yes"]) == 2
    assert said in capsys.readouterr().err


def test_a_run_directory_in_use_is_said(run: Path, capsys: Read) -> None:
    directory = RunDir(run.parent / "out")
    directory.prepare()
    with directory.owned():
        lines = planned(run, capsys)
    assert any(line.startswith("a run would be refused now: ") for line in lines)
    assert not any("refused" in line for line in planned(run, capsys))


def test_json_holds_the_same(run: Path, capsys: Read) -> None:
    plan = json.loads("\n".join(planned(run, capsys, "--json", "--limit", "4")))
    assert (plan["n_pairs"], plan["expected"], plan["missing"]) == (9, {"j": 8}, {"j": 8})


PRICED = {
    "name": "w",
    "provider": "openai",
    "model": "m",
    "max_tokens": 100,
    "price": {"input": 0.0, "output": 10.0},
}


def with_more(run: Path, more: str) -> Path:
    run.write_text(f"{run.read_text()}{more}\n")
    return run


def test_a_plan_says_how_far_a_bound_on_calls_reaches(
    run: Path, asking: Asking, capsys: Read
) -> None:
    with_more(run, "[budget]\nmax_calls = 12")
    line = "budget: max_calls = 12, 0 are used: enough for 12 of 18 calls to ask,"
    assert f"{line} where none needs a second request" in planned(run, capsys)
    asking.most = 7
    run_app(["run", str(run)])
    capsys.readouterr()
    line = "budget: max_calls = 12, 7 are used: enough for 5 of 11 calls to ask,"
    assert f"{line} where none needs a second request" in planned(run, capsys)


@pytest.mark.parametrize(
    ("usd", "reach"),
    [
        ("0.009", "max_usd = 0.01, 0.00 are spent: enough for 9 of 18 calls to ask"),
        ("1.0", "max_usd = 1.00, 0.00 are spent: enough for the 18 calls to ask"),
    ],
)
def test_a_plan_says_how_far_a_bound_on_dollars_reaches(
    tmp_path: Path, capsys: Read, usd: str, reach: str
) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 9)
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[PRICED], out="out")
    with_more(run, f"[budget]\nmax_usd = {usd}")
    assert f"budget: {reach} at the most they may cost (0.02 USD)" in planned(run, capsys)


@pytest.mark.parametrize(
    ("n", "rule", "said"),
    [
        (60, "decided = true", "it can save nothing here: even if all verdicts were alike"),
        (400, "swing_half_width = 0.001", "could hold only after 400 of 400 pairs"),
        (400, "decided = true", "all alike is asked about 128 of its 800 calls, any other judge"),
        (400, "swing_half_width = 0.05", "(the rule can hold after 77 units at the soonest"),
    ],
)
def test_a_plan_says_what_a_stop_rule_may_save(
    tmp_path: Path, capsys: Read, n: int, rule: str, said: str
) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", n)
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[JUDGE], out="out", cluster="pair")
    with_more(run, f"[stop]\n{rule}")
    (line,) = [line for line in planned(run, capsys) if line.startswith("stop rule: ")]
    assert said in line
