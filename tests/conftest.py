"""What every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from tests.bucket import s3

__all__ = ["s3", "shared"]

# A test that waits for a busy machine is not wrong.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded verdicts and known answers that lies beside the checkout."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"NOT CHECKED: the recorded verdicts and known answers are not at {folder}")
    return folder
