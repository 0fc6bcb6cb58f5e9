"""The self-pair probe through the commands, with the asking done in this process."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from judgebias.cli import run_app
from judgebias.cli.status import read_status
from judgebias.rundir import RunDir
from judgebias.summary.probe import FLAG
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, write_pairs

NOISY = {"name": "noisy", "provider": "simulated", "tie_width": 0.3, "offset": 0.4}
FLAKY = {**NOISY, "name": "flaky", "failure_rate": 0.3}
ORDINARY = ("summary.csv", "summary.json", "summary.parquet", "verdicts.parquet")
Read = pytest.CaptureFixture[str]


def total(out: Path, judge: str = "noisy") -> dict[str, object]:
    table = pl.read_csv(out / "tables" / "self_pair.csv")
    return table.filter((pl.col("judge") == judge) & (pl.col("task") == "ALL")).row(0, named=True)


def probed(folder: Path, name: str = "out", **run: object) -> Path:
    pairs = folder / "pairs.jsonl"
    if not pairs.exists():
        write_pairs(pairs, 60)
    given = {"judges": [NOISY], "self_pair": 24, **run}
    return run_file(folder / f"{name}.toml", pairs=pairs, out=name, **given)  # type: ignore[arg-type]


def with_twins(path: Path, n: int, twins: int) -> None:
    """Make both answers of the first pairs the same."""
    rows = [json.loads(line) for line in write_pairs(path, n).read_text("utf-8").splitlines()]
    for row in rows[:twins]:
        row["answer_b"] = row["answer_a"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_each_item_is_asked_once_per_repeat_and_stays_out_of_the_other_tables(
    asking: Asking, tmp_path: Path
) -> None:
    assert run_app(["run", str(probed(tmp_path, repeats=2))]) == 0
    assert len(asking.asked) == 2 * (120 + 24)
    row = total(tmp_path / "out")
    assert (row["n_items"], row["n_calls"], row["flag"]) == (24, 48, FLAG)
    by_task = pl.read_csv(tmp_path / "out" / "tables" / "self_pair.csv")
    assert by_task["n_items"].to_list() == [8, 8, 8, 24]
    assert run_app(["run", str(probed(tmp_path, "plain", repeats=2, self_pair=0))]) == 0
    for name in (*ORDINARY, "tables/repeats.csv", "tables/length.csv", "tables/ranking.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    said = (tmp_path / "out" / "summary.md").read_text("utf-8")
    assert "## Two identical texts" in said
    assert FLAG in said
    assert "## Two identical texts" not in (tmp_path / "plain" / "summary.md").read_text("utf-8")


def test_the_raw_calls_of_the_probe_have_a_file_of_their_own(
    asking: Asking, tmp_path: Path
) -> None:
    assert run_app(["run", str(probed(tmp_path))]) == 0
    assert asking.asked
    calls = pl.read_parquet(tmp_path / "out" / "self_pair_calls.parquet")
    assert calls.height == 24
    assert calls.select("judge", "task", "pair_id", "repeat", "order").is_unique().all()
    assert pl.read_parquet(tmp_path / "out" / "calls.parquet").height == 120


def test_a_stopped_probe_is_pending_and_the_same_command_ends_it(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    file = probed(tmp_path)
    asking.most, asking.end.interrupted = 130, True
    assert run_app(["run", str(file)]) == 4
    assert "14 calls are pending" in capsys.readouterr().err
    (status,) = read_status(RunDir(tmp_path / "out")).judges
    assert (status.expected, status.verdicts, status.pending) == (144, 130, 14)
    failures = pl.read_csv(tmp_path / "out" / "tables" / "failures.csv")
    waiting = failures.filter(pl.col("order") == "self_pair")
    assert (waiting["n_expected"].sum(), waiting["n_pending"].sum()) == (24, 14)
    asking.most, asking.end.interrupted = None, False
    assert run_app(["run", str(file)]) == 0
    assert len(asking.asked) == 144
    (status,) = read_status(RunDir(tmp_path / "out")).judges
    assert (status.expected, status.pending) == (144, 0)


def test_more_items_contain_the_fewer_and_fewer_lose_nothing(
    asking: Asking, tmp_path: Path
) -> None:
    for items, new, on_record in ((10, 10, 10), (25, 15, 25), (10, 0, 25)):
        before = len(asking.asked)
        file = probed(tmp_path, self_pair=0)
        assert run_app(["probe", str(file), "--items", str(items)]) == 0
        assert len(asking.asked) - before == new
        assert total(tmp_path / "out")["n_items"] == on_record


def test_probe_asks_nothing_else_and_a_later_run_keeps_it(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    file = probed(tmp_path, self_pair=0)
    assert run_app(["probe", str(file), "--items", "12"]) == 0
    out, err = capsys.readouterr()
    assert len(asking.asked) == 12
    assert "two identical texts" in out
    assert "12 calls to ask of 1 judge" in err
    assert json.loads((tmp_path / "out" / "summary.json").read_text("utf-8")) == []
    (status,) = read_status(RunDir(tmp_path / "out")).judges
    assert (status.expected, status.pending) == (12, 0)
    found = total(tmp_path / "out")
    capsys.readouterr()
    assert run_app(["run", str(file)]) == 0
    assert capsys.readouterr().err.startswith("120 calls to ask of 1 judge\n")
    assert len(asking.asked) == 12 + 120
    assert total(tmp_path / "out") == found


def test_probe_after_a_run_leaves_the_other_tables_as_they_are(
    asking: Asking, tmp_path: Path
) -> None:
    file = probed(tmp_path, self_pair=0)
    assert run_app(["run", str(file), "--limit", "40"]) == 0
    before = {name: (tmp_path / "out" / name).read_bytes() for name in ORDINARY}
    assert run_app(["probe", str(file), "--items", "12"]) == 0
    assert len(asking.asked) == 80 + 12
    assert {name: (tmp_path / "out" / name).read_bytes() for name in ORDINARY} == before


def test_probe_without_a_number_takes_the_run_files_or_its_own(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    assert run_app(["probe", str(probed(tmp_path)), "--json"]) == 0
    assert len(asking.asked) == 24
    printed = json.loads(capsys.readouterr().out)
    assert [row["n_items"] for row in printed] == [8, 8, 8, 24]
    assert run_app(["probe", str(probed(tmp_path, "other", self_pair=0))]) == 0
    assert len(asking.asked) == 24 + 120
    assert "the input has 120 distinct answers" in capsys.readouterr().err


def test_failed_calls_of_the_probe_are_rows_with_a_kind_and_end_with_3(
    asking: Asking, tmp_path: Path
) -> None:
    assert run_app(["probe", str(probed(tmp_path, judges=[FLAKY], self_pair=60))]) == 3
    assert len(asking.asked) == 60
    row = total(tmp_path / "out", "flaky")
    assert row["n_calls"] == 60
    failures = pl.read_csv(tmp_path / "out" / "tables" / "failures.csv")
    assert set(failures["order"]) == {"self_pair"}
    assert failures.filter(pl.col("kind") == "server")["n"].sum() == row["n_failed"]
    assert 0 < int(str(row["n_failed"])) < 60


def test_input_pairs_with_identical_answers_join_the_probe(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    with_twins(tmp_path / "pairs.jsonl", 60, 10)
    assert run_app(["run", str(probed(tmp_path, self_pair=0))]) == 0
    assert len(asking.asked) == 120
    assert "10 pairs have two identical answers: they join" in capsys.readouterr().err
    rows = json.loads((tmp_path / "out" / "summary.json").read_text("utf-8"))
    assert [row["n_pairs"] for row in rows if row["task"] == "ALL"] == [50]
    # Two calls, one item.
    row = total(tmp_path / "out")
    assert (row["n_items"], row["n_calls"]) == (10, 20)
    text = (tmp_path / "out" / "summary.md").read_text("utf-8")
    assert "10 pairs have two identical answers: they join" in text
    assert "## Two identical texts" in text
    costs = pl.read_csv(tmp_path / "out" / "tables" / "costs.csv")
    assert costs.filter(pl.col("task") == "ALL")["n_calls"].to_list() == [120]


def test_a_stop_among_identical_pairs_is_pending(asking: Asking, tmp_path: Path) -> None:
    with_twins(tmp_path / "pairs.jsonl", 60, 60)
    asking.most, asking.end.interrupted = 50, True
    file = probed(tmp_path, self_pair=0)
    assert run_app(["run", str(file)]) == 4
    (status,) = read_status(RunDir(tmp_path / "out")).judges
    assert (status.expected, status.verdicts, status.pending) == (120, 50, 70)
    failures = pl.read_csv(tmp_path / "out" / "tables" / "failures.csv")
    assert failures["n_pending"].sum() == 70


def test_recorded_verdicts_on_identical_pairs_are_counted_as_they_are(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    with_twins(tmp_path / "pairs.jsonl", 20, 4)
    lines = [
        {"pair_id": f"{n:05d}", "task": f"task{n % 3}", "judge": "r", "order": order,
         "verdict": "first"}
        for n in range(20)
        for order in ("ab", "ba")
    ]  # fmt: skip
    records = tmp_path / "records.jsonl"
    records.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    judge = {"name": "r", "provider": "replay", "path": str(records)}
    assert run_app(["run", str(probed(tmp_path, judges=[judge]))]) == 0
    assert len(asking.asked) == 40
    said = capsys.readouterr().err
    assert "4 pairs have two identical answers: recorded verdicts on them are counted" in said
    assert "replay judges are shown no self pairs: r" in said
    recorded = ["summarize", str(records), "--out", str(tmp_path / "sum"), "--pairs"]
    assert run_app([*recorded, str(tmp_path / "pairs.jsonl")]) == 0
    assert "4 pairs have two identical answers: recorded" in capsys.readouterr().err
    for folder in ("out", "sum"):
        (row,) = [r for r in json.loads((tmp_path / folder / "summary.json").read_text("utf-8"))
                  if r["task"] == "ALL"]  # fmt: skip
        assert row["stuck_first"] == row["n_pairs"] == 20
        found = total(tmp_path / folder, "r")
        assert (found["n_items"], found["n_slot1"]) == (4, 8)
        assert pl.read_csv(tmp_path / folder / "tables" / "texts.csv")["n_identical"].item() == 4
    for kind in ("csv", "json", "parquet", "md"):
        one, other = (tmp_path / folder / f"summary.{kind}" for folder in ("out", "sum"))
        assert one.read_bytes() == other.read_bytes()


def test_reading_again_and_summarising_again_keep_the_probe(asking: Asking, tmp_path: Path) -> None:
    assert run_app(["run", str(probed(tmp_path))]) == 0
    assert asking.asked
    table = (tmp_path / "out" / "tables" / "self_pair.csv").read_bytes()
    for command in (["summarize", "--out", str(tmp_path / "again")], ["reparse"]):
        assert run_app([command[0], str(tmp_path / "out"), *command[1:]]) == 0
    assert (tmp_path / "again" / "tables" / "self_pair.csv").read_bytes() == table
    assert (tmp_path / "out" / "tables" / "self_pair.csv").read_bytes() == table
