"""The world that is attacked: pairs, judges on two wires, a server with faults, and its bill."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import psutil

from judgebias.journal import read_journal
from scripts.forces.census import end, family, left_behind
from tests.pipeline.run_files import run_file, write_pairs
from tests.server import Action, Planted, Rule, ServerProcess, Setup, faults

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-loopback-0123456789abcdefghij"
IN_FLIGHT = 16
"""Of each judge."""
PRICE = {"input": 3.0, "output": 15.0}
PLANTED = {"gpt*": Planted(offset=0.8, tie_width=0.1), "claude*": Planted(tie_width=0.1)}
FOREVER = (
    Rule(name="refused", action=Action(variant="refusal"), contains="question 7?"),
    Rule(name="refused", action=Action(variant="refusal"), contains="question 70?"),
    Rule(name="long", action=faults.CONTEXT_LENGTH, contains="question 31?", wire="openai"),
    Rule(name="long", action=faults.ANTHROPIC_TOO_LARGE, contains="question 31?"),
)
"""Failures that the same call meets each time, so that the tables say the same of it."""


def passing(seed: int) -> tuple[Rule, ...]:
    """Faults that go away when a call is tried again; none of them is billed."""
    return (
        Rule(action=faults.SERVER_ERROR, probability=0.03, nth=(1, 1), seed=seed),
        Rule(action=faults.too_many("0.2"), wire="openai", probability=0.003, seed=seed),
        Rule(action=faults.too_many_anthropic("0.2"), wire="anthropic", probability=0.003, seed=1),
    )


@dataclass(kw_only=True)
class Start:
    """One start of the command, with every process that was seen to belong to it."""

    process: subprocess.Popen[bytes]
    said: Path
    seen: dict[int, psutil.Process] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Whether the command itself still runs."""
        return self.process.poll() is None

    def look(self) -> list[psutil.Process]:
        """Take note of the processes there are now."""
        now = family(self.process.pid) if self.running else []
        self.seen |= {process.pid: process for process in now}
        return now

    def wait(self, timeout: float = 600.0) -> int:
        """Wait for the command's end, and watch its processes; returns its exit code."""
        until = time.monotonic() + timeout
        while self.running and time.monotonic() < until:
            self.look()
            time.sleep(0.2)
        return self.process.wait(0.1)

    def gone(self, wait_s: float = 30.0) -> list[str]:
        """Describe what is left of it some time after its end, and end that."""
        left = left_behind(self.seen.values(), wait_s=wait_s)
        end(self.seen.values())
        return left

    def last_words(self) -> str:
        """What it said at the end."""
        return self.said.read_text(errors="replace")[-1500:]


@dataclass(frozen=True, kw_only=True)
class World:
    """A folder with pairs, and the server that is asked."""

    folder: Path
    server: ServerProcess
    pairs: Path
    ray_folder: Path

    def judges(self) -> list[dict[str, Any]]:
        """One judge on each wire."""
        common = {"price": PRICE, "max_in_flight": IN_FLIGHT}
        gpt = {"name": "o", "provider": "openai", "model": "gpt-loopback", **common}
        claude = {"name": "a", "provider": "anthropic", "model": "claude-loopback", **common}
        return [gpt | {"base_url": self.server.openai_url}, claude | {"base_url": self.server.url}]

    def run_file(self, name: str, judges: Iterable[Mapping[str, Any]] = (), **more: Any) -> Path:
        """Write a run file; its run directory has the same name."""
        given = {"engine_pairs_per_block": 64, "engine_workers": 2, "out": name, **more}
        judges = list(judges) or self.judges()
        return run_file(self.folder / f"{name}.toml", pairs=self.pairs, judges=judges, **given)

    def start(self, run: Path, *, command: str = "run", **environ: str) -> Start:
        """Start the command in a session of its own."""
        said = run.with_suffix(f".{len(list(run.parent.glob(f'{run.stem}.*.said')))}.said")
        environment = {**os.environ, "RAY_ADDRESS": "local", "RAY_TMPDIR": str(self.ray_folder)}
        keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "PYTHONPATH": str(ROOT)}
        what = [str(run), "--yes"] if command == "run" else [str(run.with_suffix(""))]
        with said.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "judgebias", command, *what],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment | keys | environ,
                cwd=self.folder,
                start_new_session=True,
            )
        return Start(process=process, said=said)

    def undisturbed(self, name: str = "calm", **more: Any) -> Path:
        """Run once with nobody attacking; returns the run directory.

        Raises
        ------
        RuntimeError
            When even that does not end as it should.
        """
        run = self.run_file(name, **more)
        start = self.start(run)
        code = start.wait()
        if code not in (0, 3):
            raise RuntimeError(f"the undisturbed run ended with {code}: {start.last_words()}")
        return run.with_suffix("")


@contextmanager
def world(pairs: int, *, rules: Iterable[Rule] = (), latency_s: float = 0.1) -> Iterator[World]:
    """Make a world that leaves nothing behind."""
    setup = Setup(judges=PLANTED, keys=frozenset({KEY}), latency_s=latency_s, rules=tuple(rules))
    # Ray's sockets need a short path.
    with TemporaryDirectory(prefix="jb") as ray_name, TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server").mkdir()
        with ServerProcess(folder / "server", setup) as server:
            yield World(
                folder=folder,
                server=server,
                pairs=write_pairs(folder / "pairs.jsonl", pairs),
                ray_folder=Path(ray_name),
            )
        # Ray's daemons write to their log for a moment after everything else has ended.
        shutil.rmtree(ray_name, ignore_errors=True)
        Path(ray_name).mkdir(exist_ok=True)


def differences(one: Path, other: Path) -> list[str]:
    """Name the tables of two runs that are not byte-equal; what a run cost may differ."""
    names = {path.relative_to(folder) for folder in (one, other) for path in _tables(folder)}
    return sorted(str(name) for name in names if _bytes(one / name) != _bytes(other / name))


def _tables(folder: Path) -> Iterator[Path]:
    for pattern in ("summary.*", "verdicts.parquet", "tables/*.csv"):
        yield from (path for path in folder.glob(pattern) if path.name != "costs.csv")


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def leftovers(out: Path) -> list[str]:
    """Name temporary files in a run directory that nobody will finish."""
    return sorted(str(path.relative_to(out)) for path in out.rglob(".*") if path.is_file())


def doubled(out: Path) -> int:
    """Count calls that have two verdicts in the journal."""
    rows = read_journal(out / "journal", columns=("judge", "pair", "order", "slot")).table
    verdicts = rows.filter(pl.col("slot").is_not_null())
    return verdicts.height - verdicts.unique(["judge", "pair", "order"]).height


def calls_of(out: Path) -> tuple[int, int]:
    """Count the rows of calls.parquet, and those with a verdict."""
    calls = pl.read_parquet(out / "calls.parquet", columns=["slot"])
    return calls.height, calls.height - calls["slot"].null_count()


def bill_lines(world: World) -> list[dict[str, Any]]:
    """Read the server's log, one line a request."""
    # The server writes its lines a loop turn later, and answering proves that it had one.
    world.server.bill()
    lines = world.server.log_file.read_text().splitlines()
    return [json.loads(line) for line in lines]
