"""The ways to judge that are compared: how each is started, and what its result holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from scripts.benches.peers.work import IN_FLIGHT, KEY, MAX_TOKENS, MODEL
from tests.pipeline.run_files import run_file

HERE = "scripts.benches.peers"


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a result holds, told by the names of its calls."""

    answered: int
    """Calls with a verdict."""
    failed: int
    """Calls that have only rows without a verdict."""
    twice: int
    """Rows beyond one for each call."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way to judge: a module that is run by itself, or our own command."""

    name: str
    title: str
    module: str = ""
    """"" = judgebias."""
    needs: str = ""
    """A module that must be importable."""
    told: int = 0
    """Requests per minute that the way is told of; 0 = it finds out."""

    def command(self, folder: Path, url: str) -> list[str]:
        """Prepare the folder and return the words of the command."""
        if self.module:
            words = [url, str(folder / "prompts.jsonl"), str(folder / "out")]
            return [sys.executable, "-m", f"{HERE}.{self.module}", *words]
        judge: dict[str, object] = {
            "name": "j",
            "provider": "openai",
            "model": MODEL,
            "base_url": url,
            "verdict": "text",
            "max_tokens": MAX_TOKENS,
            "max_in_flight": IN_FLIGHT,
            **({"requests_per_minute": self.told} if self.told else {}),
        }
        run = run_file(folder / "run.toml", pairs="pairs.jsonl", out="out", judges=[judge])
        return [sys.executable, "-m", "judgebias", "run", str(run), "--yes"]

    def environ(self, ray_folder: Path, root: Path) -> dict[str, str]:
        """Return what the command needs of its environment: a Ray of its own, and the key."""
        ray = {"RAY_ADDRESS": "local", "RAY_TMPDIR": str(ray_folder)}
        return {**ray, "OPENAI_API_KEY": KEY, "PYTHONPATH": str(root)}

    def outcome(self, folder: Path) -> Outcome:
        """Read the result."""
        out = folder / "out"
        return outcome_of(_rows(out) if self.module else _calls(out))

    def missing(self) -> str:
        """Say why the way cannot be measured here; "" where it can."""
        if not self.needs:
            return ""
        tried = subprocess.run(
            [sys.executable, "-c", f"import {self.needs}"], capture_output=True, text=True
        )
        return tried.stderr.strip().splitlines()[-1] if tried.returncode else ""


WAYS = (
    Way(name="loop", title="asyncio loop over the async SDK, JSONL", module="loop"),
    Way(name="threads", title="64 threads over the sync SDK, as FastChat", module="threads"),
    Way(name="map", title="Ray Data map_batches over the SDK", module="ray_map"),
    Way(name="http", title="Ray Data's HTTP processor", module="ray_http", needs="ray.data.llm"),
    Way(name="ours", title="judgebias run"),
)


def outcome_of(rows: Iterable[tuple[str, bool]]) -> Outcome:
    """Count rows given as the call's name and whether there is a verdict."""
    seen: Counter[str] = Counter()
    good: set[str] = set()
    for name, has_verdict in rows:
        seen[name] += 1
        if has_verdict:
            good.add(name)
    return Outcome(answered=len(good), failed=len(seen) - len(good), twice=seen.total() - len(seen))


def _rows(out: Path) -> Iterator[tuple[str, bool]]:
    """Read a JSONL, or a folder of them as Ray Data writes it."""
    for file in sorted(out.glob("*.json")) if out.is_dir() else [out]:
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                yield row["id"], row.get("verdict") is not None


def _calls(out: Path) -> Iterator[tuple[str, bool]]:
    """Read the calls of a run directory."""
    if (out / "calls.parquet").exists():
        calls = pl.read_parquet(out / "calls.parquet", columns=["pair_id", "order", "slot"])
        for pair_id, order, slot in calls.iter_rows():
            yield f"{pair_id}-{order}", slot is not None
