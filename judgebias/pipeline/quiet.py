"""What Ray is told before it is imported, so that a user's screen and stdout stay the user's.

Nothing here imports it.
"""

from __future__ import annotations

import os

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray prints what happens to workers on stdout, where --json belongs; we say it ourselves.
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    # A thread that still asks something after the end would start another Ray.
    "RAY_ENABLE_AUTO_CONNECT": "0",
}
"""Ray reads these when it is imported or starts; a user's own values stand."""


def quiet_ray() -> None:
    """Set the variables; to be called before `ray` is imported for the first time."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


FAREWELL = "farewell to Ray"
"""Name of the thread that disconnects; it hangs when there is nobody left to say it to."""
