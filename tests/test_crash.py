"""The points at which a test kills a process: where they are named, how often, and how rarely."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from judgebias.publish import remove_unfinished, unfinished
from scripts.forces.crashes import STEPS

ROOT = Path(__file__).resolve().parents[1]
CODE = """
from judgebias.crash import crash_point
for _ in range(3):
    crash_point("a:step")
    print("passed", flush=True)
crash_point("b:step")
print("end", flush=True)
"""


def run(code: str, *arguments: str, **environ: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout.split()


@pytest.mark.parametrize(
    ("named", "passed"),
    [
        ("", ["passed"] * 3 + ["end"]),
        ("c:step", ["passed"] * 3 + ["end"]),
        ("a:step", []),
        ("a:step*3", ["passed"] * 2),
        ("a:step*4", ["passed"] * 3 + ["end"]),
        ("c:step,b:step", ["passed"] * 3),
    ],
)
def test_a_process_ends_at_the_step_that_is_named(named: str, passed: list[str]) -> None:
    code, said = run(CODE, JUDGEBIAS_CRASH=named)
    assert said == passed
    assert code == (0 if said[-1:] == ["end"] else -signal.SIGKILL)


@pytest.mark.slow
def test_one_process_ends_and_those_that_stand_in_for_it_do_not(tmp_path: Path) -> None:
    environ = {"JUDGEBIAS_CRASH": "a:step*2", "JUDGEBIAS_CRASH_ONCE": str(tmp_path)}
    assert run(CODE, **environ) == (-signal.SIGKILL, ["passed"])
    assert run(CODE, **environ) == (0, ["passed"] * 3 + ["end"])


@pytest.mark.slow
def test_a_kill_between_file_and_rename_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from judgebias.publish import publish_text; "
        "publish_text(Path(sys.argv[1]), sys.argv[2])"
    )
    file = tmp_path / "run.json"
    assert run(code, str(file), "old")[0] == 0
    killed = {"JUDGEBIAS_CRASH": "publish:run.json"}
    assert run(code, str(file), "new", **killed)[0] == -signal.SIGKILL
    assert file.read_text() == "old"
    assert run(code, str(file), "new")[0] == 0
    assert file.read_text() == "new"


def test_every_step_that_is_attacked_is_one_of_the_package() -> None:
    package = "".join(path.read_text() for path in (ROOT / "judgebias").rglob("*.py"))
    there = set(re.findall(r'crash_point\("([a-z_:]+)"\)', package))
    assert 'crash_point(f"publish:{path.name}")' in package
    attacked = {step.at.partition("*")[0] for step in STEPS}
    assert {at for at in attacked if not at.startswith("publish:")} == there


def test_what_a_killed_process_left_unfinished_is_removed_and_nothing_else(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from judgebias.publish import publish_text; "
        "publish_text(Path(sys.argv[1]), 'new')"
    )
    run(code, str(tmp_path / "a.csv"), JUDGEBIAS_CRASH="publish:a.csv")
    (left,) = tmp_path.iterdir()
    left.with_name(left.name.replace("a.csv", "room")).mkdir()
    mine = unfinished(tmp_path / "b.csv")
    elsewhere = left.with_name(left.name.replace(left.name.split(".")[-2].split("-")[0], "0" * 8))
    for other in (mine, elsewhere, tmp_path / ".hidden.tmp", tmp_path / "c.csv"):
        other.write_text("")
    remove_unfinished(tmp_path, tmp_path / "no-such-folder")
    kept = {mine.name, elsewhere.name, ".hidden.tmp", "c.csv"}
    assert {path.name for path in tmp_path.iterdir()} == kept
