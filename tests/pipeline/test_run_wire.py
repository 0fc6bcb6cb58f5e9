"""Whole runs through the real SDKs against the counting server: what was bought, by its bill."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from judgebias.cli import run_app
from judgebias.journal import first_wins, read_journal
from judgebias.prompts import VerdictForm
from judgebias.verdicts import Slot
from tests.pipeline.run_files import (
    finish,
    kill,
    ray_process,
    rows_of,
    run_file,
    same_tables,
    start,
    wait_for_rows,
    wait_until,
    write_pairs,
)
from tests.server import Action, Planted, Rule, ServerProcess, Setup, faults

pytestmark = pytest.mark.ray

KEY = "sk-loopback-0123456789abcdefghij"
PRICE = {"input": 3.0, "output": 15.0}
KEYS = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    judges = {"gpt*": Planted(offset=0.8, tie_width=0.1), "claude*": Planted(tie_width=0.1)}
    folder = tmp_path / "server"
    folder.mkdir()
    with ServerProcess(
        folder, Setup(judges=judges, keys=frozenset({KEY}), latency_s=0.05)
    ) as process:
        yield process


def wire_run(
    folder: Path,
    server: ServerProcess,
    n: int,
    *,
    top: Mapping[str, object] | None = None,
    **settings: object,
) -> Path:
    common = {"model": "gpt-loopback", "price": PRICE, "max_in_flight": 16, **settings}
    gpt = {"name": "o", "provider": "openai", "base_url": server.openai_url, **common}
    claude = {**common, "name": "a", "provider": "anthropic", "base_url": server.url}
    judges = [gpt, {**claude, "model": "claude-loopback"}]
    pairs = write_pairs(folder / "pairs.jsonl", n)
    given = {"out": "out", "engine_pairs_per_block": 64, **(top or {})}
    return run_file(folder / "run.toml", pairs=pairs, judges=judges, **given)  # type: ignore[arg-type]


LOG = logging.getLogger(__name__)


def left_behind(folder: Path, text: str) -> list[str]:
    """Name the files below a folder that hold the text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = [str(path) for path in files if text.encode() in path.read_bytes()]
    size = sum(path.stat().st_size for path in files)
    LOG.info("%s...: %d of %d files, %d bytes, hold it", text[:6], len(found), len(files), size)
    return found


def test_500_pairs_of_two_judges_are_bought_once_and_the_key_is_nowhere(tmp_path, server):
    server.script(
        Rule(action=faults.too_many("1"), skip=200, times=5),
        Rule(action=faults.SERVER_ERROR, probability=0.02, nth=(1, 1)),
    )
    # Ray's sockets need a short path.
    with TemporaryDirectory(prefix="jb") as ray_folder:
        run = wire_run(tmp_path, server, 500)
        code, said = finish(start(run, "--yes", **KEYS, RAY_TMPDIR=ray_folder), timeout=180)
        assert left_behind(Path(ray_folder), KEY) == []
        # Ray did leave its logs there: what was looked through is not nothing.
        assert left_behind(Path(ray_folder), "raylet") != []
    assert code == 0, said
    bill = server.bill()
    assert (bill["billed"], bill["duplicates"], bill["unmarked"]) == (2000, 0, 0)
    summary = pl.read_csv(tmp_path / "out" / "summary.csv").filter(pl.col("task") == "ALL")
    bias = dict(summary.select("judge", "position_bias").iter_rows())
    # Without offset and noise the judge on the other wire never leans.
    assert bias == {"a": "too few", "o": "first"}
    calls = pl.read_parquet(tmp_path / "out" / "calls.parquet")
    spent = (bill["input_tokens"] * 3 + bill["output_tokens"] * 15) / 1e6
    assert calls["cost_usd"].sum() == pytest.approx(spent)
    assert calls["attempts"].sum() == bill["requests"]
    assert KEY not in said
    assert left_behind(tmp_path / "out", KEY) == []


def test_a_wrong_key_stops_at_once_and_a_good_one_finishes(tmp_path, server):
    run = wire_run(tmp_path, server, 60)
    wrong = {**KEYS, "OPENAI_API_KEY": "sk-wrong-0123456789"}
    with TemporaryDirectory(prefix="jb") as ray_folder:
        code, said = finish(start(run, "--yes", RAY_TMPDIR=ray_folder, **wrong))
        for key in ("sk-wrong-0123456789", KEY):
            assert left_behind(Path(ray_folder), key) == left_behind(tmp_path / "out", key) == []
        assert left_behind(Path(ray_folder), "raylet") != []
    assert code == 4, said
    assert "o was stopped: " in said
    assert "sk-wrong" not in said
    refused = [line for line in server.log() if line["status"] == 401]
    assert len(refused) <= 2
    summary = pl.read_csv(tmp_path / "out" / "summary.csv").filter(pl.col("task") == "ALL")
    rows = {row["judge"]: row for row in summary.iter_rows(named=True)}
    assert (rows["o"]["n_pending"], rows["a"]["n_complete"]) == (60, 60)

    code, said = finish(start(run, "--yes", **KEYS))
    assert code == 0, said
    bill = server.bill()
    assert (bill["billed"], bill["duplicates_after_answer"]) == (240, 0)


def test_no_money_and_an_hours_wait_stop_their_judges_and_say_what_to_do(tmp_path, server):
    server.script(
        Rule(action=faults.INSUFFICIENT_QUOTA, wire="openai", skip=20),
        Rule(action=faults.too_many_anthropic("3600"), wire="anthropic", skip=20),
    )
    run = wire_run(tmp_path, server, 60)
    code, said = finish(start(run, "--yes", **KEYS))
    assert code == 4, said
    assert "o was stopped: " in said
    assert "quota" in said
    assert "a was stopped: " in said
    assert "3600 s" in said or "UTC" in said
    # At most what was in flight when each judge was refused.
    refused = [line for line in server.log() if line["status"] == 429]
    assert len(refused) <= 2 * 16
    answered = server.bill()["billed"]

    server.script()
    code, said = finish(start(run, "--yes", **KEYS))
    assert code == 0, said
    bill = server.bill()
    assert (bill["billed"], bill["duplicates_after_answer"]) == (240, 0)
    assert answered >= 40


def test_without_a_yes_nothing_is_asked(tmp_path, server):
    code, said = finish(start(wire_run(tmp_path, server, 10), **KEYS))
    assert code == 2, said
    assert "add --yes" in said
    assert "20 calls" in said
    assert server.bill()["requests"] == 0


def test_reparse_reads_kept_replies_by_other_rules_and_buys_nothing(tmp_path, server, monkeypatch):
    # One prompt is answered "Both" in both its tries, which is no slot.
    server.script(Rule(action=Action(variant="outside"), contains="question 7?", wire="openai"))
    code, said = finish(start(wire_run(tmp_path, server, 40), "--yes", **KEYS))
    assert code == 3, said
    out, before = tmp_path / "out", server.bill()["requests"]
    assert run_app(["reparse", str(out)]) == 0
    calls = pl.read_parquet(out / "calls.parquet")
    failed = calls.filter(pl.col("failure") == "invalid")
    assert failed.height == 4

    def generous(_text: str, _form: VerdictForm, _criteria: int) -> Slot:
        return Slot.TIE

    monkeypatch.setattr("judgebias.cli.reparse.read_slot", generous)
    assert run_app(["reparse", str(out)]) == 0
    mended = pl.read_parquet(out / "calls.parquet")
    assert mended["failure"].null_count() == 160
    ties = [frame.filter(pl.col("slot") == "tie").height for frame in (calls, mended)]
    assert ties[1] - ties[0] == 4
    assert server.bill()["requests"] == before
    costs = pl.read_csv(out / "tables" / "costs.csv").filter(pl.col("task") == "ALL")
    assert costs.filter(pl.col("judge") == "o")["n_extra"].item() == 4


def test_five_kills_buy_again_only_what_was_in_flight_and_end_in_the_same_bytes(tmp_path, server):
    server.script(
        Rule(action=faults.SERVER_ERROR, probability=0.03, nth=(1, 1)),
        Rule(action=faults.too_many("0.2"), wire="openai", skip=300, times=5),
    )
    run = wire_run(tmp_path, server, 400)
    journal, billed = tmp_path / "out" / "journal", []
    for victim in ("driver", "worker", "driver", "worker", "driver"):
        process = start(run, "--yes", **KEYS)
        wait_for_rows(journal, rows_of(journal) + 150, process)
        if victim == "driver":
            kill(process)
        else:
            ray_process(process, "MapWorker").kill()
            wait_for_rows(journal, rows_of(journal) + 50, process)
            # The fleet is whole again; what it does now is lost with the driver.
            kill(process)
        billed.append((victim, rows_of(journal), server.bill()["billed"]))
    code, said = finish(start(run, "--yes", **KEYS))
    assert code == 0, said
    bill = server.bill()
    LOG.info("killed, on disk, billed: %s; in the end %s for 1600", billed, bill["billed"])
    assert bill["distinct"] == 1600
    # Sixteen in flight of each judge at each of seven kills.
    assert bill["billed"] <= 1600 + 7 * 32, billed
    calls, _ = first_wins(read_journal(journal).table)
    assert (calls.height, calls["slot"].null_count()) == (1600, 0)

    server.script()
    calm = tmp_path / "calm"
    calm.mkdir()
    code, said = finish(start(wire_run(calm, server, 400), "--yes", **KEYS))
    assert code == 0, said
    # What it cost is what differs.
    same_tables(calm / "out", tmp_path / "out", but=("tables/costs.csv",))


@pytest.mark.parametrize(
    ("gone", "says"),
    [("out/run.json", "does not see the run directory"), ("key.txt", "cannot read the file")],
)
def test_a_worker_that_lacks_the_run_or_a_key_ends_it_and_what_others_asked_lands(
    tmp_path, server, gone, says
):
    (tmp_path / "key.txt").write_text(KEY)
    server.script(Rule(action=Action(delay_s=1.0)))
    top = {"engine_workers": 2}
    run = wire_run(tmp_path, server, 600, top=top, max_in_flight=32, api_key_file="key.txt")
    journal = tmp_path / "out" / "journal"
    process = start(run, "--yes")
    wait_until(lambda: len(list(journal.glob("*.seg"))), lambda n: n == 2, process)
    wait_for_rows(journal, 100, process)
    (tmp_path / gone).rename(tmp_path / "elsewhere")
    # As on a node that joins in mid-run and has another folder there.
    ray_process(process, "MapWorker").kill()
    code, said = finish(process)
    assert code == 4, said
    assert re.search(rf"the run was stopped: node \S+ \(\w+\):? {says}", said), said
    # A worker's part of the two windows follows what it can use, and may be nearly all of them.
    billed = int(str(server.bill()["billed"]))
    assert billed - rows_of(journal) <= 2 * 32
    assert billed < 2400


def test_a_sampled_run_with_a_probe_buys_what_was_planned_and_not_one_more(tmp_path, server):
    top = {"orders": "sampled", "swap_fraction": 0.25, "self_pair": 30}
    run = wire_run(tmp_path, server, 200, top=top)
    process = start(run, "--yes", **KEYS)
    wait_for_rows(tmp_path / "out" / "journal", 150, process)
    process.send_signal(signal.SIGINT)
    code, said = finish(process)
    assert code == 4, said
    code, said = finish(start(run, "--yes", **KEYS))
    assert code == 0, said
    bill = server.bill()
    assert (bill["billed"], bill["duplicates"]) == (2 * (200 + 50 + 30), 0)
    table = pl.read_csv(tmp_path / "out" / "tables" / "self_pair.csv")
    table = table.filter(pl.col("task") == "ALL")
    assert table["n_items"].to_list() == [30, 30]
    # Only the judge with a planted pull takes one of two identical texts.
    assert table["n_tie"].to_list() == [30, 0]
    sampled = pl.read_csv(tmp_path / "out" / "tables" / "sampled.csv")
    found = sampled.filter(pl.col("task") == "ALL").select("n_both", "n_single", "n_calls")
    assert found.rows() == [(50, 150, 250)] * 2
    costs = pl.read_csv(tmp_path / "out" / "tables" / "costs.csv").filter(pl.col("task") == "ALL")
    spent = (bill["input_tokens"] * 3 + bill["output_tokens"] * 15) / 1e6
    assert costs["cost_usd"].sum() == pytest.approx(spent)
    assert set(costs["n_calls"]) == {280}
