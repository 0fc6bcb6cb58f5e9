"""Before anything is asked: whether every node of a cluster sees the run, its input and its keys.

Each node writes a nonce into the run directory, and the driver must read them all: a folder of one
node alone would scatter the journal. A node that joins later is not asked; its workers look for the
run directory before they write to it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from judgebias.config import FunctionJudge, JudgeConfig, ReplayJudge, WireJudge
from judgebias.errors import JudgebiasError, UsageError
from judgebias.judges.local import open_local
from judgebias.judges.secrets import read_key
from judgebias.objects import ObjectStore, is_uri
from judgebias.pairs.block import Source
from judgebias.pairs.source import check_unchanged
from judgebias.pipeline.place import runs_here
from judgebias.pipeline.plan import RunPlan
from judgebias.pipeline.ready import Ready

PACKAGES = ("aiohttp", "anthropic", "jiter", "obstore", "openai", "polars", "tenacity", "uvloop")
"""What a worker imports beside Ray and pyarrow."""
ANSWER_S = 90.0
"""Seconds for a node to start a process and look around."""
SEEN_S = 10.0
"""A network file system may show a new file late."""
_POLL_S = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a node is to find out: plain data, names of keys and no key."""

    place: str
    nonce: str
    source: Source | None
    """One of the input files."""
    judges: tuple[JudgeConfig, ...]
    base: str


def check_nodes(ready: Ready) -> None:
    """Ask every node that may judge; a local Ray has the files and the environment of the driver.

    Raises
    ------
    UsageError
        With every node that does not see what it needs; nothing was asked of a judge.
    """
    here = ray.get_runtime_context().get_node_id()
    nodes = {
        node["NodeID"]: f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"
        for node in ray.nodes()
        if node["Alive"] and node["Resources"].get("CPU")
    }
    if nodes.keys() <= {here} and runs_here(ready.plan.config.engine.address):
        return
    question = _question(ready)
    names = {node: f"{question.nonce}-{node[:12]}" for node in nodes}
    try:
        faults = _answers(nodes, question, names)
        for node, name in names.items():
            if node not in faults and not _seen(question.place, name):
                faults[node] = [f"does not write to the {ready.rundir.name} that the driver reads"]
    finally:
        for name in names.values():
            _remove(question.place, name)
    if faults:
        raise UsageError(
            "\n".join(f"node {nodes[node]}: {'; '.join(what)}" for node, what in faults.items()),
            expected="every node with the same packages and keys, and one run directory and input "
            "for all of them",
            do="mount the folder on every node or use s3:// for `out` and `pairs`; set the key's "
            "variable where `ray start` is called; nothing was asked",
        )


def unseen_run(plan: RunPlan) -> str:
    """Say that this node does not see the run directory of this start, "" when it does."""
    place = _parent(plan.journal)
    deadline = time.monotonic() + SEEN_S
    while _epoch(place) != plan.epoch:
        if time.monotonic() > deadline:
            return f"{this_node()} does not see the run directory {place} as the driver wrote it"
        time.sleep(_POLL_S)
    return ""


def this_node() -> str:
    """Name the node of this process as an error does."""
    node = ray.get_runtime_context().get_node_id()
    return f"node {ray.util.get_node_ip_address()} ({node[:8]})"


def _question(ready: Ready) -> Question:
    plan, asked = ready.plan, {block.judge for block in ready.blocks}
    return Question(
        place=_parent(plan.journal),
        nonce=f".node-{token_hex(8)}",
        source=plan.blocks[0].source if plan.blocks else None,
        judges=tuple(judge for judge in plan.config.judges if judge.name in asked),
        base=plan.base,
    )


def _answers(
    nodes: Mapping[str, str], question: Question, names: Mapping[str, str]
) -> dict[str, list[str]]:
    look: Any = ray.remote(look_around)
    asked = {
        look.options(
            num_cpus=0,
            max_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node_id=node, soft=False),
        ).remote(question, names[node]): node
        for node in nodes
    }
    deadline = time.monotonic() + ANSWER_S
    faults: dict[str, list[str]] = {}
    for answer, node in asked.items():
        try:
            found = ray.get(answer, timeout=max(0.0, deadline - time.monotonic()))
        except RayError as error:
            # A node without our package cannot even read the question.
            found = [f"cannot be asked: {_last_line(error)}"]
        if found:
            faults[node] = found
    return faults


def look_around(question: Question, name: str) -> list[str]:
    """Leave the nonce, and list what is missing on this node."""
    faults = [f"has no package {package!r}" for package in PACKAGES if not _has(package)]
    try:
        _leave(question.place, name)
    except (OSError, JudgebiasError) as error:
        faults.append(f"cannot write to {question.place}: {_last_line(error)}")
    for judge in question.judges:
        try:
            _open(judge, question.base)
        except JudgebiasError as error:
            faults.append(error.given)
    if question.source is not None:
        try:
            check_unchanged(question.source)
        except JudgebiasError as error:
            faults.append(error.given)
    return faults


def _has(package: str) -> bool:
    found = importlib.util.find_spec(package)
    # A folder that an uninstalled package left behind can be imported, and has nothing in it.
    return found is not None and found.origin is not None


def _open(judge: JudgeConfig, base: str) -> None:
    if isinstance(judge, WireJudge):
        read_key(judge, os.environ, Path(base))
    elif isinstance(judge, FunctionJudge | ReplayJudge):
        open_local(judge, base)


def _leave(place: str, name: str) -> None:
    if is_uri(place):
        ObjectStore(place).write(name, b"")
    else:
        (Path(place) / name).touch(mode=0o600)


def _seen(place: str, name: str) -> bool:
    if is_uri(place):
        return _exists(place, name)
    deadline = time.monotonic() + SEEN_S
    while not (Path(place) / name).exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _exists(place: str, name: str) -> bool:
    try:
        ObjectStore(place).look(name)
    except FileNotFoundError:
        return False
    return True


def _remove(place: str, name: str) -> None:
    if is_uri(place):
        ObjectStore(place).remove([name])
    else:
        (Path(place) / name).unlink(missing_ok=True)


def _epoch(place: str) -> int:
    try:
        if is_uri(place):
            text = ObjectStore(place).read("run.json")
        else:
            text = (Path(place) / "run.json").read_bytes()
    except OSError:
        return -1
    try:
        return int(json.loads(text)["epoch"])
    except (ValueError, KeyError, TypeError):
        return -1


def _parent(journal: str) -> str:
    return journal.rpartition("/")[0]


def _last_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
