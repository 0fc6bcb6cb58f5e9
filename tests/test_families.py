from __future__ import annotations

import pytest

from judgebias.families import BUILT_IN, Families, own_family_warnings


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-4o-2024-05-13", "gpt"),
        ("gpt4", "gpt"),
        ("GPT-4/concise", "gpt"),
        ("o1-mini", "gpt"),
        ("openai/gpt-4.1", "gpt"),
        ("gpt-neox-20b", "eleuther"),
        ("claude-3-haiku-20240307", "claude"),
        ("us.anthropic.claude-sonnet", "claude"),
        ("bard", "gemini"),
        ("meta-llama/Llama-3.1-8B", "llama"),
        ("vicuna-13b-v1.3", "vicuna"),
        ("Qwen2.5-7B-Instruct", "qwen"),
        ("my-own-model", "my-own-model"),
        ("oscar", "oscar"),
    ],
)
def test_a_name_tells_the_family(model: str, family: str) -> None:
    assert BUILT_IN.family(model) == family


def test_the_run_file_goes_first_and_its_first_glob_counts() -> None:
    families = Families.of({"gpt-4-tuned*": "house", "gpt-4*": "four"})
    assert families.family("gpt-4-tuned-2") == "house"
    assert families.family("gpt-4o") == "four"
    assert families.family("gpt-3.5-turbo") == "gpt"


def test_a_family_that_a_judge_names_stands_for_its_models() -> None:
    families = Families.of(named=["house", "house-b"])
    assert families.family("house-1") == "house"
    assert families.family("house-b2") == "house-b"
    assert BUILT_IN.family("house-1") == "house-1"


def test_a_judge_beside_its_own_family_is_named() -> None:
    judges = {"sonnet": "claude", "four": "gpt", "measure": "measure"}
    lines = own_family_warnings(judges, ["gpt-4o", "gpt-3.5-turbo", "gpt-4o", "bard"])
    assert len(lines) == 1
    assert "judge four is of the family gpt" in lines[0]
    assert "(gpt-3.5-turbo, gpt-4o)" in lines[0]
    assert own_family_warnings(judges, ["bard"]) == []
    assert own_family_warnings(judges, []) == []
