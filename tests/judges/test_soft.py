"""Verdict probabilities come from the verdict's own token and from nothing else."""

from __future__ import annotations

import math

import pytest

from judgebias.judges.soft import Probabilities, read_probabilities
from judgebias.prompts import VerdictForm
from tests.judges.judging import ask, call, config
from tests.server import Action, CountingServer, Planted, Rule, Setup, faults

JSON, TOOL, TEXT = VerdictForm.JSON_SCHEMA, VerdictForm.TOOL, VerdictForm.TEXT
SOFT = {"*": Planted(offset=1.0, quality=0.0, tie_width=0.2)}


def tokens(*pieces: str, verdict: int, top: dict[str, float]) -> list[dict[str, object]]:
    """Make `logprobs.content`; the alternatives of the verdict's token are given."""
    found: list[dict[str, object]] = []
    for place, piece in enumerate(pieces):
        shown = top if place == verdict else {piece: 0.9, " second": 0.05, " first": 0.05}
        listed = [{"token": t, "logprob": math.log(p)} for t, p in shown.items()]
        found.append({"token": piece, "bytes": list(piece.encode()), "top_logprobs": listed})
    return found


@pytest.mark.parametrize(
    ("pieces", "verdict", "top", "form", "expected"),
    [
        pytest.param(
            ("VERDICT", ": first\n", "é ", "VERDICT", ":", " first"),
            5,
            {" first": 0.6, " second": 0.25, " First": 0.1, " tie": 0.05},
            TEXT,
            (0.7, 0.25, 0.05),
            id="words",
        ),
        pytest.param(
            ("VERDICT", ":", " sec", "ond"),
            2,
            {" sec": 0.5, " f": 0.25, " t": 0.125, " x": 0.125},
            TEXT,
            (0.25, 0.5, 0.125),
            id="parts-of-words",
        ),
        pytest.param(
            ('{"analysis": "', '\\"verdict\\": \\"second\\"', '", "verdict": ', '"', "tie", '"}'),
            4,
            {"tie": 0.5, "first": 0.5},
            JSON,
            (0.5, None, 0.5),
            id="field-and-bound",
        ),
        pytest.param(
            ('{"analysis": "x", "verdict":', ' "first', '"}'),
            1,
            {' "first': 0.75, ' "second': 0.25},
            JSON,
            (0.75, 0.25, None),
            id="quote-in-the-token",
        ),
        pytest.param(("x",), 0, {"first": 1.0}, TEXT, None, id="no-verdict"),
        pytest.param(('{"verdict": "', "tie"), 1, {"tie": 1.0}, TOOL, None, id="tool"),
    ],
)
def test_probabilities(
    pieces: tuple[str, ...],
    verdict: int,
    top: dict[str, float],
    form: VerdictForm,
    expected: tuple[float | None, ...] | None,
) -> None:
    content = tokens(*pieces, verdict=verdict, top=top)
    found = read_probabilities("".join(pieces), content, form)
    if expected is None:
        assert found is None
        return
    assert found is not None
    for have, want in zip((found.first, found.second, found.tie), expected, strict=True):
        assert have == (None if want is None else pytest.approx(want))


def test_very_unlikely_is_a_bound() -> None:
    top = [{"token": " tie", "logprob": -0.1}, {"token": " first", "logprob": -9999.0}]
    content = [{"token": "VERDICT:"}, {"token": " tie", "top_logprobs": top}]
    found = read_probabilities("VERDICT: tie", content, TEXT)
    assert found == Probabilities(tie=pytest.approx(math.exp(-0.1)))


@pytest.mark.parametrize("verdict", ["auto", "text"])
def test_soft_verdicts_through_the_wire(verdict: str) -> None:
    with CountingServer(Setup(judges=SOFT)) as server:
        judge = config(server, "openai", soft=True, verdict=verdict)
        replies = ask(judge, [call(n) for n in range(5)]).replies
    lean = SOFT["*"]("a", "b", "").logprobs
    for reply in replies:
        assert reply.slot == "first"
        assert reply.p_first == pytest.approx(math.exp(lean["first"]))
        assert reply.p_second == pytest.approx(math.exp(lean["second"]))
        assert reply.p_tie == pytest.approx(math.exp(lean["tie"]))


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(faults.NO_LOGPROBS, id="P-34-refused"),
        pytest.param(Action(variant="no_logprobs"), id="P-34-ignored"),
    ],
)
def test_without_log_probabilities_it_stops_at_once(action: Action) -> None:
    with CountingServer(Setup(judges=SOFT)) as server:
        server.script(Rule(action=action))
        result = ask(config(server, "openai", soft=True), [call(n) for n in range(5)])
        assert server.bill()["requests"] == 1
    assert "soft = false" in str(result.halted[0])
