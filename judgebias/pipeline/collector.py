"""Python's search for cycles of objects, made rarer in a worker.

A worker makes and drops hundreds of thousands of small objects a second, none of them in a cycle.
By default the search walks over all that are alive again and again, and over everything that Ray
and the others have imported: a third of a worker's CPU where a judge answers at once.
"""

from __future__ import annotations

import gc
from typing import Final

_NEW: Final = 100_000
"""Objects made and not dropped before the young ones are searched; by default 700."""
_ROUNDS: Final = 20
"""Searches of the young before the older ones are searched; by default 10."""


def search_rarely() -> None:
    """Search what is imported by now never again, and the rest rarely."""
    gc.freeze()
    gc.set_threshold(_NEW, _ROUNDS, _ROUNDS)
