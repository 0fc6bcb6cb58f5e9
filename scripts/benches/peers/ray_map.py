"""Ray Data by hand: `map_batches` with an async class over the SDK, written as JSON.

Run as `python -m scripts.benches.peers.ray_map URL PROMPTS OUT`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import ray
import ray.data
from openai import AsyncOpenAI

from scripts.benches.peers.loop import ask
from scripts.benches.peers.work import IN_FLIGHT, KEY, Judged, Prompt

WORKERS = 2
BATCH = 64
BLOCK = 256
"""A task runs a few batches of its block at once, so one block of everything would be slow."""

Batch = dict[str, Any]


class Judge:
    """An actor with one client and its share of the calls in flight."""

    def __init__(self, url: str) -> None:
        self._client = AsyncOpenAI(api_key=KEY, base_url=url)
        self._free = asyncio.Semaphore(IN_FLIGHT // WORKERS)

    async def __call__(self, batch: Batch) -> AsyncIterator[Batch]:
        """Ask a batch at once, as far as the semaphore allows."""
        columns = (batch[name].tolist() for name in ("id", "system", "user"))
        prompts = [
            Prompt(id=name, system=system, user=user)
            for name, system, user in zip(*columns, strict=True)
        ]
        rows = await asyncio.gather(*(self._one(prompt) for prompt in prompts))
        names = ("id", "verdict", "error")
        yield {name: np.array([row[name] for row in rows], dtype=object) for name in names}

    async def _one(self, prompt: Prompt) -> Judged:
        async with self._free:
            return await ask(self._client, prompt)


def main() -> None:
    """Read, judge, write."""
    url, prompts, out = sys.argv[1:]
    # Without the dashboard Ray starts faster and takes less memory.
    ray.init(include_dashboard=False)
    (
        ray.data.read_json(prompts)
        .repartition(target_num_rows_per_block=BLOCK)
        .map_batches(
            Judge,
            fn_constructor_args=(url,),
            batch_size=BATCH,
            compute=ray.data.ActorPoolStrategy(size=WORKERS),
            # Whole cores would leave none to read and write with.
            num_cpus=0.5,
        )
        .write_json(out)
    )


if __name__ == "__main__":
    main()
