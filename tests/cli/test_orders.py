"""Runs in one order, or in both for a sample of questions, with the asking done in this process."""

from __future__ import annotations

import json
from math import hypot, sqrt
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgebias.cli import run_app
from judgebias.cli.status import read_status
from judgebias.rundir import RunDir
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, same_tables, write_pairs

N = 60
PULL: dict[str, Any] = {"name": "pull", "provider": "simulated", "offset": 0.5}
Read = pytest.CaptureFixture[str]


def ordered(folder: Path, orders: str, name: str = "out", **run: object) -> Path:
    pairs = folder / "pairs.jsonl"
    if not pairs.exists():
        write_pairs(pairs, N)
    given = {"judges": [PULL], "orders": orders, **run}
    return run_file(folder / f"{name}.toml", pairs=pairs, out=name, **given)  # type: ignore[arg-type]


def asked(out: Path) -> set[tuple[str, str, str]]:
    calls = pl.read_parquet(out / "calls.parquet")
    return set(calls.select("task", "pair_id", "order").iter_rows())


def total(out: Path, table: str) -> dict[str, Any]:
    rows = pl.read_csv(out / "tables" / f"{table}.csv", infer_schema_length=None)
    return rows.filter(pl.col("task") == "ALL").row(0, named=True)


def summary(out: Path) -> dict[str, Any]:
    rows = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return next(row for row in rows if row["task"] == "ALL")


@pytest.mark.parametrize("orders", ["ab", "ba", "random"])
@pytest.mark.slow
def test_one_order_is_asked_once_and_the_other_is_not_pending(
    asking: Asking, orders: str, tmp_path: Path
) -> None:
    assert run_app(["run", str(ordered(tmp_path, orders, repeats=2))]) == 0
    assert len(asking.asked) == 2 * N
    said = {order for _, _, order in asked(tmp_path / "out")}
    assert said == ({"ab", "ba"} if orders == "random" else {orders})
    row = summary(tmp_path / "out")
    assert (row["n_single"], row["n_pending"], row["n_calls"]) == (2 * N, 0, 2 * N)
    for name in ("consistency", "p_position", "offset", "swing", "win_rate_a"):
        assert row[name] is None
    (status,) = read_status(RunDir(tmp_path / "out")).judges
    assert (status.expected, status.pending) == (2 * N, 0)
    text = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert "## One order only" in text
    assert "of all calls (one order only)" in text
    shown = {"ab": "A was shown first", "ba": "B was shown first", "random": "mixed orders"}
    assert shown[orders] in text


def test_sampled_asks_n_and_m_calls_and_not_one_more(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    assert run_app(["run", str(ordered(tmp_path, "sampled", swap_fraction=0.3))]) == 0
    out = tmp_path / "out"
    questions = pl.read_ndjson(tmp_path / "pairs.jsonl").select("task", "pair_id", "question")
    calls = pl.DataFrame(list(asked(out)), ["task", "pair_id", "order"], orient="row")
    by_pair = calls.group_by("task", "pair_id").len().join(questions, on=["task", "pair_id"])
    in_both = by_pair.filter(pl.col("len") == 2)
    m = in_both.height
    assert (by_pair.height, m) == (N, 2 * round(0.3 * N / 2))
    assert len(asking.asked) == N + m
    # Both pairs of a question are in the sample, or neither is.
    assert in_both.group_by("question").len()["len"].to_list() == [2] * (m // 2)
    row, table = summary(out), total(out, "sampled")
    assert (row["n_complete"], row["n_single"], row["n_pending"]) == (m, N - m, 0)
    assert (table["n_both"], table["n_single"], table["n_calls"]) == (m, N - m, N + m)
    for name in ("consistency", "p_position", "offset"):
        assert table[name] == row[name]
    said = capsys.readouterr()
    assert (
        f"{N} pairs in one order and {m} of them in the other too (drawn by question)" in said.err
    )
    assert "all pairs, also those asked in one order" in said.out
    text = (out / "summary.md").read_text(encoding="utf-8")
    assert "## Both orders for some pairs only" in text
    assert "drawn by question; the intervals of swing and win rate over all pairs are for" in text


def test_the_sample_depends_on_the_pairs_and_not_on_their_rows(
    asking: Asking, tmp_path: Path
) -> None:
    assert run_app(["run", str(ordered(tmp_path, "sampled", "one"))]) == 0
    lines = (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "pairs.jsonl").write_text("".join(reversed(lines)), encoding="utf-8")
    assert run_app(["run", str(ordered(tmp_path, "sampled", "other"))]) == 0
    assert asked(tmp_path / "one") == asked(tmp_path / "other")
    assert len(asking.asked) == 2 * (N + 12)
    same_tables(tmp_path / "one", tmp_path / "other")


def test_blocks_of_any_size_ask_the_same_calls(asking: Asking, tmp_path: Path) -> None:
    for name, block in (("small", 7), ("large", 0)):
        file = ordered(tmp_path, "sampled", name, self_pair=20, engine_pairs_per_block=block)
        assert run_app(["run", str(file)]) == 0
    assert len(asking.asked) == 2 * (N + 12 + 20)
    same_tables(tmp_path / "small", tmp_path / "large")


def test_a_larger_share_and_more_rows_keep_what_was_asked(asking: Asking, tmp_path: Path) -> None:
    out, before = tmp_path / "out", set[tuple[str, str, str]]()
    for n, share in ((N, 0.2), (N, 0.5), (2 * N, 0.5)):
        write_pairs(tmp_path / "pairs.jsonl", n)
        assert run_app(["run", str(ordered(tmp_path, "sampled", swap_fraction=share))]) == 0
        now = asked(out)
        assert before < now
        # Nothing was bought that is not in the tables.
        assert len(asking.asked) == len(now) == summary(out)["n_calls"]
        before = now


@pytest.mark.parametrize("first", ["ab", "random", "sampled"])
def test_a_run_in_one_order_is_extended_to_both(
    asking: Asking, capsys: Read, first: str, tmp_path: Path
) -> None:
    assert run_app(["run", str(ordered(tmp_path, first))]) == 0
    bought = len(asking.asked)
    assert bought < 2 * N
    assert run_app(["run", str(ordered(tmp_path, "both"))]) == 0
    said = capsys.readouterr().err
    assert f'orders was "{first}" and is "both" now' in said
    assert f"{2 * N - bought} calls to ask of 1 judge, {bought} are on disk" in said
    assert run_app(["run", str(ordered(tmp_path, "both", "fresh"))]) == 0
    names = ("summary.csv", "summary.json", "summary.md", "verdicts.parquet", "tables/flips.csv")
    for name in names:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes()


def test_calls_beyond_a_smaller_design_leave_the_tables(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    assert run_app(["run", str(ordered(tmp_path, "both"))]) == 0
    assert run_app(["run", str(ordered(tmp_path, "ab"))]) == 0
    assert len(asking.asked) == 2 * N
    assert 'orders was "both" and is "ab" now' in capsys.readouterr().err
    row = summary(tmp_path / "out")
    assert (row["n_single"], row["n_calls"], row["n_pending"]) == (N, N, 0)
    assert {order for _, _, order in asked(tmp_path / "out")} == {"ab"}


def test_the_calls_of_judges_and_repeats_that_left_are_kept_and_in_no_table(
    asking: Asking, tmp_path: Path
) -> None:
    pairs, out = write_pairs(tmp_path / "pairs.jsonl", N), tmp_path / "out"
    two = [{"name": name, "provider": "simulated"} for name in ("left", "stays")]

    def start(judges: list[dict[str, str]], repeats: int) -> pl.DataFrame:
        file = run_file(
            tmp_path / "run.toml", pairs=pairs, judges=judges, out="out", repeats=repeats
        )
        assert run_app(["run", str(file)]) == 0
        calls = pl.read_parquet(out / "calls.parquet")
        assert calls.height == pl.read_csv(out / "summary.csv").filter(task="ALL")["n_calls"].sum()
        return calls

    everything = start(two, 2)
    assert everything.height == len(asking.asked) == 8 * N
    stayed = everything.filter(pl.col("judge") == "stays", pl.col("repeat") == 1)
    assert start(two[1:], 1).equals(stayed)
    assert start(two, 2).equals(everything)
    assert len(asking.asked) == 8 * N


def test_a_stop_leaves_only_what_the_design_asks_pending(asking: Asking, tmp_path: Path) -> None:
    asking.most, asking.end.interrupted = 40, True
    assert run_app(["run", str(ordered(tmp_path, "sampled"))]) == 4
    (status,) = read_status(RunDir(tmp_path / "out")).judges
    assert (status.expected, status.pending) == (N + 12, N + 12 - 40)
    asking.most, asking.end.interrupted = None, False
    assert run_app(["run", str(ordered(tmp_path, "sampled"))]) == 0
    assert len(asking.asked) == N + 12


@pytest.mark.parametrize(
    ("orders", "counted"),
    [
        (
            "sampled",
            "60 pairs in one order and 12 of them in the other too (drawn by question): 72",
        ),
        ("ab", 'orders = "ab": 60 pairs in one order (60 show A first, 0 B): 60 calls a judge'),
        ("random", "consistency and position bias cannot be told from one order"),
    ],
)
def test_plan_counts_the_calls_and_answers_how_many_pairs_it_takes(
    capsys: Read, orders: str, counted: str, tmp_path: Path
) -> None:
    file = ordered(tmp_path, orders, self_pair=10)
    assert run_app(["plan", str(file)]) == 0
    said = capsys.readouterr().out
    assert counted in said
    assert "self-pair probe: 10 texts, each in both slots at once: 10 calls a judge" in said
    assert f"pull: {(72 if orders == 'sampled' else N) + 10} calls to ask" in said
    assert "245 independent pairs must be asked in both orders, and there are 60" in said
    wish = ["--consistency", "0.98", "--width", "0.2"]
    assert run_app(["plan", str(file), *wish]) == 0
    assert "a consistency of about 98% within 20.0%" in capsys.readouterr().out
    assert run_app(["plan", str(file), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    both = {"sampled": 12}.get(orders, 0)
    assert (plan["orders"], plan["n_both"], plan["n_in_one_order"]) == (orders, both, N - both)
    assert plan["n_items"] == 10
    assert not (tmp_path / "out").exists()


def test_a_text_in_several_pairs_is_warned_of_in_plan_run_and_report(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    path = write_pairs(tmp_path / "pairs.jsonl", N)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rows[1]["answer_a"] = rows[0]["answer_a"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    warning = "2 of 60 pairs share a text with another pair of their question (1 texts in 1 quest"
    assert run_app(["plan", str(ordered(tmp_path, "both"))]) == 0
    assert warning in capsys.readouterr().out
    assert run_app(["run", str(ordered(tmp_path, "both"))]) == 0
    assert asking.asked
    assert warning in capsys.readouterr().err
    assert warning in (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert pl.read_csv(tmp_path / "out" / "tables" / "texts.csv")["n_pairs_sharing"].item() == 2


def test_probe_sampled_and_full_runs_of_one_judge_agree_within_their_intervals(
    asking: Asking, tmp_path: Path
) -> None:
    write_pairs(tmp_path / "pairs.jsonl", 1500)
    for orders in ("sampled", "both"):
        file = ordered(tmp_path, orders, orders, swap_fraction=0.3, self_pair=1000)
        assert run_app(["run", str(file)]) == 0
    assert len(asking.asked) == (1500 + 450 + 1000) + (3000 + 1000)
    full, part = summary(tmp_path / "both"), total(tmp_path / "sampled", "sampled")
    for name in ("consistency", "offset", "swing", "win_rate_a"):
        assert part[f"{name}_low"] < full[name] < part[f"{name}_high"]
    assert full["position_bias"] == part["position_bias"] == "first"
    probe = total(tmp_path / "both", "self_pair")
    assert probe == total(tmp_path / "sampled", "self_pair")
    # Of two independent estimates, each with its own error; the run's is half an interval.
    se_probe = sqrt(1 / probe["n_slot1"] + 1 / probe["n_slot2"])
    half = (full["offset_high"] - full["offset_low"]) / 2
    assert abs(probe["offset"] - PULL["offset"]) < 1.96 * se_probe
    assert abs(full["offset"] - PULL["offset"]) < half
    assert abs(probe["offset"] - full["offset"]) < hypot(1.96 * se_probe, half)
