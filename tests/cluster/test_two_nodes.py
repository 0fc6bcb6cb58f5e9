"""Submitted jobs on a real two-node cluster, over S3: killed, joined, lost, stopped and resumed.

The tests of this module are one story in order, because a cluster takes half a minute to start. The
judges are asked over the wire, so that the server's bill says what was bought.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from judgebias.journal import journal_folder, objects, read_journal
from judgebias.objects import ObjectStore
from tests.bucket import some_id
from tests.cluster.two_nodes import TwoNodes, last_line
from tests.pipeline.run_files import finish, run_file, same_tables, start, write_pairs
from tests.server import Action, Planted, Rule, ServerProcess, Setup

pytestmark = pytest.mark.ray

N = 500
CALLS = 4 * N
IN_FLIGHT = 24
"""Of each judge, in the whole cluster."""
KEY = f"sk-loopback-{token_hex(12)}"
KEYS = {"JUDGE_KEY": KEY, "KEY_OF_THE_HEAD": KEY}
LOST_WORKERS = 3
"""One with the second node; then that of the head and the one that nobody drives any more."""


@dataclass(kw_only=True, slots=True)
class Story:
    """What the tests of the story share."""

    cluster: TwoNodes
    server: ServerProcess
    folder: Path
    place: str
    """The run directory."""
    run: Path
    """The run file."""

    def rows(self) -> int:
        with journal_folder(f"{self.place}/journal") as copy:
            return read_journal(copy, columns=("judge",)).report.rows

    def nodes(self) -> set[str]:
        """The nodes that have written to the journal, by what their workers' names begin with."""
        listed = ObjectStore(f"{self.place}/journal").list()
        names = [found.name for found in listed if ".seg/" in found.name]
        return {name.split("-")[1] for name in names}

    def slow(self, delay_s: float) -> None:
        """Have the judges take so long from now on."""
        self.server.script(*([Rule(action=Action(delay_s=delay_s))] if delay_s else []))

    def judges(self, key: str = "JUDGE_KEY") -> list[dict[str, object]]:
        common = {"api_key_env": key, "max_in_flight": IN_FLIGHT}
        gpt = {"name": "o", "provider": "openai", "model": "gpt-loopback", **common}
        claude = {"name": "a", "provider": "anthropic", "model": "claude-loopback", **common}
        return [
            {**gpt, "base_url": self.server.openai_url},
            {**claude, "base_url": self.server.url},
        ]

    def run_file(self, name: str, *, out: str, pairs: str, key: str = "JUDGE_KEY") -> Path:
        path = self.folder / f"{name}.toml"
        judges = self.judges(key)
        return run_file(path, pairs=pairs, judges=judges, out=out, engine_pairs_per_block=64)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    # Ray's sockets need a short path.
    with TemporaryDirectory(prefix="jb") as name:
        yield Path(name)


def serving(folder: Path) -> ServerProcess:
    judges = {"gpt*": Planted(offset=0.8, tie_width=0.1), "claude*": Planted(tie_width=0.1)}
    folder.mkdir()
    return ServerProcess(folder, Setup(judges=judges, keys=frozenset({KEY})))


@pytest.fixture(scope="module")
def story(s3: str, folder: Path) -> Iterator[Story]:
    write_pairs(folder / "pairs.jsonl", N)
    ObjectStore(f"{s3}/input").write("pairs.jsonl", folder / "pairs.jsonl")
    cluster = TwoNodes(folder=folder / "first", environ={**os.environ, **KEYS})
    place = f"{s3}/{some_id()}/run"
    with serving(folder / "server") as server:
        told = Story(
            cluster=cluster, server=server, folder=folder, place=place, run=folder / "s3.toml"
        )
        told.run_file("s3", out=place, pairs=f"{s3}/input/pairs.jsonl")
        try:
            yield told
        finally:
            cluster.stop()


@pytest.fixture(scope="module")
def undisturbed(folder: Path, story: Story) -> Iterator[subprocess.Popen[str]]:
    """The same run on this machine alone, while the second cluster starts."""
    with serving(folder / "calm") as server:
        here = replace(story, server=server)
        run = here.run_file("here", out="here", pairs=str(folder / "pairs.jsonl"))
        process = start(run, "--yes", **KEYS)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.communicate()


def test_a_job_loses_a_node_gets_another_and_loses_its_head(story: Story) -> None:
    cluster = story.cluster
    cluster.start()
    story.slow(1.0)
    job = cluster.submit(story.run)
    cluster.wait_until(job, lambda: len(story.nodes()) == 2, "both nodes have judged")
    cluster.raylet("second").kill()
    # A busy machine takes long to start a node.
    story.slow(3.0)
    before = story.rows()
    cluster.join()
    cluster.wait_until(job, lambda: len(story.nodes()) == 3, "the node that joined has judged")
    assert story.rows() > before
    log = cluster.log(job)
    assert f"{CALLS:,} calls to ask of 2 judges" in log
    assert "a worker process died" in log
    cluster.lose_head()
    cluster.stop()
    assert story.rows() < CALLS, "the job ended too early for this test"


@pytest.mark.usefixtures("undisturbed")
def test_a_new_cluster_refuses_what_would_be_lost(story: Story) -> None:
    own = story.folder / "own"
    own.mkdir()
    wrap = story.folder / "wrap"
    inside = f'mount -t tmpfs none {own} && unset KEY_OF_THE_HEAD && exec "$@"'
    unshare = "unshare --mount" + ("" if os.geteuid() == 0 else " --map-root-user")
    wrap.write_text(f"#!/bin/sh\nexec {unshare} sh -c '{inside}' sh \"$@\"\n")
    wrap.chmod(0o755)
    cluster = story.cluster
    cluster.folder = story.folder / "again"
    cluster.start(NODE_WRAP=str(wrap))
    billed = story.server.bill()["requests"]
    pairs = str(story.folder / "pairs.jsonl")
    relative = story.run_file("relative", out="run", pairs=pairs)
    mounted = story.run_file("own", out=str(own / "run"), pairs=pairs, key="KEY_OF_THE_HEAD")
    jobs = [cluster.submit(relative), cluster.submit(mounted)]
    refuse_without_token(cluster, story.run)

    code, log = cluster.ended(jobs[0])
    assert (code, last_line(log)) == (2, "judgebias exit code 2")
    assert "is relative, in a job that was submitted" in log
    code, log = cluster.ended(jobs[1])
    assert (code, last_line(log)) == (2, "judgebias exit code 2"), log
    (fault,) = [line for line in log.splitlines() if line.startswith("node ")]
    assert f"cannot write to {own / 'run'}" in fault
    assert "the variable KEY_OF_THE_HEAD (key of judge 'o') is empty or not set" in fault
    assert not list((own / "run" / "journal").glob("*.seg"))
    assert story.server.bill()["requests"] == billed


def test_ray_job_stop_ends_a_job_as_one_signal_does(story: Story) -> None:
    story.slow(2.0)
    before = story.rows()
    cluster = story.cluster
    job = cluster.submit(story.run)
    cluster.wait_until(job, lambda: story.rows() > before, "the job goes on")
    # Longer than the three seconds that Ray gives a job by itself.
    story.slow(5.0)
    cluster.stop_job(job)
    # Ray keeps no exit code of a job that was stopped.
    _, log = cluster.ended(job)
    assert last_line(log) == "judgebias exit code 4", log
    assert "interrupted: what was in flight has landed" in log
    assert "are on disk" in log


def test_the_same_job_goes_on_and_pays_for_nothing_that_is_on_disk(story: Story) -> None:
    held = story.rows()
    story.slow(0.0)
    before = story.server.bill()
    code, log = story.cluster.ended(story.cluster.submit(story.run))
    assert (code, last_line(log)) == (0, "judgebias exit code 0"), log
    assert f"{CALLS - held:,} calls to ask of 2 judges, {held:,} are on disk" in log
    bill = story.server.bill()
    # After a stop that was waited for, nothing is bought again.
    assert bill["requests"] - before["requests"] == CALLS - held
    check_bill(bill)
    story.cluster.stop()
    kept = [path for path in story.folder.glob("*/ray/**/*") if path.is_file()]
    assert kept
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


def test_the_tables_are_those_of_one_node_that_nobody_disturbed(
    story: Story, undisturbed: subprocess.Popen[str]
) -> None:
    code, said = finish(undisturbed)
    assert code == 0, said
    there = fetched(story.place, story.folder / "there")
    # What was bought twice cost twice.
    same_tables(story.folder / "here", there, but=("tables/costs.csv",))
    calls = [pl.read_parquet(out / "calls.parquet") for out in (story.folder / "here", there)]
    said_by = ["judge", "task", "pair_id", "repeat", "order", "slot", "failure"]
    assert calls[1].select(said_by[:5]).is_unique().all()
    assert calls[0].select(said_by).equals(calls[1].select(said_by))
    nodes = calls[1]["worker"].str.split("-").list.first().value_counts()
    sys.stdout.write(f"calls by node: {dict(nodes.iter_rows())}\n")
    assert nodes.height >= 4


def check_bill(bill: dict[str, object]) -> None:
    """Compare the server's bill with what two kills may cost: in flight, or not yet an object."""
    twice = {name: int(str(bill[name])) for name in ("duplicates", "duplicates_after_answer")}
    sys.stdout.write(f"bill: {bill['billed']} for {CALLS} calls, {twice}\n")
    assert bill["distinct"] == CALLS
    assert twice["duplicates_after_answer"] <= LOST_WORKERS * objects.ROWS
    assert twice["duplicates"] <= 2 * 2 * IN_FLIGHT + LOST_WORKERS * objects.ROWS


def fetched(place: str, folder: Path) -> Path:
    store = ObjectStore(place)
    for found in store.list():
        if "/" not in found.name or found.name.startswith("tables/"):
            path = folder / found.name
            path.parent.mkdir(parents=True, exist_ok=True)
            store.fetch(found.name, path)
    return folder


def refuse_without_token(cluster: TwoNodes, run: Path) -> None:
    bare = {k: v for k, v in cluster.environ.items() if not k.startswith("RAY_AUTH")}
    # A token in the user's own folder would count too.
    bare |= {"HOME": str(cluster.folder), "RAY_AUTH_MODE": "token"}
    done = subprocess.run(
        [sys.executable, "-m", "judgebias", "run", str(run), "--yes"],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2, done.stderr
    assert "token" in done.stderr
    assert "Traceback" not in done.stderr
