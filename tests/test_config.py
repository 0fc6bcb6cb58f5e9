from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from judgebias.config import RunConfig, fingerprint, identity, load_run_file
from judgebias.config.runfile import check_run
from judgebias.errors import ConfigError

JUDGES: dict[str, dict[str, Any]] = {
    "openai": {"name": "o", "provider": "openai", "model": "m"},
    "anthropic": {"name": "a", "provider": "anthropic", "model": "m"},
    "simulated": {"name": "s", "provider": "simulated"},
    "replay": {"name": "r", "provider": "replay", "path": "verdicts.jsonl"},
    "function": {"name": "f", "provider": "function", "call": "module:name"},
}
FULL = """
pairs = "pairs/*.parquet"
out = "runs/first"
orders = "sampled"
swap_fraction = 0.3
repeats = 2
seed = 5
self_pair = 10
cluster = "pair"
empty = "reject"
on_leak = "skip"
keep_raw = false
columns = { question = "prompt" }

[[judges]]
name = "sonnet"
provider = "anthropic"
model = "a-model"
template = "criteria"
rubric = "Be fair."
criteria = ["Is it true?", "Is it short?"]
api_key_env = "SOME_VARIABLE"
base_url = "http://localhost:8000"
verdict = "tool"
max_tokens = 100
max_tokens_retry = 200
temperature = 0.0
requests_per_minute = 60
tokens_per_minute = 1000
max_in_flight = 7
limit_group = "g"
timeout_s = 10
max_attempts = 2
max_tries_total = 3
price = { input = 1.0, output = 2.5, cached_input = 0.1 }
family = "claude"
mode = "batch"
extra = { top_k = 1, nested = { a = [1, 2] } }

[[judges]]
name = "other"
provider = "simulated"
offset = 0.5
offset_long = -1.0

[families]
"gpt-*" = "gpt"

[panel]
quorum = 2

[budget]
max_usd = 50.0
max_calls = 1000

[stop]
swing_half_width = 0.02
decided = true

[engine]
address = "auto"
workers = 3
pairs_per_block = 64
grace_s = 5
"""


def data(*judges: dict[str, Any], **run: Any) -> dict[str, Any]:
    return {"pairs": "p", "out": "o", "judges": list(judges or [JUDGES["simulated"]]), **run}


def judge(provider: str, /, **fields: Any) -> dict[str, Any]:
    return {**JUDGES[provider], **fields}


def fault(given: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as error:
        check_run(given, where="run.toml")
    assert error.value.given.startswith("run.toml: ")
    assert "nothing was asked" in error.value.do
    return error.value.given.removeprefix("run.toml: ")


def test_the_defaults_are_the_published_ones() -> None:
    config = check_run(data(), where="here").model_dump(mode="json", exclude={"judges"})
    assert config == {
        "pairs": "p",
        "out": "o",
        "orders": "both",
        "swap_fraction": 0.2,
        "repeats": 1,
        "seed": 0,
        "self_pair": 0,
        "cluster": "question",
        "empty": "judge",
        "on_leak": "warn",
        "keep_raw": True,
        "columns": {},
        "families": {},
        "panel": {"quorum": 0},
        "budget": {"max_usd": None, "max_calls": 0},
        "stop": {"swing_half_width": 0.0, "decided": False},
        "engine": {"address": "", "workers": 0, "pairs_per_block": 0, "grace_s": 60.0},
    }


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_defaults_of_a_judge_behind_a_wire_are_the_published_ones(provider: str) -> None:
    config = check_run(data(JUDGES[provider]), where="here").judges[0].model_dump(mode="json")
    assert {name: config[name] for name in config if name not in JUDGES[provider]} == {
        "template": "pairwise",
        "rubric": "",
        "criteria": [],
        "api_key_env": "",
        "api_key_file": "",
        "base_url": "",
        "verdict": "auto",
        "max_tokens": 4096,
        "max_tokens_retry": 0,
        "temperature": None,
        "requests_per_minute": 0.0,
        "tokens_per_minute": 0.0,
        "max_in_flight": 0,
        "limit_group": "",
        "timeout_s": 300.0,
        "hedge": 0.0,
        "max_attempts": 6,
        "max_tries_total": 20,
        "price": None,
        "family": "",
        "soft": False,
        "mode": "online",
        "extra": {},
    }


def test_a_simulated_judge_leans_to_nothing_by_default() -> None:
    config = check_run(data(), where="here").judges[0].model_dump(mode="json")
    planted = ("quality", "noise", "length_weight", "offset", "family_bonus", "tie_width")
    assert [config[name] for name in planted] == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert (config["failure_rate"], config["latency_s"], config["seed"]) == (0.0, 0.0, 0)


UNKNOWN = [
    (data(seeds=1), "unknown key `seeds`, did you mean `seed`?"),
    (data(panel={"quorm": 1}), "unknown key `panel.quorm`, did you mean `quorum`?"),
    (data(budget={"max_dollar": 1}), "unknown key `budget.max_dollar`, did you mean `max_calls`?"),
    (data(stop={"decide": True}), "unknown key `stop.decide`, did you mean `decided`?"),
    (data(engine={"worker": 2}), "unknown key `engine.worker`, did you mean `workers`?"),
    (data(engine={"zzz": 2}), "known are address, grace_s, pairs_per_block, workers"),
    (data(judge("openai", max_token=1)), "`judges[1].max_token`, did you mean `max_tokens`?"),
    (data(judge("anthropic", temprature=1)), "did you mean `temperature`?"),
    (data(judge("simulated", offsets=1)), "`judges[1].offsets`, did you mean `offset`?"),
    (data(judge("replay", record_as="x")), "did you mean `recorded_as`?"),
    (data(judge("function", calls="m:n")), "did you mean `call`?"),
    (data(judge("simulated", model="m")), "unknown key `judges[1].model`"),
    (
        data(JUDGES["simulated"], judge("openai", price={"input": 1, "output": 1, "cached": 1})),
        "unknown key `judges[2].price.cached`, did you mean `cached_input`?",
    ),
    (data(judge("openai", pricing={})), "did you mean `price`?"),
]


@pytest.mark.parametrize(("given", "expected"), UNKNOWN)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(
    given: dict[str, Any], expected: str
) -> None:
    assert expected in fault(given)


NO_URLS = (
    *("localhost:8000", "http://", "http://[::1", "http://h:99999", "http://h:x", "ftp://h/v1"),
    *("http://h:0", "http://h/a b", "http://h\0", "nonsense", "//h/v1"),
)
WRONG = [
    (data(repeats=0), "`repeats`: Input should be greater than or equal to 1, got 0"),
    (data(swap_fraction=0), "`swap_fraction`: Input should be greater than 0, got 0"),
    (data(swap_fraction=1.5), "`swap_fraction`"),
    (data(swap_fraction=float("nan")), "`swap_fraction`"),
    (data(orders="abba"), "`orders`: Input should be 'both', 'sampled', 'ab', 'ba' or 'random'"),
    (data(pairs=""), "`pairs`"),
    (data(columns={"prompt": "question"}), "'prompt' is not one of ours"),
    (data(judges=[]), "`judges`: a run needs at least one judge"),
    (data(JUDGES["replay"], JUDGES["replay"]), "`judges`: two judges are named 'r'"),
    (data(judge("simulated", name="panel")), "`judges[1].name`: the name `panel` is kept"),
    (data(judge("simulated", name=" s")), "no control characters and no blanks"),
    (data(judge("simulated", name="a\nb")), "no control characters and no blanks"),
    (data(judge("simulated", noise=-1)), "`judges[1].noise`"),
    (data(judge("function", call="no_colon")), "`judges[1].call`"),
    (data(judge("openai", api_key_env="A", api_key_file="f")), "not both"),
    (data(judge("openai", max_tokens_retry=10)), "must be larger than max_tokens (4096)"),
    (data(judge("anthropic", soft=True)), "token log-probabilities, which Anthropic"),
    (data(judge("openai", soft=True, verdict="tool")), "tool arguments carry none"),
    (data(judge("openai", price={"input": 1})), "`judges[1].price.output` is missing"),
    (data(judge("openai", criteria=["a", 2])), "`judges[1].criteria[2]`"),
    (data({"name": "x"}), "`judges[1].provider` is missing; known are anthropic, function"),
    (data(judge("openai", provider="opnai")), "`judges[1].provider`: there is no provider 'opnai'"),
    ({"out": "o", "judges": [JUDGES["simulated"]]}, "`pairs` is missing"),
    # Numbers that would only fail where they are used, or never end.
    (data(repeats=3_000_000_000), "`repeats`: Input should be less than or equal to 1000"),
    (data(repeats=10**5000), "`repeats`"),
    (data(seed=2**63), "`seed`: Input should be less than or equal to 9223372036854775807"),
    (data(self_pair=10**12), "`self_pair`"),
    (data(engine={"workers": 10**6}), "`engine.workers`: Input should be less than or equal to 10"),
    (data(engine={"pairs_per_block": 10**17}), "`engine.pairs_per_block`"),
    (data(engine={"grace_s": 1e300}), "`engine.grace_s`"),
    (data(panel={"quorum": 2**40}), "`panel.quorum`"),
    (data(judge("function", max_in_flight=10**9)), "`judges[1].max_in_flight`"),
    (data(judge("openai", timeout_s=1e300)), "`judges[1].timeout_s`"),
    (data(judge("openai", timeout_s=0)), "`judges[1].timeout_s`: Input should be greater than 0"),
    (data(judge("openai", max_attempts=2**40)), "`judges[1].max_attempts`"),
    (data(judge("openai", max_tries_total=2**70)), "`judges[1].max_tries_total`"),
    (data(judge("openai", max_tokens=2**70)), "`judges[1].max_tokens`"),
    (data(judge("openai", price={"input": 1e300, "output": 1})), "`judges[1].price.input`"),
    (data(judge("simulated", latency_s=1e300)), "`judges[1].latency_s`"),
    (data(judge("simulated", offset=-1e300)), "`judges[1].offset`"),
    (data(judge("simulated", offset=float("nan"))), "`judges[1].offset`"),
    (data(judge("simulated", seed=2**64)), "`judges[1].seed`"),
    # Names and paths that no file system has.
    (data(out="a\0b"), "`out`: a path cannot hold the character U+0000, got 'a\\x00b'"),
    (data(out="a\nb"), "`out`: a path cannot hold the character U+000A"),
    (data(out="a\udce9"), "`out`: Input should be a valid string"),
    (data(out="x" * 300), "`out`: a path has at most 4095 bytes, and at most 255 in one name"),
    (data(out="runs/" + "é" * 128), "this one has 261, and 256 in its longest name"),
    (data(out="a/" * 2100), "this one has 4200, and 1 in its longest name"),
    (data(pairs="s3://bucket/\0"), "`pairs`: a path cannot hold the character U+0000"),
    (data(pairs="x" * 300 + ".jsonl"), "`pairs`: a path has at most"),
    (data(judge("replay", path="x" * 300)), "`judges[1].path`: a path has at most"),
    (data(judge("openai", template="x" * 300)), "`judges[1].template`: a path has at most"),
    (data(judge("openai", api_key_file="a\0b")), "`judges[1].api_key_file`: a path cannot hold"),
    (data(judge("simulated", name="x" * 300)), "a judge's name has at most 200 characters, this"),
    (data(judge("simulated", name="a\0b")), "no control characters and no blanks"),
    (data(judge("simulated", name="a\x85b")), "no control characters and no blanks"),
    (data(judge("simulated", name="a\ud800")), "`judges[1].name`: Input should be a valid string"),
    (data(judge("simulated", name="a\u2028b")), "no control characters and no blanks"),
    (data(judge("openai", extra={"since": date(2026, 1, 1)})), "cannot be sent as JSON"),
    (data(judge("openai", extra={"x": [float("inf")]})), "cannot be sent as JSON"),
    *((data(judge("openai", base_url=url)), "`judges[1].base_url`: this is no") for url in NO_URLS),
]


@pytest.mark.parametrize(("given", "expected"), WRONG)
def test_a_run_file_that_cannot_mean_what_it_says_is_refused(
    given: dict[str, Any], expected: str
) -> None:
    assert expected in fault(given)


def test_every_fault_is_named_at_once() -> None:
    said = fault(data(judge("simulated", ofset=1), repeats=0, seeds=1))
    assert said.count("; ") == 2
    assert all(name in said for name in ("`judges[1].ofset`", "`repeats`", "`seeds`"))


def test_a_value_is_shown_short() -> None:
    assert len(fault(data(repeats="x" * 10_000))) < 250


def test_no_part_of_a_judge_is_shown_where_its_provider_is_wrong() -> None:
    assert "planted" not in fault(data({"extra": {"token": "planted"}, "provider": "x"}))


@pytest.mark.parametrize(
    "fields", [{"base_url": "http://me:planted@h:99999"}, {"extra": {"planted": float("nan")}}]
)
def test_what_may_hold_a_password_is_not_shown(fields: dict[str, Any]) -> None:
    assert "planted" not in fault(data(judge("openai", **fields)))


@pytest.mark.parametrize(
    "url", ["http://localhost:8000", "https://[::1]:8000/v1", "http://u:p@h/v1?a=b", "https://é.eu"]
)
def test_an_address_of_a_server_stays_as_it_is(url: str) -> None:
    config = check_run(data(judge("openai", base_url=url)), where="here")
    assert config.judges[0].base_url == url


@pytest.mark.parametrize("limit", [{"out": "x" * 255}, {"out": "x/" * 2047}, {"repeats": 1000}])
def test_what_is_just_possible_is_taken(limit: dict[str, Any]) -> None:
    check_run(data(**limit), where="here")


@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_is_passed_over(tmp_path: Path, head: bytes) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(head + FULL.encode())
    assert load_run_file(file).seed == 5


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfep\0", b"pairs = ", b"seed = " + b"9" * 5000, b"a = " + b"[" * 3000, b"\0",
        b"d = 2026-13-01",
    ],
)  # fmt: skip
def test_what_is_not_toml_is_one_block(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match="is not TOML") as error:
        load_run_file(file)
    assert error.value.expected
    assert error.value.do


@pytest.mark.parametrize("name", ["absent.toml", ".", "x" * 300, "a.toml/b"])
def test_a_run_file_that_cannot_be_opened_is_one_block(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.toml").touch()
    with pytest.raises(ConfigError, match="cannot read the run file"):
        load_run_file(tmp_path / name)


def test_a_full_run_file_is_read_as_it_says(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(FULL, encoding="utf-8")
    config = load_run_file(file)
    sonnet, other = (judge.model_dump(mode="json") for judge in config.judges)
    assert (sonnet["criteria"], sonnet["price"]["cached_input"]) == (
        ["Is it true?", "Is it short?"],
        0.1,
    )
    assert sonnet["extra"] == {"top_k": 1, "nested": {"a": [1, 2]}}
    assert (other["offset"], other["offset_long"]) == (0.5, -1.0)
    assert (config.engine.grace_s, config.stop.decided, config.panel.quorum) == (5, True, 2)


def test_the_resolved_configuration_reads_back_as_itself(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(FULL, encoding="utf-8")
    config = load_run_file(file)
    assert RunConfig.model_validate_json(config.model_dump_json()) == config
    assert check_run(json.loads(config.model_dump_json()), where="x") == config
    assert check_run(config.model_dump(exclude_unset=True), where="x") == config


def test_a_configuration_cannot_be_changed_after_it_was_checked() -> None:
    config = check_run(data(), where="here")
    with pytest.raises(ValidationError):
        config.repeats = 0


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"pairs = ", "is not TOML"),
        (b"pairs = '\xff'", "is not TOML"),
        (b"", "`pairs` is missing; `out` is missing; `judges` is missing"),
        (None, "cannot read the run file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes | None, expected: str
) -> None:
    file = tmp_path / "run.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as error:
        load_run_file(file)
    assert str(file) in error.value.given
    assert expected in error.value.given


def print_of(given: dict[str, Any], **more: str) -> bytes:
    (config,) = check_run(data(given), where="here").judges
    return fingerprint(identity(config, **more))


LIMITS = {
    "limit_group": "g",
    "max_in_flight": 3,
    "requests_per_minute": 3,
    "tokens_per_minute": 3,
    "timeout_s": 3,
    "hedge": 0.03,
    "max_attempts": 3,
    "max_tries_total": 3,
    "price": {"input": 1, "output": 1},
    "api_key_env": "ELSEWHERE",
    "api_key_file": "elsewhere",
}
SAYS = {
    "name": "else",
    "model": "else",
    "template": "concise",
    "rubric": "else",
    "criteria": ["else?"],
    "base_url": "http://else",
    "verdict": "text",
    "max_tokens": 9,
    "max_tokens_retry": 9000,
    "temperature": 0.0,
    "soft": True,
    "mode": "batch",
    "extra": {"a": 1},
    "family": "else",
    "provider": "anthropic",
}


@pytest.mark.parametrize("field", LIMITS)
def test_a_limit_may_change_between_resumes(field: str) -> None:
    assert print_of(judge("openai", **{field: LIMITS[field]})) == print_of(JUDGES["openai"])


@pytest.mark.parametrize("field", SAYS)
def test_whatever_can_change_a_verdict_names_another_judge(field: str) -> None:
    assert print_of(judge("openai", **{field: SAYS[field]})) != print_of(JUDGES["openai"])


def test_every_field_of_a_judge_is_a_limit_or_part_of_its_identity() -> None:
    (config,) = check_run(data(JUDGES["openai"]), where="here").judges
    assert set(type(config).model_fields) == set(LIMITS) | set(SAYS)


def test_the_texts_that_are_sent_and_the_effective_host_count() -> None:
    plain = print_of(JUDGES["openai"])
    edited = {print_of(JUDGES["openai"], template_text=text) for text in ("one", "two")}
    hosts = {print_of(JUDGES["openai"], endpoint=host) for host in ("https://a", "https://b")}
    assert len({plain} | edited | hosts) == 5
