"""A real cluster of two nodes on this machine, and the jobs that are submitted to it."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "cluster" / "two_nodes"
WAIT = '{"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": "65"}}'
"""As the shipped commands have it: the grace period of a run and five seconds."""
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

    def lose_head(self) -> None:
        """Kill -9 all of the head's machine: the driver, its worker, the raylet and the GCS."""
        started = psutil.Process(int((self.folder / "head.pid").read_text()))
        lost = [started, *started.children(recursive=True)]
        for process in lost:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(lost, timeout=30)

    def submit(self, run: Path, *options: str, job: str = "judge_pairs") -> str:
        """Submit a shipped job as a user does; returns its id."""
        command = ["submit", "--no-wait", "--working-dir", str(ROOT), "--runtime-env-json", WAIT]
        command += ["--", "python", f"jobs/{job}.py", str(run), "--yes", *options]
        said = self._job(*command)
        found = re.search(r"Job '(\w+)' submitted", said)
        assert found is not None, said
        return found[1]

    def stop_job(self, job: str) -> None:
        """Stop a job as a user does; returns when its driver has ended."""
        self._job("stop", job)

    def ended(self, job: str, *, timeout_s: float = 400) -> tuple[int | None, str]:
        """Wait for a job; returns its driver's exit code and its log."""
        until = time.monotonic() + timeout_s
        while (info := self._ask(f"/api/jobs/{job}"))["status"] not in OVER:
            assert time.monotonic() < until, self.log(job)[-3000:]
            time.sleep(1)
        return info["driver_exit_code"], self.log(job)

    def wait_until(
        self, job: str, look: Callable[[], bool], what: str, *, timeout_s: float = 240
    ) -> None:
        """Look twice a second while the job runs."""
        until = time.monotonic() + timeout_s
        while not look():
            assert time.monotonic() < until, f"waited {timeout_s} s until {what}"
            assert self._ask(f"/api/jobs/{job}")["status"] not in OVER, self.log(job)[-3000:]
            time.sleep(0.5)

    def _job(self, *command: str) -> str:
        done = subprocess.run(
            [str(Path(sys.executable).parent / "ray"), "job", *command],
            cwd=ROOT,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def log(self, job: str) -> str:
        return self._ask(f"/api/jobs/{job}/logs")["logs"]

    def _ask(self, path: str) -> dict[str, Any]:
        token = Path(self.environ["RAY_AUTH_TOKEN_PATH"]).read_text()
        request = urllib.request.Request(
            self.environ["RAY_API_SERVER_ADDRESS"] + path,
            headers={"Authorization": f"Bearer {token}"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as response:
            return json.loads(response.read())

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


def last_line(log: str) -> str:
    return log.strip().splitlines()[-1]
