"""Open files: a connection is one, so the system's limit on them bounds the windows."""

from __future__ import annotations

import resource

from judgebias.config import RunConfig, WireJudge
from judgebias.errors import ConfigError
from judgebias.pipeline.plan import window_of

RESERVE = 256
"""Files a worker has open besides its connections: journal, pairs, libraries, Ray's sockets."""


def check_files(config: RunConfig) -> None:
    """Refuse windows that no worker here could open connections for.

    Raises
    ------
    ConfigError
        When a single worker could not hold every window; more workers share them.
    """
    needed = sum(window_of(judge) for judge in config.judges if isinstance(judge, WireJudge))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and needed + RESERVE > most:
        raise ConfigError(
            f"the judges may have {needed:,} calls in flight, and this system lets a process open "
            f"{most:,} files",
            expected=f"at most {max(0, most - RESERVE):,} in flight over all judges",
            do="lower max_in_flight, or raise the limit (ulimit -Hn)",
        )


def allow_files() -> None:
    """Raise this process's own limit to what the system allows: the usual 1,024 is soon used up."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
