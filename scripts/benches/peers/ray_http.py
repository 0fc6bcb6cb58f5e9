"""Ray Data's own HTTP processor, set up as its documentation shows.

Run as `python -m scripts.benches.peers.ray_http URL PROMPTS OUT`.
"""

from __future__ import annotations

import sys
from typing import Any

import ray
import ray.data
from ray.data.llm import HttpRequestProcessorConfig, build_processor

from scripts.benches.peers.work import IN_FLIGHT, KEY, MAX_TOKENS, MODEL, messages, verdict_of

BLOCK = 256
Row = dict[str, Any]


def request(row: Row) -> Row:
    """Make the payload of a row."""
    said = messages(row["system"], row["user"])
    return {
        "id": row["id"],
        "payload": {"model": MODEL, "max_tokens": MAX_TOKENS, "messages": said},
    }


def judged(row: Row) -> Row:
    """Read the verdict of a row."""
    text = row["http_response"]["choices"][0]["message"]["content"]
    return {"id": row["id"], "verdict": verdict_of(text), "error": None}


def main() -> None:
    """Read, judge, write."""
    url, prompts, out = sys.argv[1:]
    ray.init(include_dashboard=False)
    config = HttpRequestProcessorConfig(
        url=f"{url}/chat/completions",
        headers={"Authorization": f"Bearer {KEY}"},
        # "The number of concurrent requests to send", in the words of its documentation.
        concurrency=IN_FLIGHT,
    )
    processor = build_processor(config, preprocess=request, postprocess=judged)
    blocks = ray.data.read_json(prompts).repartition(target_num_rows_per_block=BLOCK)
    processor(blocks).write_json(out)


if __name__ == "__main__":
    main()
