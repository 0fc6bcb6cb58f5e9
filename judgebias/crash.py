"""Named steps at which a test makes a process kill itself, as a power cut would."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

VARIABLE = "JUDGEBIAS_CRASH"
"""The environment variable that names the steps, separated by commas; `STEP*3` is the third time
that a process comes to the step."""

ONCE = "JUDGEBIAS_CRASH_ONCE"
"""Names a folder that remembers which steps have killed: each then kills one process only, and
not every one that stands in for it."""

_passed = Counter[str]()


def crash_point(step: str) -> None:
    """Kill this process with SIGKILL when the environment names this step; else do nothing."""
    if wanted := os.environ.get(VARIABLE):
        _consider(step, wanted)


def _consider(step: str, wanted: str) -> None:
    for name, _, times in (each.partition("*") for each in wanted.split(",")):
        if name != step:
            continue
        _passed[step] += 1
        if _passed[step] == int(times or 1) and _is_first(step):
            os.kill(os.getpid(), signal.SIGKILL)


def _is_first(step: str) -> bool:
    folder = os.environ.get(ONCE)
    if folder is None:
        return True
    try:
        (Path(folder) / step.replace("/", "_")).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
