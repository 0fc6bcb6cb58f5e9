"""What a command's exit code says; scripts and schedulers rely on it."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The closed list of exit codes."""

    COMPLETE = 0
    """Everything was done; rejected input rows alone change nothing."""
    GATE_FAILED = 1
    """A bound that was asked for does not hold, or cannot be measured."""
    USAGE = 2
    """Wrong usage, configuration or input; nothing was asked."""
    UNANSWERED = 3
    """Finished, but some calls ended without a verdict."""
    STOPPED = 4
    """Stopped early; the same command goes on from here."""
    OUR_FAULT = 70
    """A fault of judgebias itself."""
    INTERRUPTED = 130
    """The second interrupt: left at once."""
