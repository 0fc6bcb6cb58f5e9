"""The run file to start from is one that can be run, and what it says of defaults is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from judgebias.cli import run_app
from judgebias.cli.init import starting_text
from judgebias.config import RunConfig, WireJudge, load_run_file
from judgebias.config.runfile import check_run

Read = pytest.CaptureFixture[str]
COMMENTED = re.compile(r"^# (?=\w+ = |\"[\w*-]+\" = |\[)", re.MULTILINE)


def test_it_is_written_once_and_loads(capsys: Read, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert run_app(["init", str(path)]) == 0
    assert str(path) in capsys.readouterr().out
    config = load_run_file(path)
    assert [judge.name for judge in config.judges] == ["judge"]
    path.write_text("precious")
    assert run_app(["init", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == "precious"


def test_without_a_name_it_is_run_toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_app(["init"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


def test_a_folder_that_is_not_there_is_said(capsys: Read, tmp_path: Path) -> None:
    assert run_app(["init", str(tmp_path / "absent" / "run.toml")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_every_setting_is_there_with_its_default() -> None:
    text = starting_text()
    whole = tomllib.loads(COMMENTED.sub("", text))
    assert set(whole) == set(RunConfig.model_fields)
    assert set(whole["judges"][0]) == set(WireJudge.model_fields)
    # Where a default is "absent", the file says so and shows an example.
    shown = {"max_usd": 50.0, "temperature": 0.0, "price": {"input": 0.0, "output": 0.0}}
    assert re.search(r"max_usd = 50\.0 +# absent", text)
    for name in ("price", "temperature"):
        assert re.search(rf"^# {name} = .*# .*absent", text, re.MULTILINE)
    plain = check_run(tomllib.loads(text), where="plain").model_dump(mode="json")
    full = check_run(whole, where="whole").model_dump(mode="json")
    judge, other = plain.pop("judges")[0], full.pop("judges")[0]
    examples = {"max_usd": full["budget"].pop("max_usd")}
    examples |= {name: other.pop(name) for name in ("temperature", "price")}
    assert examples.pop("price")["input"] == shown.pop("price")["input"]
    assert examples == shown
    assert full.pop("families") == {"my-model-*": "mine"}
    plain["budget"].pop("max_usd")
    plain.pop("families")
    for name in ("temperature", "price"):
        assert judge.pop(name) is None
    assert other == judge
    assert full == plain
