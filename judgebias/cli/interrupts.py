"""Signals outside the time in which calls are under way: stop at once, say so, lose nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

from judgebias.cli.exits import Exit
from judgebias.errors import Stopped


@contextmanager
def interruptible() -> Generator[None]:
    """Turn SIGINT and SIGTERM into `Stopped`; a second one leaves at once.

    Every file is written whole or not at all, so any moment is good enough to stop at. While calls
    are under way the pipeline's own handlers stand in front of these.

    Raises
    ------
    Stopped
        When a signal came.
    """
    came = False

    def handle(number: int, _frame: FrameType | None) -> None:
        nonlocal came
        if came:
            os._exit(Exit.INTERRUPTED)
        came = True
        # Not an Exception: libraries that are at work meanwhile swallow those.
        raise KeyboardInterrupt(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as error:
        # SystemExit: Ray puts its own handler for SIGTERM in place while it starts.
        raise Stopped(
            "interrupted: nothing is under way, and every reply so far is on disk",
            do="the same command goes on from here",
        ) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
