"""What the ways by hand have in common: prompts from a file, the verdict in a reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

from openai.types.chat import ChatCompletionMessageParam

from judgebias.calls import Call, Pair
from judgebias.prompts import VerdictForm, load_template
from judgebias.verdicts import Order

KEY = "sk-loopback-0123456789abcdefghij"
MODEL = "bench"
MAX_TOKENS = 64
IN_FLIGHT = 64


class Prompt(TypedDict):
    """One line of the prompts file."""

    id: str
    system: str
    user: str


class Judged(TypedDict):
    """One line of a result: a verdict, or why there is none."""

    id: str
    verdict: str | None
    error: str | None


def write_prompts(pairs: Path, prompts: Path) -> int:
    """Render both orders of every pair as our own judge would send them; returns their number."""
    template = load_template("pairwise")
    written = 0
    with pairs.open(encoding="utf-8") as lines, prompts.open("w", encoding="utf-8") as file:
        for line in lines:
            pair = Pair(**json.loads(line))
            for order in Order:
                call = Call(pair=pair, order=order, digest=pair.digest())
                prompt = template.render(call, VerdictForm.TEXT)
                made = Prompt(id=f"{pair.pair_id}-{order}", system=prompt.system, user=prompt.user)
                file.write(json.dumps(made) + "\n")
                written += 1
    return written


def read_prompts(prompts: Path) -> Iterator[Prompt]:
    """Read the prompts file."""
    with prompts.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def messages(system: str, user: str) -> list[ChatCompletionMessageParam]:
    """Make the messages of a request."""
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def verdict_of(text: str | None) -> str | None:
    """Read the word after the last `VERDICT:`; None where there is none."""
    _, found, word = (text or "").rpartition("VERDICT:")
    return word.strip() if found else None


def answered(out: Path) -> set[str]:
    """List the calls that have a verdict in a JSONL of results, so that a restart skips them."""
    if not out.exists():
        return set()
    with out.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {row["id"] for row in rows if row["verdict"] is not None}
