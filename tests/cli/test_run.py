"""`judgebias run`, with the asking done in this process."""

from __future__ import annotations

import json
import shutil
from math import log
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from judgebias.calls import Call
from judgebias.cli import run_app
from judgebias.cli.run import Overrides, overridden
from judgebias.config import load_run_file
from judgebias.config.runfile import check_run
from judgebias.errors import ConfigError
from judgebias.journal import merge_segments
from judgebias.pace.budget import Amount
from judgebias.pipeline.prepare import prepared
from judgebias.pipeline.spent import spent_so_far
from judgebias.progress import BudgetState
from judgebias.replies import Reply
from judgebias.verdicts import Slot
from tests.cli.asking import Asking
from tests.pipeline.run_files import run_file, same_tables, write_pairs

CALM = {"name": "calm", "provider": "simulated", "tie_width": 0.3}
FLAKY = {**CALM, "name": "flaky", "failure_rate": 0.3}
Read = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 40)
    return run_file(tmp_path / "run.toml", pairs=pairs, judges=[CALM], out="out")


def test_a_run_asks_everything_writes_the_tables_and_prints_one(
    run: Path, asking: Asking, capsys: Read
) -> None:
    assert run_app(["run", str(run)]) == 0
    out, err = capsys.readouterr()
    assert err.splitlines() == [
        "80 calls to ask of 1 judge",
        f"tables are in {run.parent / 'out'}",
    ]
    assert "calm" in out
    assert len(asking.asked) == 80
    names = {path.name for path in (run.parent / "out").iterdir()}
    assert names >= {"calls.parquet", "verdicts.parquet", "rejects.jsonl", "run.json", "tables"}
    assert names >= {f"summary.{kind}" for kind in ("csv", "json", "parquet", "md")}
    # It holds the raw replies: answers, and what a provider says of an organisation.
    assert (run.parent / "out" / "calls.parquet").stat().st_mode & 0o077 == 0


def test_the_same_command_again_asks_nothing_and_changes_no_byte(
    run: Path, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    assert run_app(["run", str(run)]) == 0
    (tmp_path / "out").rename(tmp_path / "kept")
    assert run_app(["run", str(run)]) == 0
    same_tables(tmp_path / "kept", tmp_path / "out")
    asking.asked.clear()
    capsys.readouterr()
    assert run_app(["run", str(run)]) == 0
    assert "all 80 calls of 1 judge are on disk: nothing to ask" in capsys.readouterr().err
    assert asking.asked == []
    same_tables(tmp_path / "kept", tmp_path / "out")


def test_a_run_that_was_stopped_says_so_and_the_same_command_ends_it(
    run: Path, asking: Asking, capsys: Read
) -> None:
    asking.most = 30
    asking.end.interrupted = True
    assert run_app(["run", str(run)]) == 4
    said = capsys.readouterr().err
    assert "interrupted: what was in flight has landed" in said
    assert "50 calls are pending; the same command goes on from here" in said
    asking.most, asking.end.interrupted = None, False
    assert run_app(["run", str(run)]) == 0
    assert "50 calls to ask of 1 judge, 30 are on disk" in capsys.readouterr().err
    assert len(asking.asked) == 80


def test_a_fault_or_a_halted_judge_is_said_and_ends_with_4(
    run: Path, asking: Asking, capsys: Read
) -> None:
    asking.most, asking.end.halted = 0, {"calm": "the key was refused"}
    assert run_app(["run", str(run)]) == 4
    assert "calm was stopped: the key was refused" in capsys.readouterr().err
    asking.most, asking.end.fault = None, "the disk is full"
    assert run_app(["run", str(run)]) == 4
    assert "the run was stopped: the disk is full" in capsys.readouterr().err


def test_a_budget_that_is_used_up_ends_with_4_and_a_partial_report(
    run: Path, asking: Asking, capsys: Read
) -> None:
    run.write_text(run.read_text() + "[budget]\nmax_calls = 30\n")
    asking.most, asking.end.budget_spent = 30, True
    assert run_app(["run", str(run)]) == 4
    said = capsys.readouterr().err
    assert "the budget (max_calls = 30) has no room for another pair" in said
    assert "50 calls are pending; a larger budget goes on from here" in said
    summary = (run.parent / "out" / "summary.md").read_text(encoding="utf-8")
    assert "**This report is partial.** Pairs still pending: calm 25 of 40." in summary


def test_requests_without_a_reply_on_disk_count_in_the_next_start(
    run: Path, asking: Asking, capsys: Read
) -> None:
    run.write_text(run.read_text() + "[budget]\nmax_calls = 40\n")
    asking.most, asking.end.budget_spent = 30, True
    asking.end.budget = BudgetState(calls=38, usd=0.0, lost_calls=8, ended=("calm",))
    assert run_app(["run", str(run)]) == 4
    assert "8 requests that dead workers may have sent count as spent" in capsys.readouterr().err
    with prepared(load_run_file(run), base=run.parent) as ready:
        assert spent_so_far(ready) == Amount(calls=38)
    assert run_app(["status", str(run.parent / "out")]) == 0
    assert "budget: 38 of 40 requests are used" in capsys.readouterr().out


def test_dollars_are_refused_where_a_price_is_unknown(tmp_path: Path, capsys: Read) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 2)
    free = {"name": "f", "provider": "function", "call": "os.path:join"}
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[CALM, free], out="out")
    run.write_text(run.read_text() + "[budget]\nmax_usd = 1.0\n")
    assert run_app(["run", str(run)]) == 2
    said = capsys.readouterr().err
    assert "the price of f is unknown" in said
    assert "bound max_calls instead" in said


def test_calls_without_a_verdict_end_with_3(asking: Asking, capsys: Read, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 40)
    file = run_file(tmp_path / "run.toml", pairs=pairs, judges=[CALM, FLAKY], out="out")
    assert run_app(["run", str(file)]) == 3
    assert asking.asked.count("flaky") == 80
    rows = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    failed = {row["judge"]: row["n_failed"] for row in rows if row["task"] == "ALL"}
    assert failed["calm"] == 0
    assert failed["flaky"] > 0
    said = capsys.readouterr().err
    assert f"{failed['flaky']} calls ended without a verdict: see" in said
    assert str(tmp_path / "out" / "tables" / "failures.csv") in said


class Versions:
    """A judge behind a name that stands for one model, and for another after so many calls."""

    def __init__(self, *, change_after: int) -> None:
        self.left = change_after

    async def ask(self, call: Call) -> Reply:
        self.left -= 1
        model = "m-1" if self.left >= 0 else "m-2"
        return Reply(slot=Slot.FIRST, model=model, request_id=call.pair.pair_id)

    async def aclose(self) -> None: ...


def test_two_orders_answered_by_different_models_are_said_and_flagged(
    run: Path, asking: Asking, capsys: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Versions(change_after=31)
    monkeypatch.setattr("tests.cli.asking.open_local", lambda *_: judge)
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 80
    warning = (
        "calm: 2 models answered its calls (m-2 49, m-1 31); in 1 pairs the two orders come from "
        "different models"
    )
    assert warning in capsys.readouterr().err
    out = run.parent / "out"
    assert f"- {warning}" in (out / "summary.md").read_text(encoding="utf-8")
    flagged = (out / "tables" / "model_changes.csv").read_text(encoding="utf-8").splitlines()
    assert flagged[0] == "judge,task,pair_id,repeat,model_ab,model_ba"
    assert [line.split(",")[0] for line in flagged[1:]] == ["calm"]
    assert flagged[1].endswith(",1,m-1,m-2")
    # The same calls say it again, and only once more.
    assert run_app(["summarize", str(out)]) == 0
    assert capsys.readouterr().err.count("2 models answered") == 1


def test_rejected_rows_alone_end_with_0(run: Path, asking: Asking, capsys: Read) -> None:
    with (run.parent / "pairs.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"pair_id": "x", "question": "?", "answer_a": 7, "answer_b": "b"}\n')
    assert run_app(["run", str(run)]) == 0
    assert "1 input row cannot be judged: see" in capsys.readouterr().err
    assert len(asking.asked) == 80


def test_zero_rows_are_told_and_ask_nothing(run: Path, asking: Asking, capsys: Read) -> None:
    write_pairs(run.parent / "pairs.jsonl", 0)
    assert run_app(["run", str(run)]) == 0
    assert "no pairs to judge" in capsys.readouterr().err
    assert asking.asked == []


def test_json_is_the_summary_and_nothing_else(run: Path, asking: Asking, capsys: Read) -> None:
    assert run_app(["run", str(run), "--json"]) == 0
    assert asking.asked
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((run.parent / "out" / "summary.json").read_text(encoding="utf-8"))


def test_only_one_judge(asking: Asking, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 10)
    two = [CALM, {**CALM, "name": "other"}]
    file = run_file(tmp_path / "run.toml", pairs=pairs, judges=two, out="out")
    assert run_app(["run", str(file), "--judge", "other"]) == 0
    assert set(asking.asked) == {"other"}


def test_what_is_typed_is_relative_to_where_it_is_typed(
    run: Path, asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    write_pairs(here / "few.jsonl", 3)
    monkeypatch.chdir(here)
    assert run_app(["run", "../run.toml", "--pairs", "few.jsonl", "--out", "mine"]) == 0
    assert len(asking.asked) == 6
    assert (here / "mine" / "summary.csv").exists()
    assert not (run.parent / "out").exists()


def config(**run: Any) -> Any:
    return check_run({"pairs": "p", "out": "o", "judges": [CALM], **run}, where="here")


def test_nothing_typed_changes_nothing() -> None:
    given = config(engine={"workers": 2}, columns={"question": "prompt"})
    assert overridden(given, Overrides()) == given


def test_an_address_keeps_the_rest_of_the_engine() -> None:
    changed = overridden(config(engine={"workers": 2}), Overrides(address="host:1"))
    assert (changed.engine.address, changed.engine.workers) == ("host:1", 2)


def test_addresses_of_pairs_stay_as_they_are(tmp_path: Path) -> None:
    changed = overridden(config(), Overrides(pairs="s3://b/p", out=str(tmp_path)))
    assert (changed.pairs, changed.out) == ("s3://b/p", str(tmp_path))


def test_an_unknown_judge_is_refused() -> None:
    with pytest.raises(ConfigError, match="no judge is named 'x'"):
        overridden(config(), Overrides(judges=("calm", "x")))


def test_calls_whose_tries_are_used_up_are_rejects_and_not_asked_again(
    tmp_path: Path, asking: Asking, capsys: Read
) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 20)
    with pairs.open("a", encoding="utf-8") as file:
        file.write('{"pair_id": "bad", "question": "q"}\n')
    judge = {**FLAKY, "failure_rate": 1.0, "max_attempts": 1, "max_tries_total": 2}
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[judge], out="out")
    rejects = tmp_path / "out" / "rejects.jsonl"
    for listed in (1, 41):
        assert run_app(["run", str(run)]) == 3
        assert len(rejects.read_text(encoding="utf-8").splitlines()) == listed
    assert len(asking.asked) == 80
    capsys.readouterr()
    assert run_app(["run", str(run)]) == 3
    said = capsys.readouterr().err
    assert "40 calls failed max_tries_total times and are not asked again: see" in said
    assert "nothing to ask" in said
    assert len(asking.asked) == 80
    rows = [json.loads(line) for line in rejects.read_text(encoding="utf-8").splitlines()]
    assert (rows[0]["row"], rows[0]["field"]) == (21, "answer_a")
    assert rows[1] == {
        "file": None,
        "row": None,
        "pair_id": "00000",
        "field": "judge",
        "reason": "task task0, judge flaky, order ab, repeat 1: failed 2 times, the last time as "
        "server; not asked again",
    }
    # The tables count each as the failure it is: nothing vanishes.
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    whole = next(row for row in summary if row["task"] == "ALL")
    assert (whole["n_pairs"], whole["n_calls"], whole["n_failed"]) == (20, 40, 40)


def test_a_damaged_journal_stops_salvage_saves_and_a_run_asks_what_is_lost(
    run: Path, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    asking.frame_rows = 20
    assert run_app(["run", str(run)]) == 0
    out = tmp_path / "out"
    shutil.copytree(out, tmp_path / "kept")
    (segment,) = (out / "journal").glob("*.seg")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 4
    segment.write_bytes(bytes(data))
    capsys.readouterr()

    assert run_app(["run", str(run)]) == 2
    said = capsys.readouterr().err
    assert f"{segment}: at byte " in said
    assert "judgebias salvage" in said
    assert segment.read_bytes() == bytes(data)

    assert run_app(["salvage", str(out)]) == 0
    said = capsys.readouterr().err
    assert f"{segment}: 60 replies saved, bytes " in said
    assert (out / "journal" / f"{segment.name}.damaged").read_bytes() == bytes(data)
    asking.asked.clear()
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 20
    same_tables(tmp_path / "kept", out)
    assert run_app(["salvage", str(out)]) == 0
    assert "no damage, nothing was changed" in capsys.readouterr().err


def test_a_journal_that_lost_a_file_makes_no_tables_until_the_loss_is_accepted(
    run: Path, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    assert run_app(["run", str(run)]) == 0
    out = tmp_path / "out"
    shutil.copytree(out, tmp_path / "kept")
    (segment,) = (out / "journal").glob("*.seg")
    segment.rename(tmp_path / "away.seg")
    capsys.readouterr()
    for command in (["summarize", str(out)], ["status", str(out)], ["run", str(run)]):
        assert run_app(command) == 2
        said = capsys.readouterr().err
        assert "80 replies that the journal held are not there any more" in said
        assert "judgebias salvage" in said
    assert (out / "summary.csv").read_bytes() == (tmp_path / "kept" / "summary.csv").read_bytes()

    (tmp_path / "away.seg").rename(segment)
    assert run_app(["summarize", str(out)]) == 0
    same_tables(tmp_path / "kept", out)
    segment.unlink()
    assert run_app(["salvage", str(out)]) == 0
    assert "80 replies that the journal held are gone" in capsys.readouterr().err
    asking.asked.clear()
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 80
    same_tables(tmp_path / "kept", out)


def test_a_lost_file_is_noticed_however_many_replies_came_since(
    run: Path, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    asking.most, asking.end.interrupted = 20, True
    assert run_app(["run", str(run)]) == 4
    out = tmp_path / "out"
    (first,) = (out / "journal").glob("*.seg")
    noted = (out / "run.json").read_text("utf-8")
    assert run_app(["run", str(run)]) == 4
    assert len(list((out / "journal").glob("*.seg"))) == 2
    # As if the second start had been killed before it noted anything.
    (out / "run.json").write_text(noted, "utf-8")
    first.unlink()
    for command in (["summarize", str(out)], ["run", str(run)]):
        assert run_app(command) == 2
        assert "20 replies that the journal held are not there" in capsys.readouterr().err
    assert run_app(["salvage", str(out)]) == 0
    assert "20 replies that the journal held are gone" in capsys.readouterr().err
    assert run_app(["summarize", str(out)]) == 0


def test_segments_that_were_merged_are_not_missed_and_the_merged_one_would_be(
    run: Path, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    asking.most, asking.end.interrupted = 10, True
    for _ in range(3):
        assert run_app(["run", str(run)]) == 4
    out = tmp_path / "out"
    noted = (out / "run.json").read_text("utf-8")
    assert merge_segments(out / "journal", keep_below=2) == 3
    assert run_app(["summarize", str(out)]) == 0
    assert run_app(["run", str(run)]) == 4
    # Merged twice since an owner noted anything.
    assert merge_segments(out / "journal", keep_below=2) == 2
    (out / "run.json").write_text(noted, "utf-8")
    assert run_app(["summarize", str(out)]) == 0
    (merged,) = (out / "journal").glob("*.seg")
    assert run_app(["run", str(run)]) == 4
    merged.unlink()
    capsys.readouterr()
    assert run_app(["summarize", str(out)]) == 2
    assert "40 replies that the journal held are not there" in capsys.readouterr().err


def test_replies_that_a_power_cut_left_half_written_are_not_counted_as_held(
    run: Path, asking: Asking, tmp_path: Path
) -> None:
    asking.frame_rows = 20
    assert run_app(["run", str(run)]) == 0
    out = tmp_path / "out"
    # As if the machine had gone down before its owner noted anything.
    manifest = json.loads((out / "run.json").read_text("utf-8"))
    (out / "run.json").write_text(json.dumps({**manifest, "held": {}}), "utf-8")
    (segment,) = (out / "journal").glob("*.seg")
    data = segment.read_bytes()
    sector = (len(data) - 1) // 512 * 512
    segment.write_bytes(data[:sector] + bytes(len(data) - sector))
    assert run_app(["reparse", str(out)]) == 0
    assert run_app(["salvage", str(out)]) == 0
    assert list(json.loads((out / "run.json").read_text("utf-8"))["held"].values()) == [60]
    asking.asked.clear()
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 20


@pytest.mark.usefixtures("asking")
def test_a_table_that_this_start_does_not_have_is_not_left_of_an_earlier_one(
    run: Path, tmp_path: Path
) -> None:
    whole = run_file(
        tmp_path / "whole.toml",
        pairs=run.parent / "pairs.jsonl",
        judges=[CALM, {**CALM, "name": "other"}],
        out="out",
        orders="sampled",
    )
    tables = tmp_path / "out" / "tables"
    assert run_app(["run", str(whole)]) == 0
    more = {path.name for path in tables.iterdir()}
    assert run_app(["run", str(run)]) == 0
    assert more - {path.name for path in tables.iterdir()} == {
        "agreement.csv",
        "panel.csv",
        "sampled.csv",
    }


@pytest.mark.usefixtures("asking")
@pytest.mark.parametrize("name", ["run[1]", "run*"])
def test_the_name_of_a_folder_is_no_pattern(name: str, run: Path, tmp_path: Path) -> None:
    assert run_app(["run", str(run), "--out", str(tmp_path / "run2")]) == 0
    write_pairs(run.parent / "pairs.jsonl", 6)
    assert run_app(["run", str(run), "--out", str(tmp_path / name)]) == 0
    assert pl.read_parquet(tmp_path / name / "verdicts.parquet", glob=False).height == 6


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{question} {first}", "no {second}"),
        ("{question} {first} {second} {model_a}", "unknown {model_a}"),
        ("{question} {first} {second} {gold}", "unknown {gold}"),
        ("{question} {first} {second} {", "a single '{'"),
    ],
)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_template_that_cannot_work_is_refused_before_anything_is_made(
    command: str, template: str, said: str, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 4)
    (tmp_path / "own.txt").write_text(template)
    # Nobody listens there: a request would be another error.
    wire = {"name": "w", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
    judge = {**wire, "template": "own.txt"}
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[CALM, judge], out="out")
    assert run_app([command, str(run)]) == 2
    err = capsys.readouterr().err
    assert "the template 'own.txt' has" in err
    assert said in err
    assert asking.asked == []
    assert not (tmp_path / "out").exists()


def leaking_pairs(path: Path) -> Path:
    write_pairs(path, 6)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows[1]["answer_a"] += "As a language model trained by OpenAI, I say so."
    rows[4]["answer_b"] = "I am Claude."
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


LEAKS = ("judge", "task", "n_pairs", "n_leaking", "n_own_family", "n_skipped", "names")


@pytest.mark.usefixtures("asking")
@pytest.mark.slow
def test_leaks_are_counted_in_the_plan_and_in_the_tables(capsys: Read, tmp_path: Path) -> None:
    pairs = leaking_pairs(tmp_path / "pairs.jsonl")
    judges = [CALM, {**CALM, "name": "kin", "family": "claude"}]
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=judges, out="out")
    assert run_app(["plan", str(run)]) == 0
    said = capsys.readouterr().out
    assert "calm / ALL: identity leaks in 2 of 6 pairs (claude 1, openai 1), 0 of them" in said
    assert "kin / task1: identity leaks in 2 of 2 pairs (claude 1, openai 1), 1 of them" in said
    assert run_app(["plan", str(run), "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)["leaks"]
    assert not (tmp_path / "out").exists()
    assert run_app(["run", str(run)]) == 0
    assert "in 2 of 6 pairs an answer tells who wrote it" in capsys.readouterr().err
    table = pl.read_csv(tmp_path / "out" / "tables" / "leaks.csv")
    assert table.select(LEAKS).rows() == [tuple(row[name] for name in LEAKS) for row in planned]
    assert table.filter(pl.col("task") == "ALL").select(LEAKS).rows() == [
        ("calm", "ALL", 6, 2, 0, 0, "claude 1, openai 1"),
        ("kin", "ALL", 6, 2, 1, 0, "claude 1, openai 1"),
    ]
    assert "2 of 6 pairs an answer tells" in (tmp_path / "out" / "summary.md").read_text()


def test_skipped_pairs_are_said_counted_and_listed(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    pairs = leaking_pairs(tmp_path / "pairs.jsonl")
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[CALM], out="out", on_leak="skip")
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 8
    out = tmp_path / "out"
    said = capsys.readouterr().err
    assert "2 pairs have an answer that tells who wrote it and are left out" in said
    assert "cannot be judged" not in said
    rejects = [json.loads(line) for line in (out / "rejects.jsonl").read_text().splitlines()]
    assert [(row["pair_id"], row["field"]) for row in rejects] == [
        ("00001", "answer_a"),
        ("00004", "answer_b"),
    ]
    table = pl.read_csv(out / "tables" / "leaks.csv").filter(pl.col("task") == "ALL")
    assert table.select(LEAKS[2:6]).rows() == [(4, 0, 0, 2)]
    assert json.loads((out / "run.json").read_text())["skipped"] == {"task1": 2}
    assert run_app(["summarize", str(out), "--out", str(tmp_path / "again")]) == 0
    same_tables(out, tmp_path / "again")


def test_soft_columns_of_recorded_verdicts(capsys: Read, tmp_path: Path) -> None:
    rows = [
        {"pair_id": f"{n}", "judge": "j", "order": order, "verdict": "first"}
        | {"p_first": p, "p_second": 0.9 - p, "p_tie": 0.1}
        for n in range(8)
        for order, p in (("ab", 0.6), ("ba", 0.5))
    ]
    records = tmp_path / "verdicts.jsonl"
    records.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert run_app(["summarize", str(records), "--out", str(tmp_path / "out")]) == 0
    assert "soft offset" in capsys.readouterr().out
    row = pl.read_csv(tmp_path / "out" / "summary.csv").filter(pl.col("task") == "ALL")
    assert row["win_rate_a_soft"].item() == pytest.approx((0.65 + 0.45) / 2)
    assert row["offset_soft"].item() == pytest.approx((log(0.6 / 0.3) + log(0.5 / 0.4)) / 2)
    text = (tmp_path / "out" / "summary.md").read_text()
    assert "## Verdict probabilities" in text


def test_soft_verdicts_of_anthropic_are_refused_in_a_line(
    asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    judge = {"name": "c", "provider": "anthropic", "model": "m", "soft": True}
    pairs = write_pairs(tmp_path / "pairs.jsonl", 4)
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[judge], out="out")
    assert run_app(["run", str(run)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "soft verdicts need token log-probabilities, which Anthropic does not give" in first
    assert second == "  do: mend the run file; nothing was asked"
    assert asking.asked == []


def test_a_lost_index_is_named_and_a_run_writes_it_again(
    run: Path, asking: Asking, capsys: Read, tmp_path: Path
) -> None:
    assert run_app(["run", str(run)]) == 0
    out = tmp_path / "out"
    shutil.copytree(out, tmp_path / "kept")
    (out / "journal" / "pairs.parquet").unlink()
    capsys.readouterr()
    for command in ("status", "summarize", "reparse"):
        assert run_app([command, str(out)]) == 2
        assert "pairs.parquet is missing" in capsys.readouterr().err
    asking.asked.clear()
    assert run_app(["run", str(run)]) == 0
    assert "was missing and is written again" in capsys.readouterr().err
    assert asking.asked == []
    same_tables(tmp_path / "kept", out)


def test_a_budget_counts_what_judges_that_left_have_spent(run: Path, asking: Asking) -> None:
    before = run.read_text(encoding="utf-8")
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 80
    run.write_text(before.replace('"calm"', '"renamed"') + "[budget]\nmax_calls = 100\n")
    with prepared(load_run_file(run), base=run.parent) as ready:
        assert spent_so_far(ready) == Amount(calls=80)
