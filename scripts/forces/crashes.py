"""(b) A kill at each named step between a reply and a table, and the same command again."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebias.journal import JournalReader
from judgebias.journal.frame import Frame
from judgebias.journal.read import OpenSegment, segment_paths
from judgebias.journal.segment import SegmentFile, new_info
from scripts.forces.world import (
    FOREVER,
    Start,
    World,
    calls_of,
    differences,
    doubled,
    leftovers,
    world,
)

PAIRS = 150
SEGMENTS = 70
"""More than are merged."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One named step, and where it is met."""

    at: str
    what: str
    whose: str
    """Which process is killed there."""
    since: str = "nothing"
    """What the run directory holds before: nothing, a finished run, one with many segments, one
    whose journal is damaged."""
    command: str = "run"


WORKER = "worker"
DRIVER = "driver"
STEPS = (
    Step(at="publish:run.json", what="manifest written, not renamed", whose=DRIVER),
    Step(at="lock:taken", what="lock taken over", whose=DRIVER),
    Step(at="form:before_settle*1", what="form found, nobody told", whose=WORKER),
    Step(at="reply:before_record*60", what="reply received, not in the journal", whose=WORKER),
    Step(at="flush:before_write*4", what="frame made, not written", whose=WORKER),
    Step(at="flush:before_fsync*4", what="frame written, not synced", whose=WORKER),
    Step(at="block:before_close*1", what="in the journal, not acknowledged", whose=WORKER),
    Step(at="lease:before_renewal*4", what="lease answered, not taken", whose=WORKER),
    Step(at="form:before_keep", what="form settled, not kept", whose=DRIVER),
    Step(at="publish:calls.parquet", what="calls written", whose=DRIVER, since="finished"),
    Step(
        at="publish:verdicts.parquet",
        what="verdicts written, the panel among them",
        whose=DRIVER,
        since="finished",
    ),
    Step(at="publish:summary.csv", what="summary written", whose=DRIVER, since="finished"),
    Step(at="publish:costs.csv", what="a table written", whose=DRIVER, since="finished"),
    Step(at="publish:rejects.jsonl", what="rejects written", whose=DRIVER, since="finished"),
    Step(at="publish:pairs.parquet", what="index written", whose=DRIVER, since="finished"),
    Step(at="publish:run.json", what="manifest of a resume", whose=DRIVER, since="finished"),
    Step(at="lock:taken", what="lock taken over again", whose=DRIVER, since="finished"),
    Step(at="merge:before_rename", what="segments copied", whose=DRIVER, since="scattered"),
    Step(at="merge:before_delete", what="copy in place", whose=DRIVER, since="scattered"),
    Step(
        at="salvage:before_aside",
        what="damaged segment replaced",
        whose=DRIVER,
        since="damaged",
        command="salvage",
    ),
)


def crash_points(steps: tuple[Step, ...] = STEPS) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Give the table of the steps."""
    with world(PAIRS, rules=FOREVER, latency_s=0.05) as attacked:
        calm = attacked.undisturbed(judges=_judges(attacked))
        rows = [_crashed(attacked, calm, number, step) for number, step in enumerate(steps)]
    yield "a kill at each step", rows


def _crashed(attacked: World, calm: Path, number: int, step: Step) -> dict[str, Any]:
    run = attacked.run_file(f"s{number}", judges=_judges(attacked))
    out = run.with_suffix("")
    _prepare(calm, run, step)
    once = attacked.folder / f"once{number}"
    once.mkdir()
    began, before = time.monotonic(), attacked.server.bill()["billed"]
    environ = {"JUDGEBIAS_CRASH": step.at, "JUDGEBIAS_CRASH_ONCE": str(once)}
    first = attacked.start(run, command=step.command, **environ)
    died = first.wait()
    starts: list[Start] = [first]
    if step.command != "run":
        starts.append(attacked.start(run, command=step.command))
        starts[-1].wait()
    if step.whose == DRIVER or step.command != "run":
        starts.append(attacked.start(run))
    code = starts[-1].wait()
    left = [line for start in starts for line in start.gone()]
    row = {
        "step": step.at,
        "before": step.since,
        "killed": step.whose if any(once.iterdir()) else "NOBODY",
        "exit": code,
        "recorded_twice": doubled(out),
        "tables_that_differ": differences(calm, out),
        "billed": _difference(attacked, before),
        "segments": len(segment_paths(out / "journal")),
        "processes_left": left,
        "files_left": leftovers(out),
        "seconds": time.monotonic() - began,
    }
    as_meant = died == (-signal.SIGKILL if step.whose == DRIVER else 3)
    whole = (row["killed"], code, calls_of(out)[0]) == (step.whose, 3, 4 * PAIRS)
    wrong = ("recorded_twice", "tables_that_differ", "processes_left", "files_left")
    row["holds"] = as_meant and whole and not any(row[name] for name in wrong)
    if not as_meant or not whole:
        row["said"] = f"{died}: {first.last_words()} {starts[-1].last_words()}"
    return row


def _judges(attacked: World) -> list[dict[str, Any]]:
    # A finished run then has nothing to ask, its failures included.
    return [judge | {"max_tries_total": 1} for judge in attacked.judges()]


def _difference(attacked: World, before: object) -> int:
    after = attacked.server.bill()["billed"]
    return after - before if isinstance(after, int) and isinstance(before, int) else -1


def _prepare(calm: Path, run: Path, step: Step) -> None:
    out = run.with_suffix("")
    if step.since == "nothing":
        return
    shutil.copytree(calm, out)
    journal = out / "journal"
    if step.at == "publish:rejects.jsonl":
        (out / "rejects.jsonl").unlink()
    if step.since == "scattered":
        scatter(journal, SEGMENTS)
    if step.since == "damaged":
        path = max(segment_paths(journal), key=lambda path: path.stat().st_size)
        with path.open("r+b") as file:
            file.seek(_middle(path))
            file.write(b"\0\0\0\0\0\0\0\0")


def scatter(journal: Path, count: int) -> None:
    """Divide the rows of a closed journal among so many segments."""
    with JournalReader(journal) as reader:
        batches = list(reader.batches())
        replaced = tuple(reader.count())
    old = segment_paths(journal)
    size = -(-sum(batch.num_rows for batch in batches) // count)
    parts = [
        batch.slice(start, size) for batch in batches for start in range(0, batch.num_rows, size)
    ]
    for number, part in enumerate(parts):
        info = new_info(epoch=1, worker=f"part{number}", replaces=() if number else replaced)
        file = SegmentFile(journal / f"000001-part{number:03d}.seg", info)
        file.write(part)
        file.close()
    for path in old:
        path.unlink()


def _middle(path: Path) -> int:
    """Find a place within a frame that others follow."""
    segment = OpenSegment.open(path)
    frames = [piece for piece in segment.pieces() if isinstance(piece, Frame)]
    segment.close()
    return (frames[0].offset + frames[0].end) // 2
