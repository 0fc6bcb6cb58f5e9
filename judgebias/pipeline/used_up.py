"""Calls whose tries are used up: failures for good in the tables, and rejects in the list.

`max_tries_total` bounds what a call may cost over all starts of the command. The tables count such
a call as the failure it is; `rejects.jsonl` names it, because no later start will ask it again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import polars as pl

from judgebias.config import RunConfig
from judgebias.journal import done_keys, failed_tries
from judgebias.manifest import Manifest
from judgebias.publish import publish_text
from judgebias.rundir import RunDir

FIELD = "judge"
"""What `field` says of these rows; rejected input rows name a column of the pairs."""


def split_tries(tries: pl.DataFrame, config: RunConfig) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Divide tried calls, as `failed_tries` lists them, into those used up and those to ask."""
    limits = {judge.name: judge.max_tries_total for judge in config.judges}
    bound = pl.col("judge").cast(pl.String).replace_strict(limits, return_dtype=pl.Int64)
    return tries.filter(pl.col("attempts") >= bound), tries.filter(pl.col("attempts") < bound)


def list_used_up(run: RunDir, manifest: Manifest) -> int:
    """Name the calls of the run that are used up in its rejects; returns how many there are."""
    fingerprints = {name: bytes.fromhex(text) for name, text in manifest.fingerprints.items()}
    done = done_keys(run.journal, fingerprints)
    used_up, _ = split_tries(failed_tries(run.journal, fingerprints, done), manifest.config)
    rows = used_up.sort("task", "pair_id", "judge", "repeat", "order").iter_rows(named=True)
    listed = [json.dumps(_reject(row), ensure_ascii=False) for row in rows]
    before = run.rejects.read_text(encoding="utf-8").splitlines() if run.rejects.exists() else []
    kept = [line for line in before if json.loads(line)["field"] != FIELD]
    if before != kept + listed:
        publish_text(run.rejects, "".join(f"{line}\n" for line in kept + listed))
    return len(listed)


def _reject(call: Mapping[str, object]) -> dict[str, object]:
    return {
        "file": None,
        "row": None,
        "pair_id": call["pair_id"],
        "field": FIELD,
        "reason": f"task {call['task']}, judge {call['judge']}, order {call['order']}, "
        f"repeat {call['repeat']}: failed {call['attempts']} times, the last time as "
        f"{call['failure']}; not asked again",
    }
