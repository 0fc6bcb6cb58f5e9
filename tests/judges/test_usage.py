"""Tokens by each provider's definition; unknown is never 0."""

from __future__ import annotations

import pytest

from judgebias.config import Price
from judgebias.judges.usage import anthropic_usage, cost_usd, openai_usage, silently_cut, total
from judgebias.replies import UNKNOWN_USAGE, Usage

PRICE = Price(input=2.0, output=10.0, cached_input=0.5)


def test_openai_counts_cached_tokens_as_input() -> None:
    usage = openai_usage(
        {
            "usage": {
                "prompt_tokens": 1000,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 400},
                "completion_tokens_details": {"reasoning_tokens": 30},
            }
        }
    )
    assert usage == Usage(
        input_tokens=1000, output_tokens=50, cached_tokens=400, reasoning_tokens=30
    )
    assert cost_usd(usage, PRICE) == pytest.approx((600 * 2 + 400 * 0.5 + 50 * 10) / 1e6)


def test_anthropic_leaves_cached_tokens_out() -> None:
    usage = anthropic_usage(
        {
            "usage": {
                "input_tokens": 500,
                "cache_read_input_tokens": 400,
                "cache_creation_input_tokens": 100,
                "output_tokens": 50,
            }
        }
    )
    assert usage.input_tokens == 1000
    assert cost_usd(usage, PRICE) == pytest.approx((600 * 2 + 400 * 0.5 + 50 * 10) / 1e6)


@pytest.mark.parametrize("body", [None, {}, {"usage": None}, {"usage": []}, {"usage": {"x": 1}}])
def test_p_35_missing_usage_is_unknown(body: object) -> None:
    assert openai_usage(body) == UNKNOWN_USAGE == anthropic_usage(body)
    assert cost_usd(UNKNOWN_USAGE, PRICE) is None


@pytest.mark.parametrize("count", [-1, True, 1.5, "7"])
def test_p_35_a_count_that_is_none_is_unknown(count: object) -> None:
    assert openai_usage({"usage": {"prompt_tokens": count}}).input_tokens is None


def test_p_35_an_unknown_price_is_unknown() -> None:
    assert cost_usd(Usage(input_tokens=1, output_tokens=1), None) is None


def test_cached_tokens_without_a_price_cost_as_input() -> None:
    usage = Usage(input_tokens=100, output_tokens=0, cached_tokens=100)
    assert cost_usd(usage, Price(input=2.0, output=1.0)) == pytest.approx(200 / 1e6)


def test_sums_know_what_all_know() -> None:
    one = Usage(input_tokens=1, output_tokens=2, cached_tokens=3)
    assert total([one, one]) == Usage(input_tokens=2, output_tokens=4, cached_tokens=6)
    assert total([one, UNKNOWN_USAGE]) == UNKNOWN_USAGE
    assert total([]) == UNKNOWN_USAGE


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        pytest.param("a word and " * 2000, 2048, True, id="P-34-cut-to-2048"),
        pytest.param("a word and " * 2000, 5500, False, id="honest-english"),
        pytest.param("漢字仮名" * 2000, 6000, False, id="honest-cjk"),
        pytest.param("слово и дело " * 1000, 3300, False, id="honest-cyrillic"),
        pytest.param(" " * 50_000, 700, False, id="runs-compress"),
        pytest.param("a word and " * 2000, None, False, id="unknown"),
        pytest.param("short", 0, False, id="too-short-to-tell"),
    ],
)
def test_a_prompt_that_was_cut_without_a_word(
    text: str, tokens: int | None, expected: bool
) -> None:
    assert silently_cut(text, tokens) is expected
