"""A pool of threads over the sync SDK, as FastChat judges: patient, and a file opened per answer.

Every call is tried 16 times with 10 s between the tries, on top of the SDK's own two retries, and
each answer is appended to a JSONL.

Run as `python -m scripts.benches.peers.threads URL PROMPTS OUT`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from openai import OpenAI, OpenAIError

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

TRIES = 16
PAUSE_S = 10.0


def ask(client: OpenAI, prompt: Prompt) -> Judged:
    """Ask until there is an answer or the tries are used up."""
    said = "never asked"
    for _ in range(TRIES):
        try:
            reply = client.chat.completions.create(
                model=MODEL,
                max_tokens=MAX_TOKENS,
                messages=messages(prompt["system"], prompt["user"]),
            )
        except OpenAIError as error:
            said = str(error)
            time.sleep(PAUSE_S)
        else:
            verdict = verdict_of(reply.choices[0].message.content)
            return Judged(id=prompt["id"], verdict=verdict, error=None)
    return Judged(id=prompt["id"], verdict=None, error=said)


def main() -> None:
    """Judge, or go on where the file ends."""
    url, prompts, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    done, lock = answered(out), threading.Lock()
    missing = [prompt for prompt in read_prompts(prompts) if prompt["id"] not in done]
    with OpenAI(api_key=KEY, base_url=url) as client, ThreadPoolExecutor(IN_FLIGHT) as pool:

        def one(prompt: Prompt) -> None:
            row = ask(client, prompt)
            with lock, out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

        list(pool.map(one, missing))


if __name__ == "__main__":
    main()
