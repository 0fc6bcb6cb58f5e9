"""A judge that is a function of the user's, with (first, second) or (question, first, second)."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import TypeAlias, cast

from judgebias.calls import Call
from judgebias.config import FunctionJudge
from judgebias.errors import ConfigError
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Slot

_ANSWERS: dict[object, Slot] = {
    **{slot.value: slot for slot in Slot},
    1: Slot.FIRST,
    2: Slot.SECOND,
}
_Async: TypeAlias = Callable[..., Awaitable[object]]
_IMPORTING = frozenset(
    {__file__, importlib.__file__, "<frozen importlib._bootstrap>"}
    | {"<frozen importlib._bootstrap_external>"}
)
"""Frames of the import itself, which say nothing of why it failed."""
_GATHERS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class FunctionCaller:
    """Asks a plain or async Python function, and keeps what it raises as a failure."""

    def __init__(self, config: FunctionJudge, base: str = "") -> None:
        self._function = load_function(config.call, base)
        self._with_question = takes_question(self._function, config.call)
        # On the worker's own event loop a function that blocks would keep the lease from being
        # renewed. One thread unless the run file allows more: a plain function need not bear
        # company; an async one gets a loop of its own.
        threads = max(1, config.max_in_flight)
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="function")
        self._loop: asyncio.AbstractEventLoop | None = None
        if inspect.iscoroutinefunction(self._function):
            self._loop = asyncio.new_event_loop()
            Thread(target=_serve, args=(self._loop,), name="function", daemon=True).start()

    async def ask(self, call: Call) -> Reply:
        """Call the function; what it raises or answers wrongly is a failed call, never a tie."""
        shown: tuple[str, ...] = (call.first, call.second)
        if self._with_question:
            shown = (call.pair.question, *shown)
        if self._loop is not None:
            work = _awaited(cast("_Async", self._function), shown)
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, _called, self._function, shown)

    async def aclose(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _called(function: Callable[..., object], shown: tuple[str, ...]) -> Reply:
    # Caught within the thread: a future cannot carry every exception (StopIteration hangs it), and
    # a SystemExit that reaches the event loop would end it under all judges of the worker.
    try:
        return read_answer(function(*shown))
    except asyncio.CancelledError:
        raise  # the call is given up; it stays pending
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        return _raised(error)


async def _awaited(function: _Async, shown: tuple[str, ...]) -> Reply:
    try:
        return read_answer(await function(*shown))
    except asyncio.CancelledError:
        raise  # the call is given up; it stays pending
    except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
        return _raised(error)


def _raised(error: BaseException) -> Reply:
    return Reply(failure=FailureKind.FUNCTION_ERROR, message=_told(error))


def _told(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an exception of the user's may not even say what it is
        said = "its message cannot be shown"
    return f"{type(error).__name__}: {said}"


def read_answer(answer: object) -> Reply:
    """Read first/second/tie or 1/2; True is not 1, and anything else is a failure."""
    known = isinstance(answer, str | int) and not isinstance(answer, bool)
    slot = _ANSWERS.get(answer) if known else None
    if slot is None:
        message = f"the function answered {answer!r:.200}, not first, second, tie, 1 or 2"
        return Reply(failure=FailureKind.FUNCTION_ERROR, message=message)
    return Reply(slot=slot)


def load_function(call: str, base: str = "") -> Callable[..., object]:
    """Import `module:name`; the folder `base`, where the run file is, is looked in as well.

    Raises
    ------
    ConfigError
        When the module or the name does not exist, the module fails as it is imported, or the name
        cannot be called.
    """
    module_name, _, name = call.partition(":")
    if base and base not in sys.path:
        sys.path.append(base)
    try:
        target: object = importlib.import_module(module_name)
        for part in name.split("."):
            target = getattr(target, part)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # A user's module may do anything as it is imported, sys.exit as well.
        raise ConfigError(
            f"the judge function {call!r} cannot be imported: {_first_line(error)}{_place(error)}",
            expected="module:name, in the run file's folder or on the import path of every worker",
            do=f"see that `import {module_name}` works by itself, and that it has {name}",
        ) from error
    if not callable(target):
        raise ConfigError(
            f"the judge function {call!r} is a {type(target).__name__}, not callable",
            expected="a function of (first, second) or (question, first, second)",
            do="name the function itself",
        )
    return target


def _first_line(error: BaseException) -> str:
    return (_told(error).splitlines() or [""])[0]


def _place(error: BaseException) -> str:
    """Say where in the user's own code an import failed, where that is known."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename not in _IMPORTING]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def takes_question(function: Callable[..., object], call: str) -> bool:
    """Tell (question, first, second) from (first, second) by the signature."""
    expected = "(first, second) or (question, first, second)"
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"the judge function {call!r} does not say what it takes",
            expected=expected,
            do="wrap it in a function of your own that names its arguments",
        ) from error
    needed = [p for p in parameters if p.default is p.empty and p.kind not in _GATHERS]
    named = [p.name for p in needed if p.kind is p.KEYWORD_ONLY]
    if len(needed) not in (2, 3) or named:
        only = f", {', '.join(named)} by name only" if named else ""
        raise ConfigError(
            f"the judge function {call!r} takes {len(needed)} arguments{only}",
            expected=expected,
            do="give the others a default, or wrap it in a function of your own",
        )
    return len(needed) == 3
