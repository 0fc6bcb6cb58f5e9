"""What the documents name must exist: a list of tests that has rotted proves nothing."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_test_that_a_document_names_exists() -> None:
    named = {
        name
        for page in (ROOT / "docs").rglob("*.md")
        for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))
    }
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(named) > 50
    assert named - there == set()


def test_every_system_fault_and_every_secret_has_its_line() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| ([SK]-\d\d) ", page, re.MULTILINE)
    assert found == [*(f"S-{n:02}" for n in range(1, 35)), *(f"K-{n:02}" for n in range(1, 18))]
