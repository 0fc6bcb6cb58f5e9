"""The manifest of a run, `run.json`: what was asked of whom, and what a later start is bound to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from judgebias.config import RunConfig
from judgebias.config.judge import Strict
from judgebias.design import Design
from judgebias.errors import ConfigError

FORMAT = 1
"""Raised whenever an older judgebias could misread a run directory."""


class Manifest(Strict):
    """What `run.json` says: the resolved configuration, and what it is bound to."""

    format: int = FORMAT
    version: str
    """The version of judgebias that wrote it."""
    versions: dict[str, str]
    """The packages that a figure or a reply can depend on."""
    config: RunConfig
    identities: dict[str, dict[str, Any]]
    """Judge -> everything that can change what it says."""
    fingerprints: dict[str, str]
    """Judge -> its identity's hash, hexadecimal."""
    input_fingerprint: str
    n_pairs: int
    n_rejects: int
    skipped: dict[str, int] = Field(default_factory=dict)
    """Task -> pairs left out for an identity leak; they are among the rejects."""
    pairs_below: int
    """Bound of the pairs' draws; larger than any draw without `--limit`."""
    swap_below: int = 0
    probed: bool = False
    """Whether any start asked self pairs."""
    forms: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Judge -> the verdict form that its first call settled."""
    held: dict[str, int] = Field(default_factory=dict)
    """Segment of the journal -> replies in it when an owner last looked; it never holds fewer."""
    unrecorded_requests: int = 0
    """Requests that count for the budget and have no reply in the journal: a worker died, or a call
    was broken off."""
    unrecorded_usd: float = 0.0
    """What they may have cost at most, where dollars are bounded."""
    base: str = ""
    """The folder that relative paths of the configuration start from."""
    epoch: int
    """How often the command was started here."""
    started: str
    """UTC."""


def design_of(manifest: Manifest) -> Design:
    """Give the design of the run's last start."""
    config = manifest.config
    return Design(
        orders=config.orders,
        seed=config.seed,
        repeats=config.repeats,
        pairs_below=manifest.pairs_below,
        swap_below=manifest.swap_below,
    )


def check_same(old: Manifest, new: dict[str, dict[str, Any]]) -> None:
    """Refuse to mix two judges under one name.

    Raises
    ------
    ConfigError
        When a judge that was asked already would now be asked differently; the difference is shown.
    """
    for name, now in new.items():
        before = old.identities.get(name)
        if before is None or before == now:
            continue
        changes = [
            f"{key}: {before.get(key)!r} -> {now.get(key)!r}"
            for key in sorted(before.keys() | now.keys())
            if before.get(key) != now.get(key)
        ]
        raise ConfigError(
            f"the judge {name!r} of this run directory was another one: " + "; ".join(changes),
            expected="a judge that was asked already stays as it was, so that verdicts never mix",
            do="give the changed judge a new name, or choose another --out",
        )


def utc_now() -> str:
    """The time as manifests carry it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
