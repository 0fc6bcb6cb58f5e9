"""Where a way is measured: a folder with pairs and prompts, and a counting server of its own."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.benches.peers.meter import Command
from scripts.benches.peers.ways import Way
from scripts.benches.peers.work import write_prompts
from scripts.benches.world import write_pairs
from tests.server import ServerProcess, Setup

ROOT = Path(__file__).resolve().parents[3]
LATENCY_S = 0.05
LONGEST_S = 420.0
"""A command that takes longer is ended."""
SIZE = 600
"""Characters of an answer; the prompt then has about 3 kB."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Everything one command works with."""

    folder: Path
    ray_folder: Path
    server: ServerProcess
    calls: int
    """Calls that are needed."""
    commands: list[Command] = field(default_factory=list[Command])
    """Everything that was started here."""

    def start(self, way: Way) -> Command:
        """Start a way; started again, it goes on where it can."""
        command = Command.start(
            way.command(self.folder, self.server.openai_url),
            folder=self.folder,
            environ=way.environ(self.ray_folder, ROOT),
            said=self.folder / "said",
        )
        self.commands.append(command)
        return command

    def finish(self) -> int:
        """Wait for what outlived its command, then end it; returns how many processes that were."""
        return sum(command.clear() for command in self.commands)

    def count(self, name: str = "requests") -> int:
        """Ask the server for one of its counts."""
        found = self.server.bill()[name]
        return found if isinstance(found, int) else 0

    def refused(self) -> int:
        """Count the requests that were answered with 429."""
        by_status = self.server.bill()["by_status"]
        return int(by_status.get("429", 0)) if isinstance(by_status, dict) else 0

    def arrivals(self) -> list[float]:
        """List when the accepted requests came."""
        return sorted(float(str(one["time"])) for one in self.server.log() if one["status"] == 200)


@contextmanager
def scene(calls: int, setup: Setup | None = None) -> Generator[Scene]:
    """Make a scene for so many calls that leaves nothing behind."""
    # Ray's sockets need a short path.
    with TemporaryDirectory(prefix="jb") as ray_name, TemporaryDirectory() as name:
        folder = Path(name)
        write_pairs(folder / "pairs.jsonl", calls // 2, size=SIZE)
        needed = write_prompts(folder / "pairs.jsonl", folder / "prompts.jsonl")
        (folder / "server").mkdir()
        with ServerProcess(folder / "server", setup or Setup(latency_s=LATENCY_S)) as server:
            stage = Scene(folder=folder, ray_folder=Path(ray_name), server=server, calls=needed)
            try:
                yield stage
            finally:
                # A benchmark that is broken off must not leave a command behind.
                for command in stage.commands:
                    command.kill(everything=True)
        # Ray's daemons write to their log for a moment after everything else has ended.
        shutil.rmtree(ray_name, ignore_errors=True)
        Path(ray_name).mkdir(exist_ok=True)
