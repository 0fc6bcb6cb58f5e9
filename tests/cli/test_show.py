"""One comparison on the screen: the prompts as they are sent, and what came of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from judgebias.calls import Call, Pair
from judgebias.cli import run_app
from judgebias.config import WireJudge
from judgebias.config.runfile import check_run
from judgebias.journal import Segment, row_of
from judgebias.pipeline.blocks import Assignment
from judgebias.pipeline.missing import missing_calls
from judgebias.pipeline.prepare import prepared
from judgebias.prompts import VerdictForm, load_template
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot
from tests.cli.asking import Asking
from tests.judges.judging import Clock, make_judge
from tests.pipeline.run_files import run_file
from tests.server import CountingServer, Setup
from tests.server.planted import Decision

Read = pytest.CaptureFixture[str]
WIRE = {"name": "w", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
CALM = {"name": "calm", "provider": "simulated", "tie_width": 0.3, "offset": 9.0}
TEXTS = {
    "question": "Why is it so?",
    "answer_a": "Because {of} this.",
    "answer_b": "I do not know.",
}
ROWS = [
    {"pair_id": "1", "task": "t", **TEXTS, "model_a": "tuned-7b", "model_b": "base", "gold": "A"},
    {"pair_id": "1", "task": "u", **TEXTS},
    {"pair_id": "2", "task": "t", **TEXTS, "answer_b": "Another."},
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def prompts(**about: str) -> dict[Order, str]:
    pair = Pair(pair_id="1", task="t", **TEXTS)
    template = load_template("pairwise", **about)
    calls = {order: Call(pair=pair, order=order) for order in Order}
    return {o: template.render(c, VerdictForm.JSON_SCHEMA).user for o, c in calls.items()}


def test_before_a_run_both_prompts_as_they_would_be_sent(
    pairs: Path, capsys: Read, tmp_path: Path
) -> None:
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[WIRE, CALM], out="out")
    assert run_app(["show", str(run), "t/1"]) == 0
    shown = capsys.readouterr().out
    for order, prompt in prompts().items():
        assert f"--- prompt in order {order} ---" in shown
        assert shown.count(prompt) == 1
    assert shown.count(load_template("pairwise").fixed) == 1
    assert "model A: tuned-7b, model B: base, gold: A (never sent)" in shown
    assert "verdict form: json_schema (tried first)" in shown
    assert shown.count("not asked yet") == 4
    assert "no prompt: this judge is given the texts themselves" in shown
    assert not (tmp_path / "out").exists()
    assert run_app(["show", str(run), "2", "--judge", "calm"]) == 0
    assert "judge w" not in capsys.readouterr().out


def test_after_a_run_slots_and_the_cell_from_the_file_or_the_directory(
    pairs: Path, capsys: Read, tmp_path: Path, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_file(
        tmp_path / "run.toml", pairs=pairs.relative_to(tmp_path), judges=[CALM], out="out"
    )
    assert run_app(["run", str(run)]) == 0
    assert len(asking.asked) == 6
    capsys.readouterr()
    # The directory knows where its input lies, wherever one asks from.
    monkeypatch.chdir("/")
    shown: list[str] = []
    for source in (run, tmp_path / "out"):
        assert run_app(["show", str(source), "t/1"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "-> answer first, which is A (" in shown[0]
    assert "-> answer first, which is B (" in shown[0]
    assert shown[0].endswith("stuck_first; final verdict: tie\n")


def stuck(_first: str, _second: str, _prompt: str) -> Decision:
    return Decision(slot="second")


def test_what_is_shown_is_what_was_sent(pairs: Path, capsys: Read, tmp_path: Path) -> None:
    sent: list[str] = []

    def watch(first: str, second: str, prompt: str) -> Decision:
        sent.append(prompt)
        return stuck(first, second, prompt)

    with CountingServer(Setup(judges={"*": watch})) as server:
        judge = {**WIRE, "base_url": server.openai_url, "verdict": "text"}
        config = check_run(
            {"pairs": str(pairs), "out": "out", "judges": [judge], "repeats": 2}, where="here"
        )
        with prepared(config, base=tmp_path) as ready:
            (block,) = ready.blocks
            calls = missing_calls(ready.plan, Assignment(block=block), ready.done, ready.tried)
            (wire,) = config.judges
            assert isinstance(wire, WireJudge)

            async def replies() -> list[Reply]:
                asker = make_judge(wire, Clock())
                found = [await asker.ask(call) for call in calls]
                await asker.aclose()
                return found

            segment = Segment.create(Path(ready.plan.journal), epoch=1, worker="w")
            name = ready.plan.fingerprints["w"].hex()
            for call, reply in zip(calls, asyncio.run(replies()), strict=True):
                row = row_of(call, reply, digest=call.digest, judge="w", fingerprint=name)
                segment.append(row)
            segment.flush()
            segment.close()
    assert run_app(["show", str(tmp_path / "out"), "t/1"]) == 0
    shown = capsys.readouterr().out
    about = [text for text in sent if "I do not know." in text][:4]
    for text in about:
        # The server joins the parts of a prompt by line ends.
        system, user = text.strip("\n").split("\n<question", 1)
        assert system in shown
        assert f"<question{user}" in shown
    assert shown.count("VERDICT: second\n-> answer second") == 4
    assert shown.count("stuck_second; final verdict: tie") == 2
    assert "--- verdict of repeat 2 ---" in shown


def test_a_failed_order_and_a_changed_template_are_said(
    pairs: Path, capsys: Read, tmp_path: Path
) -> None:
    (tmp_path / "own.txt").write_text("{question}{first}{second}")
    judge = {**WIRE, "template": "own.txt", "soft": True}
    run = run_file(tmp_path / "run.toml", pairs=pairs, judges=[judge], out="out")
    config = check_run({"pairs": str(pairs), "out": "out", "judges": [judge]}, where="here")
    with prepared(config, base=tmp_path) as ready:
        (block,) = ready.blocks
        first, second, *_ = missing_calls(
            ready.plan, Assignment(block=block), ready.done, ready.tried
        )
        said = Reply(slot=Slot.TIE, raw="VERDICT: tie", p_first=0.25, p_tie=0.5, model="m-1")
        failed = Reply(failure=FailureKind.INVALID, message="no verdict", raw="Hm.")
        segment = Segment.create(Path(ready.plan.journal), epoch=1, worker="w")
        for call, reply in ((first, said), (second, failed)):
            print_ = ready.plan.fingerprints["w"].hex()
            segment.append(row_of(call, reply, digest=call.digest, judge="w", fingerprint=print_))
        segment.flush()
        segment.close()
    (tmp_path / "own.txt").write_text("Mind: {question}{first}{second}")
    assert run_app(["show", str(run), "t/1"]) == 0
    shown = capsys.readouterr().out
    assert "NOTE: the judge or its template was changed since it was asked" in shown
    assert "VERDICT: tie\n-> tie, which is tie (" in shown
    assert "probabilities: first 0.2500, second not listed, tie 0.5000" in shown
    assert "Hm.\n-> failed: invalid: no verdict (" in shown
    assert "none: it takes a verdict in both orders" in shown


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run.toml", "9"], "the input has no pair '9' that can be judged"),
        (["run.toml", "1"], "several tasks have a pair '1'"),
        (["run.toml", "2", "--judge", "x"], "no judge is named 'x'"),
        ([".", "2"], "is not a run directory"),
        (["absent.toml", "2"], "cannot read the run file absent.toml"),
    ],
)
def test_what_cannot_be_shown_is_said(
    pairs: Path,
    capsys: Read,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    run_file(tmp_path / "run.toml", pairs=pairs, judges=[CALM], out="out")
    assert run_app(["show", *arguments]) == 2
    assert said in capsys.readouterr().err
