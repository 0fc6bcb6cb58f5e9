"""Where a run will be: on a Ray of its own here, or on a cluster."""

from __future__ import annotations

import os
import re
from pathlib import Path

from judgebias.errors import ConfigError, UsageError
from judgebias.objects import is_uri

LOCAL = "local"
"""An address that means: start a Ray of our own, whatever RAY_ADDRESS says."""
AUTO = "auto"
SUBMITTED = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Ray sets this variable, whose name is its value's, for the drivers of submitted jobs."""
ADDRESSES = '"auto", HOST:PORT of the head node (6379 by default), or "" for a local Ray'
MOST_PER_CPU = 32
"""A worker is a process; many more than this on one machine would only starve each other."""
_HOST_PORT = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})")


def checked_address(address: str) -> str:
    """Give the cluster's address, "" for a Ray of our own.

    Raises
    ------
    UsageError
        When it is none that Ray can be reached by: found here, where Ray would try for minutes.
    """
    found = effective_address(address)
    match = _HOST_PORT.fullmatch(found)
    if found in ("", AUTO) or (match and 0 < int(match[2]) < 2**16):
        return found
    do = "correct it; --address stands before both"
    if "://" in found:
        do = "give HOST:PORT of the head; the dashboard's address is for `ray job submit` alone"
    if not address:
        do += '; or set engine.address = "local", which leaves RAY_ADDRESS alone'
    raise UsageError(f"{named(address)} is no address of Ray", expected=ADDRESSES, do=do)


def named(address: str) -> str:
    """Name an address by the setting that gave it."""
    if address:
        return f"engine.address = {address!r}"
    return f"RAY_ADDRESS = {effective_address(address)!r}"


def refuse_crowd(address: str, workers: int) -> None:
    """Refuse more workers than this machine could start.

    Raises
    ------
    UsageError
        On a local Ray, where each worker is a process here.
    """
    most = MOST_PER_CPU * (os.cpu_count() or 1)
    if runs_here(address) and workers > most:
        raise UsageError(
            f"engine.workers = {workers} on this machine alone",
            expected=f"at most {most} here: {MOST_PER_CPU} for each CPU",
            do="leave it 0; what bounds the calls at once is max_in_flight of each judge",
        )


def in_submitted_job() -> bool:
    """Tell whether this process is the driver of a job that was submitted to a cluster."""
    return SUBMITTED in os.environ


def refuse_lost_folder(what: str, out: str) -> None:
    """Refuse a relative folder in a submitted job: it would go with the job's own copy of files.

    Raises
    ------
    ConfigError
        Where the results would be lost with the job.
    """
    if in_submitted_job() and not is_uri(out) and not Path(out).is_absolute():
        raise ConfigError(
            f"{what} = {out!r} is relative, in a job that was submitted to a cluster",
            expected="an absolute folder that every node mounts, or s3://BUCKET/PREFIX",
            do="the job's working directory is a copy that goes with the job",
        )


def effective_address(address: str) -> str:
    """Give the cluster's address, "" for a Ray of our own."""
    address = (address or os.environ.get("RAY_ADDRESS", "")).strip()
    return "" if address == LOCAL else address


def runs_here(address: str) -> bool:
    """Tell whether every worker will be on this machine, with this environment."""
    return not effective_address(address)
