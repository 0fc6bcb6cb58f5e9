from __future__ import annotations

import asyncio
import sys
import threading
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from judgebias.calls import Call, Pair
from judgebias.config import FunctionJudge
from judgebias.errors import ConfigError
from judgebias.judges.function import FunctionCaller, load_function, read_answer, takes_question
from judgebias.judges.local import open_local
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot

PAIR = Pair(pair_id="1", question="Q", answer_a="A", answer_b="B")


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Reply]:
    """Asks a function of the test as a judge does: imported by its name."""
    module = types.ModuleType("judge_of_the_test")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def asked(function: object, order: Order = Order.AB) -> Reply:
        module.judge = function  # type: ignore[attr-defined]
        config = FunctionJudge(name="f", provider="function", call="judge_of_the_test:judge")
        return asyncio.run(asked_once(FunctionCaller(config), Call(pair=PAIR, order=order)))

    return asked


async def asked_once(caller: FunctionCaller, call: Call) -> Reply:
    reply = await caller.ask(call)
    await caller.aclose()
    return reply


@pytest.mark.parametrize(("order", "shown"), [(Order.AB, ("A", "B")), (Order.BA, ("B", "A"))])
def test_a_function_of_two_sees_the_answers_in_slot_order(
    ask: Callable[..., Reply], order: Order, shown: tuple[str, str]
) -> None:
    seen: list[tuple[str, ...]] = []

    def two(first: str, second: str) -> str:
        seen.append((first, second))
        return "first"

    assert ask(two, order).slot is Slot.FIRST
    assert seen == [shown]


@pytest.mark.parametrize(
    ("order", "shown"), [(Order.AB, ("Q", "A", "B")), (Order.BA, ("Q", "B", "A"))]
)
def test_a_function_of_three_sees_the_question_as_well(
    ask: Callable[..., Reply], order: Order, shown: tuple[str, str, str]
) -> None:
    seen: list[tuple[str, ...]] = []

    def three(question: str, first: str, second: str) -> int:
        seen.append((question, first, second))
        return 2

    assert ask(three, order).slot is Slot.SECOND
    assert seen == [shown]


def test_an_async_function_is_awaited(ask: Callable[..., Reply]) -> None:
    async def later(first: str, second: str) -> str:  # noqa: ARG001
        await asyncio.sleep(0)
        return "tie"

    assert ask(later).slot is Slot.TIE


@pytest.mark.parametrize(
    ("answer", "slot"),
    [("first", "first"), ("second", "second"), ("tie", "tie"), (1, "first"), (2, "second")],
)
def test_the_five_answers(answer: object, slot: str) -> None:
    assert read_answer(answer).slot == slot


@pytest.mark.parametrize(
    "answer", [True, False, 0, 3, 1.0, None, "First", "A", "1", "", [], b"first", {}]
)
def test_any_other_answer_is_a_failure_and_never_a_tie(answer: object) -> None:
    reply = read_answer(answer)
    assert (reply.slot, reply.failure) == (None, FailureKind.FUNCTION_ERROR)
    assert repr(answer) in str(reply.message)


def test_a_long_answer_is_quoted_short() -> None:
    assert len(str(read_answer("x" * 100_000).message)) < 300


def raising(error: BaseException) -> Callable[[str, str], str]:
    def judge(_first: str, _second: str) -> str:
        raise error

    return judge


class Unsayable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even a message")


ERRORS = [ValueError("bad"), KeyError("k"), StopIteration(), OSError(5), SystemExit(3), Unsayable()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_a_function_raises_is_a_failed_call(
    ask: Callable[..., Reply], error: BaseException
) -> None:
    reply = ask(raising(error))
    assert reply.failure is FailureKind.FUNCTION_ERROR
    assert str(reply.message).startswith(f"{type(error).__name__}: ")


def test_what_an_async_function_raises_is_a_failed_call(ask: Callable[..., Reply]) -> None:
    async def judge(first: str, second: str) -> str:
        raise TimeoutError(first + second)

    assert ask(judge).message == "TimeoutError: AB"


def test_giving_up_is_no_answer(ask: Callable[..., Reply]) -> None:
    with pytest.raises(asyncio.CancelledError):
        ask(raising(asyncio.CancelledError()))


class Methods:
    def bound(self, first: str, second: str) -> str: ...

    def __call__(self, question: str, first: str, second: str) -> str: ...


def named(question: str, first: str, second: str) -> str: ...


@pytest.mark.parametrize(
    ("function", "with_question"),
    [
        (lambda _first, _second: 1, False),
        (lambda _question, _first, _second: 1, True),
        (lambda _first, _second, strict=True: strict, False),
        (lambda _first, _second, *more, **others: (more, others), False),
        (Methods().bound, False),
        (Methods(), True),
        (partial(named, "Q"), False),
    ],
)
def test_the_signature_says_whether_the_question_is_wanted(
    function: Callable[..., Any], *, with_question: bool
) -> None:
    assert takes_question(function, "m:f") is with_question


def by_name(first: str, second: str, *, strict: bool) -> str: ...


def three_by_name(first: str, *, second: str) -> str: ...


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda: 1, "takes 0 arguments"),
        (lambda _first: 1, "takes 1 arguments"),
        (lambda _a, _b, _c, _d: 1, "takes 4 arguments"),
        (lambda *both: both, "takes 0 arguments"),
        (by_name, "takes 3 arguments, strict by name only"),
        (three_by_name, "takes 2 arguments, second by name only"),
        (max, "does not say what it takes"),
    ],
)
def test_another_number_of_arguments_is_refused(function: Callable[..., Any], given: str) -> None:
    with pytest.raises(ConfigError, match=given) as error:
        takes_question(function, "m:f")
    assert "(question, first, second)" in error.value.expected


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("no_such_module_anywhere:judge", "cannot be imported"),
        ("math:no_such_name", "cannot be imported"),
        ("math:pi", "is a float, not callable"),
        ("math:pi.real.none", "cannot be imported"),
    ],
)
def test_a_function_that_is_not_there_is_named(call: str, given: str) -> None:
    with pytest.raises(ConfigError, match=given) as error:
        load_function(call)
    assert call in error.value.given


def test_a_name_inside_a_class_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "class J:\n    @staticmethod\n    def judge(a, b):\n        return 'tie'\n"
    (tmp_path / "judges_of_a_user.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = FunctionJudge(name="f", provider="function", call="judges_of_a_user:J.judge")
    judge = open_local(config, "")
    assert asyncio.run(judge.ask(Call(pair=PAIR, order=Order.AB))).slot is Slot.TIE
    sys.modules.pop("judges_of_a_user")


def test_an_async_function_that_blocks_does_not_hold_the_workers_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    until = threading.Event()

    async def blocks(_first: str, _second: str) -> str:
        until.wait(10)
        return "tie"

    module = types.ModuleType("blocking_judges")
    module.judge = blocks  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "blocking_judges", module)
    caller = FunctionCaller(
        FunctionJudge(name="f", provider="function", call="blocking_judges:judge")
    )

    async def beside() -> Slot | None:
        asking = asyncio.create_task(caller.ask(Call(pair=PAIR, order=Order.AB)))
        await asyncio.sleep(0)
        # Were the loop held, this line would be reached only after the wait.
        assert not asking.done()
        until.set()
        reply = await asking
        await caller.aclose()
        return reply.slot

    assert asyncio.run(beside()) is Slot.TIE


BROKEN = {
    "exits": ("import sys\nsys.exit(3)\n", "SystemExit: 3", ", line 2)"),
    "exits_quietly": ("raise SystemExit\n", "SystemExit: ", ", line 1)"),
    "raises": ("x = 1\nraise RuntimeError('boom\\nmore')\n", "RuntimeError: boom", ", line 2)"),
    "no_python": ("def f(: pass\n", "SyntaxError: invalid syntax", "line 1"),
    "not_utf8": ("x = '\udce9'\n", "SyntaxError: ", ""),
    "needs": (
        "import no_such_module_anywhere\n",
        "No module named 'no_such",
        ", line 1)",
    ),
    "takes": ("from math import no_such_name\n", "cannot import name 'no_such_name'", ", line 1)"),
    "lacks": ("def other(a, b): ...\n", "has no attribute 'judge'", ""),
    "number": ("judge = 3\n", "is a int, not callable", ""),
    "one": ("def judge(a): ...\n", "takes 1 arguments", ""),
    "deep": ("def f(): f()\nf()\n", "RecursionError: ", ", line 1)"),
    "unsayable": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n",
        "E: its message cannot be shown",
        ", line 3)",
    ),
    "lazy": ("def __getattr__(name): raise OSError('no disk')\n", "OSError: no disk", ", line 1)"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_module_that_cannot_be_used_is_one_block_before_anything_is_asked(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, given, place = BROKEN[name]
    module = f"broken_{name}"
    (tmp_path / f"{module}.py").write_bytes(source.encode("utf-8", "surrogateescape"))
    monkeypatch.syspath_prepend(str(tmp_path))
    config = FunctionJudge(name="f", provider="function", call=f"{module}:judge")
    try:
        with pytest.raises(ConfigError) as error:
            open_local(config, "")
    finally:
        sys.modules.pop(module, None)
    block = str(error.value)
    assert given in error.value.given
    assert place in error.value.given
    assert [line.split(":")[0] for line in block.splitlines()[1:]] == ["  expected", "  do"]
    assert error.value.exit_code == 2


@pytest.mark.parametrize("call", [".:f", "..x:f", "a..b:f", "math:.", "math:a."])
def test_a_name_of_dots_alone_is_no_fault_of_ours(call: str) -> None:
    with pytest.raises(ConfigError, match="cannot be imported"):
        load_function(call)


def test_an_interrupt_while_a_module_is_imported_is_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "interrupted_module.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        load_function("interrupted_module:judge")
