"""Keys are read where they are used, checked, and shown nowhere."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest

from judgebias.config import WireJudge
from judgebias.errors import ConfigError
from judgebias.judges.secrets import Secret, endpoint, read_key, redact

KEY = "sk-test-0123456789abcdef"


def config(**more: object) -> WireJudge:
    return WireJudge.model_validate({"name": "j", "provider": "openai", "model": "m", **more})


def test_k_07_a_key_is_masked_everywhere() -> None:
    secret = Secret(KEY)
    shown = [repr(secret), str(secret), f"{secret}", f"{secret!r:>20}", str([secret])]
    assert not any(KEY in text for text in shown)
    assert secret.reveal() == KEY
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy])
def test_k_02_a_key_never_leaves_its_process(way: object) -> None:
    assert callable(way)
    with pytest.raises(TypeError, match="never pickled"):
        way(Secret(KEY))
    with pytest.raises(TypeError):
        json.dumps({"key": Secret(KEY)})


@pytest.mark.parametrize(
    ("value", "ok"),
    [
        pytest.param(KEY, True, id="plain"),
        pytest.param(f"  {KEY}\n", True, id="K-04-trailing-newline"),
        pytest.param("", False, id="K-17-empty"),
        pytest.param(" \n", False, id="K-17-blank"),
        pytest.param("sk-tést", False, id="K-16-not-ascii"),
        pytest.param("sk-a\nsk-b", False, id="K-04-two-lines"),
        pytest.param("sk a", False, id="K-04-blank-inside"),
        pytest.param("sk-\x07", False, id="K-16-control"),
    ],
)
def test_reading_a_key(tmp_path: Path, value: str, ok: bool) -> None:
    (tmp_path / "key").write_text(value)
    for made, environ in (
        (config(), {"OPENAI_API_KEY": value}),
        (config(api_key_env="MINE"), {"MINE": value}),
        (config(api_key_file="key"), {}),
    ):
        if ok:
            assert read_key(made, environ, tmp_path).reveal() == KEY
            continue
        with pytest.raises(ConfigError) as caught:
            read_key(made, environ, tmp_path)
        assert value.strip() == "" or value.strip() not in str(caught.value)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        read_key(config(provider="anthropic"), {})
    with pytest.raises(ConfigError, match="cannot read the file 'nowhere'"):
        read_key(config(api_key_file="nowhere"), {})


def test_a_server_of_ones_own_needs_no_key_unless_one_is_named() -> None:
    local = {"base_url": "http://localhost:8000/v1"}
    assert read_key(config(**local), {}).reveal()
    with pytest.raises(ConfigError, match="MINE"):
        read_key(config(**local, api_key_env="MINE"), {})


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        "Authorization: Bearer abc.def-123",
        "b'Bearer odd_key_1'",
        "basic dXNlcjpwYXNz",
        "sk-ant-api03-AbCdEf123",
        "sk-te****cdef",
        "AIza" + "x" * 35,
    ],
)
def test_k_05_what_looks_like_a_key_is_taken_out(text: str) -> None:
    assert "[key]" in redact(text)
    for part in ("abc.def", "odd_key", "dXNl", "AbCdEf", "cdef", "xxxxx", KEY):
        assert part not in redact(text)


def test_k_05_the_key_itself_is_taken_out_whatever_its_shape() -> None:
    secret = Secret("plainword99")
    assert secret.redact("you sent plainword99!") == "you sent [key]!"
    assert secret.conceal("sk-like-thing plainword99") == "sk-like-thing [key]"


def test_words_are_left_alone() -> None:
    text = "the task-force risked it; sketchy; an invalid bearer token, a basic rule, pk"
    assert redact(text) == text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", "https://api.openai.com/v1"),
        ("https://user:pass@host.example:8443/v1/?key=abc#x", "https://host.example:8443/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
    ],
)
def test_k_08_an_address_is_shown_without_secrets(url: str, shown: str) -> None:
    assert endpoint(config(base_url=url)) == shown
