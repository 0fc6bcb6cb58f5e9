"""Whether a process of this machine is there."""

from __future__ import annotations

import os


def lives(pid: int) -> bool:
    """Tell whether a process has this number; it may be another one than it was."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is there, and another user's
    return True
