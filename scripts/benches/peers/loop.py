"""The plain asyncio loop: one gather, one semaphore, a JSONL that a restart reads first.

Run as `python -m scripts.benches.peers.loop URL PROMPTS OUT`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TextIO

from openai import AsyncOpenAI, OpenAIError

from scripts.benches.peers.work import (
    IN_FLIGHT,
    KEY,
    MAX_TOKENS,
    MODEL,
    Judged,
    Prompt,
    answered,
    messages,
    read_prompts,
    verdict_of,
)


async def ask(client: AsyncOpenAI, prompt: Prompt) -> Judged:
    """Ask with the SDK's own retries; an error becomes a row."""
    try:
        reply = await client.chat.completions.create(
            model=MODEL,
            max_tokens=MAX_TOKENS,
            messages=messages(prompt["system"], prompt["user"]),
        )
    except OpenAIError as error:
        return Judged(id=prompt["id"], verdict=None, error=str(error))
    return Judged(id=prompt["id"], verdict=verdict_of(reply.choices[0].message.content), error=None)


async def judge(url: str, prompts: Path, out: TextIO, done: set[str]) -> None:
    """Ask what is not done, so many at once, and write each row as it comes."""
    free = asyncio.Semaphore(IN_FLIGHT)
    async with AsyncOpenAI(api_key=KEY, base_url=url) as client:

        async def one(prompt: Prompt) -> None:
            async with free:
                row = await ask(client, prompt)
            out.write(json.dumps(row) + "\n")
            # Without this a kill would cost a whole buffer of answers.
            out.flush()

        missing = (prompt for prompt in read_prompts(prompts) if prompt["id"] not in done)
        await asyncio.gather(*(one(prompt) for prompt in missing))


def main() -> None:
    """Judge, or go on where the file ends."""
    url, prompts, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    done = answered(out)
    with out.open("a", encoding="utf-8") as file:
        asyncio.run(judge(url, prompts, file, done))


if __name__ == "__main__":
    main()
