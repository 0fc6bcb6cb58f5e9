"""Identity leaks: answers that say who wrote them, so that a judge may favour its own kind.

A leak is one of three things. *self*: the answer speaks of its author ("I am ChatGPT", "As
Claude,", "a language model trained by OpenAI"). *name*: it names a model or the maker of one.
*model*: it holds a value of its pair's model columns. A name that the question speaks of too is a
matter of the topic and no leak, unless the answer says it of itself. Only distinctive names count
by themselves: Claude may be a painter, and a llama an animal, so those need a version or a phrase.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

import polars as pl

KINDS: Final = ("self", "name", "model")
"""What a leak can be; each leak is written as its kind and the name it tells."""
LEAK_COLUMNS: Final = ("leaks_a", "leaks_b")
"""The leaks of both answers of a pair, joined by `SEPARATOR`; null where there are none."""
SEPARATOR: Final = "; "

_VENDORS: Final = {
    "openai": "gpt",
    "anthropic": "claude",
    "google deepmind": "gemini",
    "deepmind": "gemini",
    "google": "gemini",
    "meta ai": "llama",
    "meta": "llama",
    "mistral ai": "mistral",
    "mistral": "mistral",
    "alibaba cloud": "qwen",
    "alibaba": "qwen",
    "deepseek": "deepseek",
    "xai": "grok",
    "microsoft": "phi",
    "amazon": "nova",
    "cohere": "command",
    "nvidia": "nemotron",
    "ibm": "granite",
    "moonshot ai": "kimi",
    "zhipu ai": "glm",
    "lmsys": "vicuna",
    "ai21 labs": "jamba",
    "ai21": "jamba",
    "baidu": "ernie",
    "tencent": "hunyuan",
    "eleutherai": "eleuther",
    "hugging face": "hugging face",
    "stability ai": "stablelm",
}
"""Makers of models, longer names first where one begins another, and the family each stands for."""
_PERSONAS: Final = {
    "chatgpt": "gpt",
    "gpt": "gpt",
    "copilot": "gpt",
    "claude": "claude",
    "gemini": "gemini",
    "gemma": "gemini",
    "bard": "gemini",
    "palm": "gemini",
    "llama": "llama",
    "mistral": "mistral",
    "mixtral": "mistral",
    "qwen": "qwen",
    "deepseek": "deepseek",
    "grok": "grok",
    "phi": "phi",
    "command": "command",
    "kimi": "kimi",
    "chatglm": "glm",
    "vicuna": "vicuna",
    "alpaca": "alpaca",
    "koala": "koala",
    "tulu": "tulu",
    "olmo": "olmo",
    "falcon": "falcon",
    "ernie": "ernie",
    "internlm": "internlm",
    "wizardlm": "wizardlm",
    "open assistant": "open assistant",
}
"""Names that models go by, many of them words with another meaning."""
_DISTINCT: Final = (
    r"chat ?gpt",
    r"gpt[ -]?[2-9](?:\.\d|o)?(?:-(?:turbo|mini|nano|\d+))*",
    r"text-davinci-\d+",
    r"openai",
    r"anthropic",
    r"claude[ -](?:instant|opus|sonnet|haiku|fable|v?\d[\d.]*)",
    r"gemini[ -](?:pro|ultra|flash|nano|\d[\d.]*)",
    r"gemma[ -]?\d[\d.]*",
    r"google bard",
    r"deepmind",
    r"(?:code ?)?llama[ -]?\d[\d.]*",
    r"meta ai",
    r"mistral(?: ?ai|[ -](?:\d+b|tiny|small|medium|large))",
    r"mixtral",
    r"qwen",
    r"deepseek",
    r"grok[ -]?\d",
    r"phi-\d",
    r"command[ -]r(?:\+|\b)",
    r"moonshot ai",
    r"chatglm",
    r"vicuna[ -]?\d+b",
    r"lmsys",
    r"wizardlm",
    r"internlm",
    r"open ?assistant",
)
"""Names that hardly mean anything else."""


def _either(words: Iterable[str]) -> str:
    return "|".join(word.replace(" ", "[ -]?") for word in words)


_B: Final = r"(?-u:\b)"
"""Boundaries and letters are those of ASCII: with Unicode's the scan takes twenty times as long."""
_SELF: Final = (
    rf"{_B}(?:(?:i am|i['’]m|my name is|call me)\s+(?:an? |the )?"  # noqa: RUF001 - as people type
    rf"(?:{_either(_PERSONAS)}){_B}"
    rf"|as (?:an? )?(?:{_either(_PERSONAS)})(?:[ -]?\d[\d.]*)?,"
    rf"|(?:i am|i['’]m|i was|as an? (?:ai|large|language)|language model|ai assistant|chatbot)"  # noqa: RUF001
    rf"{_B}[^.\n]{{0,60}}(?:made|built|created|developed|trained|designed)"
    rf"\s(?:[^.\n]{{0,30}}\s)?by\s(?:[^.,\n]{{0,30}}\s)?(?:{_either(_VENDORS)}){_B})"
)
_NAME: Final = rf"{_B}(?:{'|'.join(_DISTINCT)})"
_FOUND: Final = (f"(?i:{_SELF})", f"(?i-u:{_NAME})")
_SMALL: Final = f"(?-u:{_NAME})"
"""The names in ASCII text of small letters."""

_TELLING: Final = re.compile(r"[^\W\d_].*[0-9._/:-]|[0-9._/:-].*[^\W\d_]")
_LEAST_VALUE = 3
_VALUES_AT_ONCE = 200
_SQUEEZED = re.compile(r"[\s-]+")


def find_leaks(pairs: pl.DataFrame) -> list[pl.Series]:
    """Find the leaks of both answers of each pair: `LEAK_COLUMNS`.

    Parameters
    ----------
    pairs
        question, answer_a, answer_b, model_a, model_b; nulls hold nothing.
    """
    patterns = [*_FOUND, *_value_patterns(pairs)]
    return [
        _leaks_of(pairs, side, column, patterns)
        for side, column in zip("ab", LEAK_COLUMNS, strict=True)
    ]


def _leaks_of(pairs: pl.DataFrame, side: str, column: str, patterns: Sequence[str]) -> pl.Series:
    texts = pairs.select(text=f"answer_{side}")
    places = _candidates(texts["text"], patterns)
    few = pairs[places].select(
        "question", "model_a", "model_b", pl.col(f"answer_{side}").alias("answer")
    )
    found = few.select(
        pl.col("answer").str.extract_all(pattern).alias(pattern) for pattern in _FOUND
    )
    told: list[str | None] = [None] * pairs.height
    for place, (said, named), (question, *models, answer) in zip(
        places, found.iter_rows(), few.iter_rows(), strict=True
    ):
        asked = _squeeze(question or "")
        leaks = _told(said, named, asked) | _own(answer, models, asked)
        told[place] = SEPARATOR.join(sorted(leaks)) or None
    return pl.Series(column, told, dtype=pl.String)


def _candidates(texts: pl.Series, patterns: Sequence[str]) -> pl.Series:
    """Find the texts in which a pattern is found: only these are taken apart, most hold nothing.

    Names are found twice as fast in small letters, which only ASCII is cheaply put in.
    """
    plain = (texts.str.len_bytes() == texts.str.len_chars()).fill_null(value=True)
    rows = pl.DataFrame({"text": texts}).with_row_index("row")
    text = pl.col("text")
    others = [text.str.contains(pattern) for pattern in patterns if pattern != _FOUND[1]]
    found = [
        rows.filter(which).filter(pl.any_horizontal(*others, names).fill_null(value=False))["row"]
        for which, names in (
            (plain, text.str.to_lowercase().str.contains(_SMALL)),
            (~plain, text.str.contains(_FOUND[1])),
        )
    ]
    return pl.concat(found).sort()


def leaks_of_text(text: str, values: Iterable[str] = ()) -> list[str]:
    """Name what a text that goes to every call says, such as a rubric."""
    patterns = [*_FOUND, *_patterns_of(sorted({v for v in values if is_telling(v)}))]
    frame = pl.DataFrame({"text": [text]})
    found = frame.select(
        pl.col("text").str.extract_all(pattern).alias(pattern) for pattern in patterns
    )
    return sorted({_plain(match) for matches in found.row(0) for match in matches})


def family_of_leak(leak: str) -> str:
    """Name the family that a leak speaks of, in the words of `judgebias.families`; "" = unknown."""
    kind, _, name = leak.partition(" ")
    return "" if kind == "model" else _family(name)


def is_telling(value: str) -> bool:
    """Tell a model's name from a label such as `base`, which an answer may hold by chance."""
    if len(value) < _LEAST_VALUE:
        return False
    return bool(_TELLING.search(value)) or _squeeze(value) in map(_squeeze, _PERSONAS)


def _value_patterns(pairs: pl.DataFrame) -> list[str]:
    values = pl.concat([pairs["model_a"], pairs["model_b"]]).drop_nulls().unique().to_list()
    return _patterns_of(sorted(value for value in values if is_telling(value)))


def _patterns_of(values: Sequence[str]) -> list[str]:
    parts = [values[n : n + _VALUES_AT_ONCE] for n in range(0, len(values), _VALUES_AT_ONCE)]
    return [f"(?i{'-u' * all(map(str.isascii, part))}:{_bounded(part)})" for part in parts]


def _bounded(values: Iterable[str]) -> str:
    # A value may begin or end with a mark, where no word has its boundary.
    return "|".join(f"{_edge(v[0])}{_escaped(v)}{_edge(v[-1])}" for v in values)


def _edge(character: str) -> str:
    return _B if character.isascii() and character.isalnum() else ""


def _escaped(value: str) -> str:
    # Not re.escape: it escapes blanks and more, which Rust's engine does not take.
    return re.sub(r"([\\.+*?()|\[\]{}^$#&~-])", r"\\\1", value)


def _told(said: Sequence[str], named: Sequence[str], asked: str) -> set[str]:
    """Name what the two patterns found in an answer; the question is squeezed already."""
    themselves = {_plain(match) for match in said}
    known = asked + "".join(map(_squeeze, themselves))
    others = {name for name in map(_plain, named) if _squeeze(name) not in known}
    return {f"self {name}" for name in themselves} | {f"name {name}" for name in others}


def _own(answer: str, models: Sequence[str | None], asked: str) -> set[str]:
    """Find the values of the pair's own model columns, each by itself: gpt-4 is in gpt-4-turbo."""
    values = {model for model in models if model and is_telling(model)}
    return {
        f"model {value.lower()}"
        for value in values
        if _squeeze(value) not in asked and _whole(value).search(answer)
    }


@lru_cache(maxsize=4096)
def _whole(value: str) -> re.Pattern[str]:
    return re.compile(_python(_bounded([value])), re.IGNORECASE | re.ASCII)


@lru_cache(maxsize=4096)
def _says_it_of_itself(match: str) -> bool:
    return re.fullmatch(_python(_SELF), match, re.IGNORECASE) is not None


@lru_cache(maxsize=4096)
def _plain(match: str) -> str:
    """Cut the name out of what was found, in lower case."""
    if not _says_it_of_itself(match):
        return _SQUEEZED.sub(" ", match.lower()).strip()
    known = _either(_VENDORS) if re.search(r"\bby\s", match, re.IGNORECASE) else _either(_PERSONAS)
    names = re.findall(rf"\b(?:{known})\b", match.lower())
    return _SQUEEZED.sub(" ", names[-1]) if names else match.lower()


@lru_cache(maxsize=4096)
def _family(name: str) -> str:
    known = {_squeeze(word): family for word, family in (_VENDORS | _PERSONAS).items()}
    squeezed = _squeeze(name).removeprefix("code")
    fits = [word for word in known if squeezed.startswith(word)]
    if squeezed.startswith("textdavinci"):
        return "gpt"
    return known[max(fits, key=len)] if fits else ""


def _squeeze(text: str) -> str:
    return _SQUEEZED.sub("", text.lower())


def _python(pattern: str) -> str:
    return pattern.replace(_B, r"\b")
