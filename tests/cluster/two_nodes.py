"""A real cluster of two nodes on this machine, and the jobs that are submitted to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from ray.job_submission import JobSubmissionClient

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "cluster" / "two_nodes"
OVER = {"SUCCEEDED", "FAILED", "STOPPED"}


@dataclass(kw_only=True, slots=True)
class TwoNodes:
    """Started by `cluster/two_nodes`, stopped by process id."""

    folder: Path
    environ: dict[str, str]

    def start(self, **settings: str) -> None:
        self._script("start", **settings)
        text = (self.folder / "env").read_text()
        for name, value in re.findall(r'([A-Z_]+)="?([^"\s]+)"?', text):
            self.environ[name] = value

    def join(self) -> None:
        self._script("join")

    def stop(self) -> None:
        if (self.folder / "pids").exists():
            self._script("stop")

    def raylet(self, name: str) -> psutil.Process:
        """The raylet of a node, by the process that started it."""
        started = psutil.Process(int((self.folder / f"{name}.pid").read_text()))
        return next(
            child
            for child in started.children(recursive=True)
            if child.cmdline() and child.cmdline()[0].endswith("raylet/raylet")
        )

    def submit(self, run: Path, *options: str) -> str:
        """Submit the shipped job as a user does; returns its id."""
        command = ["ray", "job", "submit", "--no-wait", "--working-dir", str(ROOT), "--"]
        command += ["python", "jobs/judge_pairs.py", str(run), "--yes", *options]
        done = subprocess.run(
            [str(Path(sys.executable).parent / command[0]), *command[1:]],
            cwd=ROOT,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        found = re.search(r"Job '(\w+)' submitted", said)
        assert found is not None, said
        return found[1]

    def client(self) -> JobSubmissionClient:
        os.environ.update({k: v for k, v in self.environ.items() if k.startswith("RAY_AUTH")})
        return JobSubmissionClient(self.environ["RAY_API_SERVER_ADDRESS"])

    def ended(self, job: str, *, timeout_s: float = 400) -> tuple[int | None, str]:
        """Wait for a job; returns its driver's exit code and its log."""
        client = self.client()
        until = time.monotonic() + timeout_s
        while str(client.get_job_status(job).value) not in OVER:
            assert time.monotonic() < until, client.get_job_logs(job)[-3000:]
            time.sleep(1)
        return client.get_job_info(job).driver_exit_code, client.get_job_logs(job)

    def _script(self, command: str, **settings: str) -> None:
        done = subprocess.run(
            [str(SCRIPT), command, str(self.folder)],
            env={**self.environ, "PYTHON": sys.executable, **settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=500,
        )
        logs = [path.read_text()[-1500:] for path in self.folder.glob("*.log")]
        assert done.returncode == 0, "\n".join([done.stderr, *logs])


def wait_until(look: Callable[[], bool], what: str, *, timeout_s: float = 240) -> None:
    until = time.monotonic() + timeout_s
    while not look():
        assert time.monotonic() < until, f"waited {timeout_s} s until {what}"
        time.sleep(0.5)


def last_line(log: str) -> str:
    return log.strip().splitlines()[-1]
