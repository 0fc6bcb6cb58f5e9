"""Who the judges of a run are, and what run.json says about it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgebias.config import (
    FunctionJudge,
    JudgeConfig,
    ReplayJudge,
    RunConfig,
    WireJudge,
    fingerprint,
    identity,
)
from judgebias.design import Design
from judgebias.judges.function import load_function
from judgebias.judges.opening import said_by_wire
from judgebias.judges.replay import recorded_bytes
from judgebias.judges.secrets import endpoint
from judgebias.manifest import Manifest, utc_now
from judgebias.pairs import Survey

PACKAGES = ("judgebias-batch", "ray", "polars", "pyarrow", "numpy", "scipy", "openai", "anthropic")
"""Packages on which a reply or a figure can depend."""


def identify(config: RunConfig, base: Path) -> dict[str, dict[str, Any]]:
    """Give each judge's identity: everything that can change what it says."""
    return {judge.name: _identity(judge, base) for judge in config.judges}


def _identity(judge: JudgeConfig, base: Path) -> dict[str, Any]:
    match judge:
        case WireJudge():
            text, address = said_by_wire(judge, str(base))
            return identity(judge, template_text=text, endpoint=address)
        case ReplayJudge():
            return {**identity(judge), "records": _hash(*recorded_bytes(judge, str(base)))}
        case FunctionJudge():
            return {**identity(judge), "source": _hash(_source(judge, base))}
        case _:
            return identity(judge)


def _hash(*parts: bytes) -> str:
    return hashlib.blake2b(b"".join(parts), digest_size=16).hexdigest()


def _source(judge: FunctionJudge, base: Path) -> bytes:
    """Give the function's own source; what it calls is not looked at."""
    try:
        return inspect.getsource(load_function(judge.call, str(base))).encode()
    except (OSError, TypeError):
        return b""


def describe(
    config: RunConfig,
    old: Manifest | None,
    identities: Mapping[str, dict[str, Any]],
    survey: Survey,
    design: Design,
    base: Path,
) -> Manifest:
    """Describe a start of the run; a judge that an earlier start had stays on record."""
    merged = {**({} if old is None else old.identities), **identities}
    return Manifest(
        version=importlib.metadata.version(PACKAGES[0]),
        versions={
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES[1:]},
        },
        config=without_secrets(config),
        identities=merged,
        fingerprints={name: fingerprint(fields).hex() for name, fields in merged.items()},
        input_fingerprint=survey.fingerprint,
        n_pairs=survey.n_pairs,
        n_rejects=survey.n_rejects,
        skipped=survey.skipped,
        pairs_below=design.pairs_below,
        swap_below=design.swap_below,
        probed=config.self_pair > 0 or (old is not None and old.probed),
        base=str(base.absolute()),
        forms={} if old is None else old.forms,
        unrecorded_requests=0 if old is None else old.unrecorded_requests,
        unrecorded_usd=0.0 if old is None else old.unrecorded_usd,
        held={} if old is None else old.held,
        epoch=1 if old is None else old.epoch + 1,
        started=utc_now(),
    )


def without_secrets(config: RunConfig) -> RunConfig:
    """Leave user info and query out of base URLs: what is written down may be read by anybody."""
    judges = [
        judge.model_copy(update={"base_url": endpoint(judge)})
        if isinstance(judge, WireJudge) and judge.base_url
        else judge
        for judge in config.judges
    ]
    return config.model_copy(update={"judges": tuple(judges)})
