"""Keys go to the configured address and nowhere else: no log, message, reply or other host."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgebias.errors import JudgeHalted
from judgebias.judges import anthropic, openai
from judgebias.judges.secrets import Secret
from tests.judges.judging import KEY, WIRES, Clock, ask, call, config, make_judge, requests
from tests.server import Action, CountingServer, Rule, Setup, faults

BOTH = pytest.mark.parametrize("wire", WIRES)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with CountingServer(Setup(keys=frozenset({KEY}))) as running:
        yield running


@BOTH
def test_k_11_no_variable_redirects_the_key(
    server: CountingServer, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CountingServer() as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", other.url)
        headers = "Authorization: Bearer sk-other-key\nX-Api-Key: other\nanthropic-version: 1"
        monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", headers)
        monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", headers)
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "sk-other-token")
        monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-other-admin")
        result = ask(config(server, wire))
        assert result.reply.slot is not None
        assert (requests(server), requests(other)) == (1, 0)


@pytest.mark.parametrize(
    ("wire", "host"), [("openai", "api.openai.com"), ("anthropic", "api.anthropic.com")]
)
def test_k_11_without_an_address_it_is_the_vendors(
    server: CountingServer, wire: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    judge = config(server, wire, base_url="")
    module = openai if wire == "openai" else anthropic
    client = module.open_client(judge, Secret(KEY), 4)
    assert client.base_url.host == host
    assert client.max_retries == 0


@BOTH
def test_k_12_a_redirect_does_not_carry_the_key(server: CountingServer, wire: str) -> None:
    with CountingServer() as other:
        moved = Action(status=307, headers={"location": f"{other.url}/v1/messages"}, body="{}")
        server.script(Rule(action=moved))
        result = ask(config(server, wire))
        assert (requests(server), requests(other)) == (1, 0)
    assert "another address" in str(result.halted[0])


@BOTH
def test_k_05_a_key_that_the_server_echoes_is_taken_out(server: CountingServer, wire: str) -> None:
    said = f"You sent Bearer {KEY} and also sk-proj-another12345."
    server.script(Rule(action=faults.openai_error(401, said, code="invalid_api_key")))
    halted = ask(config(server, wire)).halted[0]
    server.script(Rule(action=faults.openai_error(500, said, code=None)))
    failed = ask(config(server, wire, max_attempts=1)).reply
    server.script(Rule(action=Action(body=f"<html>{said}</html>")))
    page = ask(config(server, wire)).reply
    for shown in (str(halted), str(dataclasses.asdict(failed)), str(dataclasses.asdict(page))):
        assert KEY not in shown
    assert "another12345" not in str(halted)
    assert page.raw is not None


@BOTH
def test_k_06_no_log_shows_key_or_prompt(
    server: CountingServer, wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        ask(config(server, wire), [call(answer_a="a telling answer")])
    names = {record.name.split(".")[0] for record in caplog.records}
    assert not names & {"openai", "anthropic"}
    assert KEY not in caplog.text
    assert "telling" not in caplog.text


@BOTH
@pytest.mark.slow
def test_k_06_the_vendors_log_variables_have_no_effect(server: CountingServer, wire: str) -> None:
    judge = config(server, wire)
    code = (
        "import sys, asyncio\n"
        "from judgebias.config import WireJudge\n"
        "from tests.judges.judging import Clock, call, make_judge\n"
        "async def run():\n"
        "    asker = make_judge(WireJudge.model_validate_json(sys.argv[1]), Clock())\n"
        "    print((await asker.ask(call(answer_a='a telling answer'))).slot)\n"
        "    await asker.aclose()\n"
        "asyncio.run(run())\n"
    )
    environ = {**os.environ, "OPENAI_LOG": "debug", "ANTHROPIC_LOG": "debug"}
    environ["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", code, judge.model_dump_json()],
        capture_output=True,
        text=True,
        env=environ,
        cwd=ROOT,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() in ("first", "second", "tie")
    assert "telling" not in done.stderr
    assert KEY not in done.stderr


@BOTH
def test_k_03_what_leaves_a_judge_is_plain_data(server: CountingServer, wire: str) -> None:
    server.script(Rule(action=faults.WRONG_KEY))
    halted = ask(config(server, wire)).halted[0]
    assert isinstance(halted, JudgeHalted)
    assert halted.__cause__ is None
    assert halted.__context__ is None


@BOTH
def test_k_07_a_judge_does_not_show_its_key(server: CountingServer, wire: str) -> None:
    asker = make_judge(config(server, wire), Clock())
    assert KEY not in repr(asker)
    assert KEY not in repr(vars(asker))


@BOTH
def test_an_address_with_a_query_keeps_it(server: CountingServer, wire: str) -> None:
    url = server.openai_url if wire == "openai" else server.url
    result = ask(config(server, wire, base_url=f"{url}?api-version=preview"))
    assert result.reply.slot is not None


@BOTH
def test_extra_has_the_last_word(server: CountingServer, wire: str) -> None:
    refused = faults.openai_error(400, "thinking is on", code=None)
    server.script(Rule(action=refused, fields=("thinking",)))
    judge = config(server, wire, extra={"thinking": {"type": "disabled"}, "model": "other"})
    assert ask(judge).reply.failure == "bad_request"
    assert json.dumps(server.log()).count('"other"') == 1
