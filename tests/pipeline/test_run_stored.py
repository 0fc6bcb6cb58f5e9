"""Kill and resume of a run at s3:// on one machine, by the bill of the judges' server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from judgebias.journal import first_wins, journal_folder, objects, read_journal
from tests.bucket import some_id
from tests.pipeline.run_files import (
    finish,
    kill,
    ray_process,
    run_file,
    start,
    wait_until,
    write_pairs,
)
from tests.server import Action, Planted, Rule, ServerProcess, Setup

pytestmark = pytest.mark.ray

N = 400
IN_FLIGHT = 16
KEYS = {"OPENAI_API_KEY": "sk-loopback-0123456789abcdefghij"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    keys = frozenset(KEYS.values())
    with ServerProcess(tmp_path, Setup(judges={"*": Planted(tie_width=0.1)}, keys=keys)) as process:
        yield process


def rows_of(place: str) -> int:
    with journal_folder(f"{place}/journal") as copy:
        return read_journal(copy, columns=("judge",)).report.rows


def test_a_killed_driver_and_a_killed_worker_buy_again_what_was_in_no_object(
    s3: str, server: ServerProcess, tmp_path: Path
) -> None:
    place = f"{s3}/{some_id()}/run"
    judge = {"name": "o", "provider": "openai", "model": "m", "max_in_flight": IN_FLIGHT}
    run = run_file(
        tmp_path / "run.toml",
        pairs=write_pairs(tmp_path / "pairs.jsonl", N),
        judges=[{**judge, "base_url": server.openai_url}],
        out=place,
        engine_pairs_per_block=64,
    )
    server.script(Rule(action=Action(delay_s=0.1)))
    process = start(run, "--yes", **KEYS)
    wait_until(lambda: rows_of(place), lambda rows: rows > 0, process)
    kill(process)
    held = rows_of(place)
    process = start(run, "--yes", **KEYS)
    wait_until(lambda: rows_of(place), lambda rows: rows > held, process)
    ray_process(process, "MapWorker").kill()
    server.script()
    code, said = finish(process)
    assert code == 0, said
    assert "are on disk" in said
    bill = server.bill()
    assert bill["distinct"] == 2 * N
    with journal_folder(f"{place}/journal") as copy:
        calls, _ = first_wins(read_journal(copy).table)
    assert (calls.height, calls["slot"].null_count()) == (2 * N, 0)
    # Two workers with the driver, and one by itself.
    again = int(str(bill["duplicates"]))
    assert again <= 2 * IN_FLIGHT + 3 * objects.ROWS
