from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from judgebias.config import RunConfig
from judgebias.errors import ConfigError
from judgebias.pipeline.files import RESERVE, check_files

_LIMITED = """
import resource, sys
from judgebias.pipeline.files import allow_files
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 512))
allow_files()
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def config(*windows: int) -> RunConfig:
    judges = [
        {"name": f"j{n}", "provider": "openai", "model": "m", "max_in_flight": window}
        for n, window in enumerate(windows)
    ]
    local = {"name": "local", "provider": "simulated", "max_in_flight": 2000}
    return RunConfig.model_validate({"pairs": "p.jsonl", "out": "o", "judges": [*judges, local]})


def limit(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _what: (64, most))


def test_windows_beyond_the_systems_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 1000 + RESERVE)
    check_files(config(600, 400))
    with pytest.raises(ConfigError, match="1,001 calls in flight, and this system") as error:
        check_files(config(600, 401))
    assert error.value.expected == "at most 1,000 in flight over all judges"


def test_a_system_without_a_limit_takes_any_window(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, -1)
    check_files(config(2000, 2000, 2000))


@pytest.mark.slow
def test_a_worker_uses_what_the_system_allows() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "(512, 512)\n"
