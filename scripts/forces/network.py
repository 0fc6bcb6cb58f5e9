"""(c) A bad network before five judges, and judges that cannot be reached at all."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl

from scripts.forces.world import (
    World,
    calls_of,
    differences,
    doubled,
    leftovers,
    world,
)
from tests.proxy import FaultProxy, Kind, Toxic

PAIRS = 300
SHARE = 0.05
"""Of the responses are spoilt."""
TIMEOUT_S = 3.0
NO_SUCH_NAME = ".".join(["a" * 60] * 5)
"""Longer than a name may be: the resolver refuses it without asking anybody."""
KINDS: tuple[Kind, ...] = ("latency", "black_hole", "reset", "drip", "half_close")
ENDS = {
    "latency": "passes",
    "black_hole": "timeout, tried again",
    "reset": "connection, tried again",
    "drip": "timeout, tried again",
    "half_close": "connection, tried again",
    "name": "connection failures, then the judge stops",
    "certificate": "the judge stops before the key is sent",
}


def bad_network(seed: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Give the tables of the two runs."""
    with world(PAIRS, latency_s=0.05) as attacked:
        straight = dict.fromkeys(KINDS, attacked.server)
        calm = attacked.undisturbed(judges=_judges(straight))
        rows, end = _spoilt(attacked, calm, seed)
        yield "five judges behind bad connections", rows
        yield "how they ended", [end]
        yield "two judges that cannot be reached beside one that can", _unreachable(attacked)


def _judges(ways: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One judge for each fault, on the two wires in turn."""
    judges: list[dict[str, Any]] = []
    for number, (name, way) in enumerate(ways.items()):
        openai = number % 2 == 0
        judges.append(
            {
                "name": name,
                "provider": "openai" if openai else "anthropic",
                "model": f"{'gpt' if openai else 'claude'}-{name}",
                "base_url": way.openai_url if openai else way.url,
                "max_in_flight": 8,
                "timeout_s": TIMEOUT_S,
            }
        )
    return judges


def _spoilt(attacked: World, calm: Path, seed: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    began, before = time.monotonic(), _billed(attacked)
    with ExitStack() as stack:
        ways = {
            kind: stack.enter_context(
                FaultProxy(
                    attacked.server.port,
                    Toxic(kind=kind, probability=SHARE, delay_s=0.5),
                    seed=seed + number,
                )
            )
            for number, kind in enumerate(KINDS)
        }
        run = attacked.run_file("spoilt", judges=_judges(ways))
        start = attacked.start(run)
        code = start.wait()
        hits = {kind: way.hits for kind, way in ways.items()}
    out = run.with_suffix("")
    left, differ = start.gone(), differences(calm, out)
    rows = _per_judge(out)
    for row in rows:
        row |= {"ends_as": ENDS[row["judge"]], "spoilt": hits[row["judge"]]}
    held = (code, differ, doubled(out), left) == (0, [], 0, []) and all(hits.values())
    extra = _billed(attacked) - before - calls_of(out)[0]
    end = {
        "calls": calls_of(out)[0],
        "spoilt": sum(hits.values()),
        "bought_again": extra,
        "exit": code,
        "tables_that_differ": differ,
        "processes_left": left,
        "files_left": leftovers(out),
        "seconds": time.monotonic() - began,
        "holds": held and extra <= sum(hits.values()),
    }
    if not held:
        end["said"] = start.last_words()
    return rows, end


def _per_judge(out: Path) -> list[dict[str, Any]]:
    calls = pl.read_parquet(out / "calls.parquet")
    found = calls.group_by("judge").agg(
        pl.len().alias("calls"),
        pl.col("slot").is_null().sum().alias("failed"),
        (pl.col("attempts") > 1).sum().alias("tried_again"),
        pl.col("input_tokens").is_null().sum().alias("cost_unknown"),
        pl.col("attempts").max().alias("attempts_max"),
    )
    return found.sort("judge").to_dicts()


def _unreachable(attacked: World) -> list[dict[str, Any]]:
    began = time.monotonic()
    with FaultProxy(attacked.server.port, tls=True) as proxy:
        judges = _judges({"fine": attacked.server, "certificate": proxy, "name": proxy})
        judges[2] |= {"base_url": f"http://{NO_SUCH_NAME}/v1", "max_attempts": 2}
        run = attacked.run_file("unreachable", judges=judges)
        start = attacked.start(run)
        code = start.wait()
    left = start.gone()
    calls = pl.read_parquet(run.with_suffix("") / "calls.parquet")
    said = start.said.read_text()
    rows: list[dict[str, Any]] = []
    for name in ("fine", "certificate", "name"):
        mine = calls.filter(pl.col("judge") == name)
        stopped = f"{name} was stopped: " in said
        good = stopped != (name == "fine") and (mine["slot"].count() == 2 * PAIRS) != stopped
        rows.append(
            {
                "judge": name,
                "ends_as": ENDS.get(name, "complete"),
                "verdicts": mine["slot"].count(),
                "failures": mine["slot"].null_count(),
                "stopped": stopped,
                "exit": code,
                "processes_left": left,
                "seconds": time.monotonic() - began,
                "holds": good and code == 4 and not left,
            }
        )
    return rows


def _billed(attacked: World) -> int:
    billed = attacked.server.bill()["billed"]
    return billed if isinstance(billed, int) else 0
