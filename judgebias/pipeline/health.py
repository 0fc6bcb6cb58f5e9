"""Whether Ray is still there: a lost Ray ends the driver without a word unless we see it first.

Measured with ray 2.60: 15 s after its raylet was killed the driver ends with exit code 1, and 60 s
after the loss of the GCS; a local Ray's processes are our children, so we see their end at once.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import ray
from ray.exceptions import RayError

from judgebias.errors import RayLost

ASK_EVERY_S = 2.0
SILENT_S = 30.0
"""Seconds without an answer of the head node after which it counts as lost."""
_VITAL = {"raylet": "the raylet of this machine", "gcs_server": "Ray's head (GCS)"}


class Health:
    """Watches the Ray this process is connected to; one per run."""

    def __init__(self) -> None:
        self._processes = _own_processes()
        self._node = ray.get_runtime_context().get_node_id()
        self._heard = time.monotonic()
        self._alive = True
        self._over = threading.Event()
        self._asking = threading.Lock()
        threading.Thread(target=self._ask, name="health", daemon=True).start()

    def check(self) -> None:
        """Return while everything that the run needs of Ray is there.

        Raises
        ------
        RayLost
            When a process of a local Ray has ended, this machine counts as dead in the cluster,
            or its head has been silent for `SILENT_S`.
        """
        ended = [name for name, path in self._processes.items() if _ended(path)]
        if ended:
            raise _lost(f"{_VITAL[ended[0]]} has ended")
        if not self._alive:
            raise _lost("this machine counts as dead in the cluster")
        if time.monotonic() - self._heard > SILENT_S:
            raise _lost(f"its head has not answered for {SILENT_S:.0f} s")

    def close(self) -> None:
        """Ask no more: a question after the farewell would start another Ray."""
        self._over.set()
        if self._asking.acquire(timeout=ASK_EVERY_S):
            self._asking.release()

    def _ask(self) -> None:
        # On a thread of its own: the question itself hangs when the head is gone.
        while not self._over.wait(ASK_EVERY_S):
            with self._asking:
                if self._over.is_set():
                    return
                try:
                    nodes = ray.nodes()
                except (RayError, OSError, RuntimeError):
                    continue
            self._heard = time.monotonic()
            mine = [node["Alive"] for node in nodes if node["NodeID"] == self._node]
            self._alive = all(mine)


def _lost(what: str) -> RayLost:
    return RayLost(
        f"Ray was lost: {what}", do="start Ray again; the same command goes on from here"
    )


def _own_processes() -> dict[str, Path]:
    """Find the processes of a Ray that this one started, by what the kernel calls them."""
    children = Path("/proc/self/task").glob("*/children")
    pids = [pid for listed in children for pid in listed.read_text().split()]
    named = {Path(f"/proc/{pid}"): _name(Path(f"/proc/{pid}")) for pid in pids}
    return {name: path for path, name in named.items() if name in _VITAL}


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return ""


def _ended(process: Path) -> bool:
    try:
        # The field after the name, which may itself hold blanks and brackets; Z = zombie.
        return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
