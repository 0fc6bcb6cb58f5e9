"""What calls cost: tokens by each provider's own definition, dollars by the configured price.

Unknown stays unknown. A request that failed before anything could be billed adds nothing; one that
may have been billed without saying so makes the whole call's usage unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from judgebias.config import Price
from judgebias.judges.body import count, dig
from judgebias.replies import UNKNOWN_USAGE, Usage

_RUN = re.compile(r"(.)\1{3,}", re.DOTALL)
_CHARACTERS_PER_TOKEN = 8
_SHORT = 4000


def openai_usage(body: object) -> Usage:
    """Read Chat Completions usage, whose input count includes what came from a cache."""
    usage = dig(body, "usage")
    return Usage(
        input_tokens=count(dig(usage, "prompt_tokens")),
        output_tokens=count(dig(usage, "completion_tokens")),
        cached_tokens=count(dig(usage, "prompt_tokens_details", "cached_tokens")),
        reasoning_tokens=count(dig(usage, "completion_tokens_details", "reasoning_tokens")),
    )


def anthropic_usage(body: object) -> Usage:
    """Read Messages usage, whose input count leaves out what was read from or put in a cache."""
    usage = dig(body, "usage")
    fresh = count(dig(usage, "input_tokens"))
    cached = count(dig(usage, "cache_read_input_tokens"))
    created = count(dig(usage, "cache_creation_input_tokens"))
    return Usage(
        input_tokens=None if fresh is None else fresh + (cached or 0) + (created or 0),
        output_tokens=count(dig(usage, "output_tokens")),
        cached_tokens=cached,
        reasoning_tokens=count(dig(usage, "output_tokens_details", "thinking_tokens")),
    )


def total(usages: Iterable[Usage]) -> Usage:
    """Add usages field by field; what one of them does not know, the sum does not know."""
    found = list(usages)
    if not found:
        return UNKNOWN_USAGE
    return Usage(
        input_tokens=_sum(usage.input_tokens for usage in found),
        output_tokens=_sum(usage.output_tokens for usage in found),
        cached_tokens=_sum(usage.cached_tokens for usage in found),
        reasoning_tokens=_sum(usage.reasoning_tokens for usage in found),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    result = 0
    for number in numbers:
        if number is None:
            return None
        result += number
    return result


def cost_usd(usage: Usage, price: Price | None) -> float | None:
    """Price a call; None where the price or the tokens are unknown.

    Where the server does not say what came from its cache, everything is priced as input, which
    is never too little. Surcharges for writing a cache are not in the price and not in the cost.
    """
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    cached_price = price.input if price.cached_input is None else price.cached_input
    return (
        (usage.input_tokens - cached) * price.input
        + cached * cached_price
        + usage.output_tokens * price.output
    ) / 1e6


def estimate_tokens(characters: int) -> int:
    """Estimate the tokens of a prompt before it is sent: four characters each."""
    return characters // 4 + 1


def silently_cut(text: str, input_tokens: int | None) -> bool:
    """Tell whether the server cannot have read the whole prompt.

    Some servers cut a prompt that does not fit and answer all the same; the count of tokens is
    the only trace. No tokenizer averages eight characters a token on a text of any language, once
    runs of one character, which do compress, are shortened. So the rule raises no false alarm for
    an honest count; it misses a cut of less than about half of an English prompt.
    """
    if input_tokens is None or len(text) < _SHORT:
        return False
    if input_tokens * _CHARACTERS_PER_TOKEN >= len(text):
        return False
    return input_tokens * _CHARACTERS_PER_TOKEN < len(_RUN.sub(r"\1\1\1", text))
