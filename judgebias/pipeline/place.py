"""Where a run will be: on a Ray of its own here, or on a cluster."""

from __future__ import annotations

import os

LOCAL = "local"
"""An address that means: start a Ray of our own, whatever RAY_ADDRESS says."""


def effective_address(address: str) -> str:
    """Give the cluster's address, "" for a Ray of our own."""
    address = address or os.environ.get("RAY_ADDRESS", "")
    return "" if address == LOCAL else address


def runs_here(address: str) -> bool:
    """Tell whether every worker will be on this machine, with this environment."""
    return not effective_address(address)
