"""Pairs, run files and finished runs for the benchmarks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgebias.config.runfile import check_run
from judgebias.pipeline.prepare import prepared
from judgebias.pipeline.run import ask_missing
from judgebias.progress import Progress, RunEnd

FILLER = "The train leaves at noon and the bridge is closed on Sundays. "


def write_pairs(path: Path, count: int, *, size: int = 600) -> Path:
    """Write pairs whose two answers have about `size` characters each, no two alike."""
    filler = FILLER * (1 + size // len(FILLER))
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = {
                "pair_id": f"{number:07d}",
                "question": f"Which way is the shortest to place {number // 2}?",
                "answer_a": f"{number} a {filler[:size]}",
                "answer_b": f"{filler[:size]} b {number}",
            }
            file.write(json.dumps(row) + "\n")
    return path


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """A run that ended."""

    end: RunEnd
    seconds: float
    progress: tuple[tuple[float, Progress], ...]
    """What was seen on the way, with its time."""


def asked(
    folder: Path,
    judges: Sequence[Mapping[str, Any]],
    pairs: int,
    *,
    workers: int = 1,
    block: int = 0,
    on_progress: Callable[[Progress], None] = lambda _: None,
    **run: Any,
) -> Finished:
    """Ask all calls of a run on the Ray that is connected, as the command does."""
    folder.mkdir(parents=True)
    write_pairs(folder / "pairs.jsonl", pairs)
    config = check_run(
        {
            "pairs": "pairs.jsonl",
            "out": "out",
            "judges": list(judges),
            "engine": {"workers": workers, "pairs_per_block": block},
            **run,
        },
        where="the benchmark",
    )
    seen: list[tuple[float, Progress]] = []

    def watch(progress: Progress) -> None:
        seen.append((time.monotonic(), progress))
        on_progress(progress)

    with prepared(config, base=folder) as ready:
        started = time.monotonic()
        end = ask_missing(ready, watch)
        seconds = time.monotonic() - started
    return Finished(end=end, seconds=seconds, progress=tuple(seen))
