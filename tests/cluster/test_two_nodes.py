"""A submitted job on a real two-node cluster, over S3: killed, joined, lost and resumed.

The tests of this module are one story in order, because a cluster takes half a minute to start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from judgebias.cli import run_app
from judgebias.journal import first_wins, journal_folder, objects, read_journal
from judgebias.objects import ObjectStore
from judgebias.stored import StoredRunDir
from tests.bucket import some_id
from tests.cli.asking import Asking
from tests.cluster.two_nodes import TwoNodes, last_line, wait_until
from tests.pipeline.run_files import run_file, same_tables, write_pairs

pytestmark = pytest.mark.ray

N = int(os.environ.get("JUDGEBIAS_TEST_PAIRS", "2000"))
IN_FLIGHT = 24
SLOW = {"provider": "simulated", "latency_s": 0.4, "max_in_flight": IN_FLIGHT, "tie_width": 0.3}
JUDGES = [{**SLOW, "name": "one"}, {**SLOW, "name": "two", "offset": 0.5}]
# Latency changes no verdict, and this process asks one call after the other.
FAST = [{**judge, "latency_s": 0.0} for judge in JUDGES]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # Ray's sockets need a short path.
    with TemporaryDirectory(prefix="jb") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def place(s3: str) -> str:
    return f"{s3}/{some_id()}/run"


@pytest.fixture(scope="module")
def stored(s3: str, folder: Path, place: str) -> Path:
    write_pairs(folder / "pairs.jsonl", N)
    ObjectStore(f"{s3}/input").write("pairs.jsonl", folder / "pairs.jsonl")
    pairs = f"{s3}/input/pairs.jsonl"
    return run_file(
        folder / "s3.toml", pairs=pairs, judges=JUDGES, out=place, engine_pairs_per_block=64
    )


@pytest.fixture(scope="module")
def cluster(s3: str, folder: Path) -> Iterator[TwoNodes]:
    assert s3
    nodes = TwoNodes(folder=folder / "first", environ=dict(os.environ))
    try:
        yield nodes
    finally:
        nodes.stop()


def nodes_in(place: str) -> set[str]:
    """The nodes that have written to the journal, by what their workers' names begin with."""
    listed = ObjectStore(f"{place}/journal").list()
    names = [found.name for found in listed if ".seg/" in found.name]
    return {name.split("-")[1] for name in names}


def rows_in(place: str) -> int:
    with journal_folder(f"{place}/journal") as copy:
        return read_journal(copy, columns=("judge",)).report.rows


def test_a_job_loses_a_node_gets_another_and_loses_its_head(
    cluster: TwoNodes, stored: Path, place: str
) -> None:
    cluster.start()
    job = cluster.submit(stored)
    wait_until(lambda: len(nodes_in(place)) == 2, "both nodes have judged")
    cluster.raylet("second").kill()
    alive = rows_in(place)
    cluster.join()
    wait_until(lambda: len(nodes_in(place)) == 3, "the node that joined has judged")
    assert rows_in(place) > alive
    log = cluster.log(job)
    # The whole cluster goes, head, driver and all.
    cluster.stop()
    held = rows_in(place)
    assert held < 4 * N, "the job ended too early for this test"
    assert "calls to ask of 2 judges" in log


def test_a_new_cluster_refuses_what_would_be_lost_and_resumes(
    cluster: TwoNodes,
    stored: Path,
    place: str,
    folder: Path,
    asking: Asking,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = folder / "own"
    own.mkdir()
    wrap = folder / "wrap"
    mount = f'mount -t tmpfs none {own} && exec "$@"'
    wrap.write_text(f"#!/bin/sh\nexec unshare --mount sh -c '{mount}' sh \"$@\"\n")
    wrap.chmod(0o755)
    cluster.folder = folder / "again"
    cluster.start(NODE_WRAP=str(wrap))
    pairs = folder / "pairs.jsonl"
    mounted = run_file(folder / "m.toml", pairs=pairs, judges=JUDGES, out=str(own / "run"))
    relative = run_file(folder / "r.toml", pairs=pairs, judges=JUDGES, out="run")

    code, log = cluster.ended(cluster.submit(relative))
    assert (code, last_line(log)) == (2, "judgebias exit code 2")
    assert "is relative, in a job that was submitted" in log
    code, log = cluster.ended(cluster.submit(mounted))
    assert (code, last_line(log)) == (2, "judgebias exit code 2"), log
    assert "node " in log
    assert str(own / "run") in log
    assert not list((own / "run" / "journal").glob("*.seg"))

    refuse_without_token(cluster, stored)

    code, log = cluster.ended(cluster.submit(stored))
    assert (code, last_line(log)) == (0, "judgebias exit code 0"), log
    assert "are on disk" in log

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    here = run_file(folder / "h.toml", pairs=pairs, judges=FAST, out="here")
    assert run_app(["run", str(here)]) == 0
    assert len(asking.asked) == 4 * N
    run = StoredRunDir(place)
    run.pull()
    fetch(place, folder / "there")
    same_tables(folder / "here", folder / "there")
    calls = pl.read_parquet(folder / "there" / "calls.parquet")
    assert calls.height == 4 * N
    assert calls["worker"].str.split("-").list.first().n_unique() >= 4
    _, extra = first_wins(read_journal(run.journal).table)
    # Two kills: of a node with one worker, and of a cluster with two.
    assert extra.height <= 3 * (2 * IN_FLIGHT + objects.ROWS)


def fetch(place: str, folder: Path) -> None:
    store = ObjectStore(place)
    for found in store.list():
        if "/" not in found.name or found.name.startswith("tables/"):
            path = folder / found.name
            path.parent.mkdir(parents=True, exist_ok=True)
            store.fetch(found.name, path)


def refuse_without_token(cluster: TwoNodes, run: Path) -> None:
    bare = {k: v for k, v in cluster.environ.items() if not k.startswith("RAY_AUTH")}
    # A token in the user's own folder would count too.
    bare |= {"HOME": str(cluster.folder), "RAY_AUTH_MODE": "token"}
    done = subprocess.run(
        [sys.executable, "-m", "judgebias", "run", str(run)],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert "token" in done.stderr
    assert "Traceback" not in done.stderr
