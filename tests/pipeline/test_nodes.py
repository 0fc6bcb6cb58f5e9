"""What a node of a cluster is asked before a run, without a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgebias.cli import run_app
from judgebias.config import WireJudge, load_run_file
from judgebias.config.run import Engine
from judgebias.errors import ConfigError
from judgebias.objects import ObjectStore
from judgebias.pairs import PairsSpec, survey_pairs
from judgebias.pipeline import nodes
from judgebias.pipeline.nodes import Question, look_around, unseen_run
from judgebias.pipeline.place import SUBMITTED, refuse_lost_folder
from judgebias.pipeline.pool import CLUSTER_CPUS, LOCAL_CPUS, MOST, pool_of
from judgebias.pipeline.prepare import prepared
from tests.bucket import some_id
from tests.pipeline.run_files import run_file, write_pairs

WIRE = WireJudge(name="w", provider="openai", model="m", api_key_env="A_KEY_FOR_NODES")


@pytest.fixture
def question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Question:
    monkeypatch.setenv("A_KEY_FOR_NODES", "sk-some-key-0123456789")
    pairs = write_pairs(tmp_path / "pairs.jsonl", 3)
    source = survey_pairs(PairsSpec(source=str(pairs), base=tmp_path)).blocks[0].source
    place = tmp_path / "run"
    place.mkdir()
    return Question(
        place=str(place), nonce=".node-x", source=source, judges=(WIRE,), base=str(tmp_path)
    )


def test_a_node_that_sees_everything_leaves_its_nonce(question: Question) -> None:
    assert look_around(question, "nonce-1") == []
    assert (Path(question.place) / "nonce-1").exists()


def test_a_node_lists_all_that_it_lacks_and_shows_no_key(
    question: Question, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("A_KEY_FOR_NODES")
    monkeypatch.setattr(nodes, "PACKAGES", ("polars", "no_such_package_here", "left_behind"))
    (tmp_path / "left_behind").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert question.source is not None
    Path(question.source.file).unlink()
    Path(question.place).rmdir()
    faults = "\n".join(look_around(question, "nonce-1"))
    assert "has no package 'no_such_package_here'" in faults
    assert "has no package 'left_behind'" in faults
    assert "polars" not in faults
    assert "cannot write to" in faults
    assert "the variable A_KEY_FOR_NODES" in faults
    assert "pairs.jsonl cannot be read" in faults


def test_a_node_of_an_object_store_leaves_its_nonce_there(question: Question, s3: str) -> None:
    place = f"{s3}/{some_id()}"
    asked = Question(place=place, nonce=".n", source=None, judges=(), base=question.base)
    assert look_around(asked, ".n-1") == []
    assert ObjectStore(place).read(".n-1") == b""


def test_a_node_that_joins_later_reads_the_manifest_of_this_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "SEEN_S", 0.0)
    pairs = write_pairs(tmp_path / "pairs.jsonl", 3)
    judge = {"name": "one", "provider": "simulated"}
    run_file(tmp_path / "run.toml", pairs=pairs, judges=[judge], out="out")
    with prepared(load_run_file(tmp_path / "run.toml"), base=tmp_path) as ready:
        assert unseen_run(ready.plan) == ""
        (tmp_path / "out" / "run.json").rename(tmp_path / "elsewhere")
        monkeypatch.setattr(nodes, "this_node", lambda: "node 10.0.0.9")
        assert "node 10.0.0.9 does not see the run directory" in unseen_run(ready.plan)


@pytest.mark.parametrize("out", ["run", "../run", "./deep/run"])
def test_a_relative_folder_is_refused_in_a_submitted_job_alone(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_lost_folder("out", out)
    monkeypatch.setenv(SUBMITTED, "{}")
    with pytest.raises(ConfigError, match="relative, in a job that was submitted"):
        refuse_lost_folder("out", out)
    refuse_lost_folder("out", "/shared/run")
    refuse_lost_folder("out", "s3://bucket/run")


def test_the_option_is_refused_as_the_setting_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = write_pairs(tmp_path / "pairs.jsonl", 3)
    judge = {"name": "one", "provider": "simulated"}
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[judge], out=str(tmp_path / "o"))
    monkeypatch.setenv(SUBMITTED, "{}")
    assert run_app(["run", str(run), "--out", "here"]) == 2
    assert "--out = 'here' is relative" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("workers", "cpus", "blocks", "least", "first", "most"),
    [
        (0, 4, 100, 1, 4, MOST),
        (0, 4, 3, 1, 3, 3),
        (0, 200, 1000, 1, 200, 200),
        (2, 8, 100, 1, 2, 2),
        (8, 2, 100, 1, 2, 8),
    ],
)
def test_a_pool_on_a_cluster_grows_to_what_the_blocks_need(
    workers: int, cpus: int, blocks: int, least: int, first: int, most: int
) -> None:
    pool = pool_of(Engine(workers=workers, address="head:6379"), cpus, blocks)
    assert (pool.least, pool.first, pool.most) == (least, first, most)
    assert pool.cpus == CLUSTER_CPUS


def test_a_pool_on_one_machine_has_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    pool = pool_of(Engine(), 4, 100)
    assert (pool.least, pool.first, pool.most) == (4, 4, 4)
    assert pool.cpus == LOCAL_CPUS
