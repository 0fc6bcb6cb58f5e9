"""Answers that tell who wrote them are found; words that only look like it are not."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgebias.families import BUILT_IN
from judgebias.leaks import LEAK_COLUMNS, family_of_leak, find_leaks, is_telling, leaks_of_text

COLUMNS = ("question", "answer_a", "answer_b", "model_a", "model_b")


def leaks(*rows: dict[str, Any]) -> list[tuple[str | None, ...]]:
    """The leaks of both answers of each row."""
    plain: dict[str, Any] = {**dict.fromkeys(COLUMNS), "question": "Why?", "answer_b": "So."}
    table = [[{**plain, **row}[name] for name in COLUMNS] for row in rows]
    frame = pl.DataFrame(table, dict.fromkeys(COLUMNS, pl.String), orient="row")
    return list(zip(*(column.to_list() for column in find_leaks(frame)), strict=True))


def leak(answer: str | None, **row: Any) -> str | None:
    ((first, second),) = leaks({"answer_a": answer, **row})
    assert second is None
    return first


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("I am ChatGPT, and I cannot.", "self chatgpt"),
        ("I'm Claude.", "self claude"),
        ("I’m Gemini!", "self gemini"),  # noqa: RUF001 - as people type
        ("My name is Vicuna, a chat bot.", "self vicuna"),
        ("As Claude, I would rather not.", "self claude"),
        ("As a language model trained by OpenAI, I have no opinion.", "self openai"),
        (
            "I am a large model, made and tuned with care by Google DeepMind.",
            "self google deepmind",
        ),
        ("As an AI assistant created by Anthropic I", "self anthropic"),
        ("AS AN AI MODEL DEVELOPED BY MISTRAL AI", "self mistral ai"),
        ("It is better than GPT-4o.", "name gpt 4o"),
        ("Ask Chat GPT or chatgpt.", "name chat gpt; name chatgpt"),
        ("OpenAI and Anthropic said so.", "name anthropic; name openai"),
        ("Llama 3 and Claude 3.5 agree.", "name claude 3.5; name llama 3"),
        ("我是由OpenAI训练的", "name openai"),
    ],
)
def test_what_tells_who_wrote_it(answer: str, expected: str) -> None:
    assert leak(answer) == expected


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "",
        "As an AI language model, I have no opinion.",
        "Claude Monet painted water lilies.",
        "As Claude Debussy grew older he travelled.",
        "The llama is a relative of the alpaca; a falcon is a bird.",
        "Gemini is a sign of the zodiac, and a bard sings.",
        "Android was developed by Google, Windows by Microsoft.",
        "Metadata is created by a meta program.",
        "The phi-coefficient, and the command rm.",
        "A mistral blew; he could grok it.",
        "gpt is a partition table.",
    ],
)
def test_what_tells_nothing(answer: str | None) -> None:
    assert leak(answer) is None


def test_a_name_of_the_questions_topic_is_no_leak() -> None:
    about = {"question": "What did Open AI release after GPT 4?"}
    assert leak("OpenAI released GPT-4o after GPT-4.", **about) == "name gpt 4o"
    assert leak("I am GPT, made to help.", **about) == "self gpt"


@pytest.mark.parametrize(
    ("models", "answer", "expected"),
    [
        (("tuned-7b", "base"), "tuned-7b says yes, at base.", "model tuned-7b"),
        (("base", "Tuned-7B"), "Even TUNED-7b agrees.", "model tuned-7b"),
        (("gpt-4", None), "gpt-4-turbo is another", "model gpt-4; name gpt 4 turbo"),
        (("tuned-7b", None), "detuned-7b and tuned-7bx", None),
        (("alpaca", "human"), "An alpaca and a human.", "model alpaca"),
        (("new prompt", "old prompt"), "The new prompt.", None),
        (("a+(2", "x[1]"), "Take a+(2 or x[1].", "model a+(2; model x[1]"),
        (("模型-1", None), "模型-1 说", "model 模型-1"),
        (("A1", None), "Vitamin A1", None),
    ],
)
def test_the_values_of_the_model_columns(
    models: tuple[str | None, str | None], answer: str, expected: str | None
) -> None:
    assert leak(answer, model_a=models[0], model_b=models[1]) == expected


def test_another_pairs_model_is_not_this_ones() -> None:
    rows = [
        {"answer_a": "tuned-7b", "model_a": "tuned-7b"},
        {"answer_a": "tuned-7b", "model_a": "tuned-13b"},
        {"answer_a": "tuned-7b", "model_a": "tuned-7b-long"},
    ]
    assert [a for a, _ in leaks(*rows)] == ["model tuned-7b", None, None]
    # However the rows are cut into chunks.
    assert [leaks(row)[0][0] for row in rows] == ["model tuned-7b", None, None]


def test_many_model_names_are_all_looked_for() -> None:
    rows = [{"answer_a": f"by model-{n}x", "model_b": f"model-{n}x"} for n in range(450)]
    assert [a for a, _ in leaks(*rows)] == [f"model model-{n}x" for n in range(450)]


TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.sampled_from(["I am ChatGPT", "by OpenAI", "tuned-7b", "GPT-4 ", "as claude,", "{}[]()"]),
)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS, TEXTS, TEXTS), max_size=5))
@pytest.mark.slow
def test_a_row_is_told_whatever_rows_stand_beside_it(rows: list[tuple[str, ...]]) -> None:
    frame = pl.DataFrame(rows, dict.fromkeys(COLUMNS, pl.String), orient="row")
    together = find_leaks(frame)
    assert [column.name for column in together] == list(LEAK_COLUMNS)
    for place in range(frame.height):
        alone = find_leaks(frame[place])
        for one, all_ in zip(alone, together, strict=True):
            assert one.to_list() == [all_[place]]


@pytest.mark.parametrize(
    ("told", "family"),
    [
        ("self chatgpt", "gpt"),
        ("name gpt 4o mini", "gpt"),
        ("name text davinci 003", "gpt"),
        ("self openai", "gpt"),
        ("name claude 3.5", "claude"),
        ("self anthropic", "claude"),
        ("name gemma 2", "gemini"),
        ("name codellama 7", "llama"),
        ("self mistral ai", "mistral"),
        ("model gpt-4", ""),
    ],
)
def test_the_family_of_a_leak_is_the_one_that_judges_have(told: str, family: str) -> None:
    assert family_of_leak(told) == family
    if family:
        assert family in {known for _, known in BUILT_IN.globs}


@pytest.mark.parametrize(
    ("value", "telling"),
    [("gpt-4", True), ("Vicuna", True), ("org/model", True), ("base", False), ("A", False)],
)
def test_labels_are_not_names(value: str, *, telling: bool) -> None:
    assert is_telling(value) is telling


def test_a_rubric_that_names_a_model() -> None:
    rubric = "GPT-4's answer is the measure; mind what tuned-7b does."
    assert leaks_of_text(rubric, ["tuned-7b", "base"]) == ["gpt 4", "tuned 7b"]
    assert leaks_of_text("Correct and short; base it on facts.", ["base"]) == []
