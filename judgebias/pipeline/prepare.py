"""Before anything is asked: read the input, open the run directory, find what is missing."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.calls import KEY_BYTES, call_keys, call_mask
from judgebias.config import (
    FunctionJudge,
    JudgeConfig,
    ReplayJudge,
    RunConfig,
    WireJudge,
    fingerprint,
    identity,
)
from judgebias.design import Design, Words, cutoff, draws, words_of
from judgebias.errors import ConfigError, JudgebiasError
from judgebias.journal import contains, done_keys, failed_tries, merge_segments, recover
from judgebias.judges.local import open_local
from judgebias.judges.opening import said_by_wire
from judgebias.judges.secrets import endpoint, read_key
from judgebias.pairs import PairsSpec, Reject, Survey, survey_pairs
from judgebias.pipeline.blocks import TaskBlock
from judgebias.pipeline.changes import changes_of_input
from judgebias.pipeline.place import runs_here
from judgebias.pipeline.plan import RunPlan
from judgebias.pipeline.unbuilt import refuse_unbuilt
from judgebias.rundir import Manifest, RunDir, check_same, utc_now
from judgebias.verdicts import Order

PACKAGES = ("judgebias-batch", "ray", "polars", "pyarrow", "numpy", "scipy", "openai", "anthropic")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """A run that can start: everything checked, nothing asked."""

    plan: RunPlan
    rundir: RunDir
    blocks: tuple[TaskBlock, ...]
    """Blocks that still have calls to ask, judge by judge in turn."""
    done: npt.NDArray[np.uint64]
    """Keys of calls that are not to be asked: verdicts, and calls whose tries are used up."""
    expected: Mapping[str, int]
    """Judge -> calls of the design."""
    missing: Mapping[str, int]
    """Judge -> calls still to be asked."""
    text_bytes: Mapping[str, int]
    """Judge -> bytes of the questions and answers in those calls."""
    notices: tuple[str, ...]
    """What the user should be told, one sentence each."""


@contextmanager
def prepared(
    config: RunConfig, *, base: Path, limit: int = 0, only: tuple[str, ...] = ()
) -> Generator[Ready]:
    """Check everything and hold the run directory while the run goes on.

    Parameters
    ----------
    config
        The run.
    base
        The folder that relative paths start from.
    limit
        Judge only a seeded sample of this many pairs; 0 = all. A larger sample contains a smaller.
    only
        Ask only these judges now; () = all.

    Raises
    ------
    UsageError, InputError, ConfigError
        Something cannot be used; nothing was asked.
    JournalDamaged
        The journal of an earlier start fails its checksums.
    """
    if "://" in config.out:
        raise ConfigError(
            f"out = {config.out!r} is a URI", expected="a folder that this machine can write"
        )
    refuse_unbuilt(config)
    _open_local(config, base, only)
    rundir = RunDir(base / config.out)
    rundir.prepare()
    with rundir.owned():
        yield _ready(config, rundir, base, limit, only)


def _ready(
    config: RunConfig, rundir: RunDir, base: Path, limit: int, only: tuple[str, ...]
) -> Ready:
    old = rundir.manifest() if rundir.exists else None
    identities = {judge.name: _identity(judge, base) for judge in config.judges}
    if old is not None:
        check_same(old, identities)
    spec = _spec(config, base)
    survey = _surveyed(spec, rundir)
    words = words_of(b"".join(survey.index["digest"]))
    design = _design(config, words, limit)
    notices = [*survey.notices, *_rejected(survey.n_rejects, rundir)]
    if old is not None:
        notices += changes_of_input(rundir.scan_index().collect(), survey.index)
    manifest = _manifest(config, old, identities, survey, design)
    rundir.write_index(survey.index)
    notices += _recovered(rundir)
    rundir.write_manifest(manifest)
    plan = RunPlan(
        config=config,
        spec=spec,
        blocks=tuple(survey.blocks),
        design=design,
        journal=str(rundir.journal),
        epoch=manifest.epoch,
        fingerprints={name: bytes.fromhex(text) for name, text in manifest.fingerprints.items()},
        forms=manifest.forms,
        base=str(base),
    )
    return _with_blocks(plan, rundir, survey, words, only, tuple(notices))


def _identity(judge: JudgeConfig, base: Path) -> dict[str, Any]:
    if not isinstance(judge, WireJudge):
        return identity(judge)
    text, address = said_by_wire(judge, str(base))
    return identity(judge, template_text=text, endpoint=address)


def _without_secrets(config: RunConfig) -> RunConfig:
    """Leave user info and query out of base URLs: what is written down may be read by anybody."""
    judges = [
        judge.model_copy(update={"base_url": endpoint(judge)})
        if isinstance(judge, WireJudge) and judge.base_url
        else judge
        for judge in config.judges
    ]
    return config.model_copy(update={"judges": tuple(judges)})


def _open_local(config: RunConfig, base: Path, only: tuple[str, ...]) -> None:
    """Find a wrong path, function or key here, where nothing is started yet."""
    for judge in config.judges:
        if only and judge.name not in only:
            continue
        if isinstance(judge, FunctionJudge | ReplayJudge):
            open_local(judge, str(base))
        elif isinstance(judge, WireJudge) and runs_here(config.engine.address):
            read_key(judge, os.environ, base)


def _spec(config: RunConfig, base: Path) -> PairsSpec:
    return PairsSpec(
        source=config.pairs,
        columns=config.columns,
        pairs_per_block=config.engine.pairs_per_block,
        empty=config.empty,
        cluster=config.cluster,
        base=base,
    )


def _surveyed(spec: PairsSpec, rundir: RunDir) -> Survey:
    """Read the whole input once; rejected rows go straight to their file."""
    temporary = rundir.rejects.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:

        def reject(row: Reject) -> None:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")

        try:
            survey = survey_pairs(spec, on_reject=reject)
        except JudgebiasError:
            temporary.unlink()
            raise
    temporary.replace(rundir.rejects)
    return survey


def _rejected(count: int, rundir: RunDir) -> list[str]:
    return [f"{count} input rows cannot be judged: see {rundir.rejects}"] if count else []


def _design(config: RunConfig, words: Words, limit: int) -> Design:
    design = Design(orders=config.orders, seed=config.seed, repeats=config.repeats)
    chosen = draws(words, seed=config.seed, salt="pairs")
    below = cutoff(chosen, limit) if limit else design.pairs_below
    swap = 0
    if config.orders == "sampled":
        sample = words[chosen < np.uint64(below)] if limit and limit < len(words) else words
        count = round(config.swap_fraction * len(sample))
        swap = cutoff(draws(sample, seed=config.seed, salt="swap"), count)
    return Design(
        orders=config.orders,
        seed=config.seed,
        repeats=config.repeats,
        pairs_below=below,
        swap_below=swap,
    )


def _manifest(
    config: RunConfig,
    old: Manifest | None,
    identities: Mapping[str, dict[str, Any]],
    survey: Survey,
    design: Design,
) -> Manifest:
    """Describe the run; a judge that an earlier start had stays on record."""
    kept = {} if old is None else old.identities
    merged = {**kept, **identities}
    return Manifest(
        version=importlib.metadata.version(PACKAGES[0]),
        versions={
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES[1:]},
        },
        config=_without_secrets(config),
        identities=merged,
        fingerprints={name: fingerprint(fields).hex() for name, fields in merged.items()},
        input_fingerprint=survey.fingerprint,
        n_pairs=survey.index.height,
        n_rejects=survey.n_rejects,
        pairs_below=design.pairs_below,
        swap_below=design.swap_below,
        forms={} if old is None else old.forms,
        epoch=1 if old is None else old.epoch + 1,
        started=utc_now(),
    )


def _recovered(rundir: RunDir) -> list[str]:
    recovery = recover(rundir.journal)
    merge_segments(rundir.journal)
    if not recovery.torn_bytes:
        return []
    return [f"{recovery.torn_bytes} bytes of unfinished records were cut from the journal"]


def _with_blocks(
    plan: RunPlan,
    rundir: RunDir,
    survey: Survey,
    words: Words,
    only: tuple[str, ...],
    notices: tuple[str, ...],
) -> Ready:
    names = [judge.name for judge in plan.config.judges if not only or judge.name in only]
    mine = {name: plan.fingerprints[name] for name in names}
    done = done_keys(rundir.journal, mine)
    done, given_up = _with_used_up(plan, rundir, mine, done)
    block_of = survey.index["block"].to_numpy()
    per_pair = {name: _missing_by_pair(plan, mine[name], words, done) for name in names}
    left = {
        name: np.bincount(block_of, weights=calls, minlength=len(plan.blocks)).astype(np.int64)
        for name, calls in per_pair.items()
    }
    sizes = survey.index["n_bytes"].to_numpy()
    n_asked = sum(int(asked.sum()) for asked in plan.design.asked(words).values())
    blocks = [
        TaskBlock(judge=name, number=block, n_calls=int(left[name][block]))
        for block in range(len(plan.blocks))
        for name in names
        if left[name][block]
    ]
    return Ready(
        plan=plan,
        rundir=rundir,
        blocks=tuple(blocks),
        done=done,
        expected=dict.fromkeys(names, n_asked * plan.design.repeats),
        missing={name: int(calls.sum()) for name, calls in left.items()},
        text_bytes={name: int(sizes @ calls) for name, calls in per_pair.items()},
        notices=(*notices, *given_up),
    )


def _missing_by_pair(
    plan: RunPlan, fingerprint: bytes, words: Words, done: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Count for each pair the calls of one judge that are neither done nor given up."""
    left = np.zeros(len(words), dtype=np.int64)
    asked, joined = plan.design.asked(words), words.tobytes()
    for repeat in range(1, plan.design.repeats + 1):
        for order in Order:
            keys = call_keys(joined, call_mask(fingerprint, order, repeat))
            left += asked[order] & ~contains(done, keys)
    return left


def _with_used_up(
    plan: RunPlan, rundir: RunDir, mine: Mapping[str, bytes], done: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.uint64], list[str]]:
    """Add the calls whose tries are used up: they stay failures and are not asked again."""
    limits = {judge.name: judge.max_tries_total for judge in plan.config.judges}
    tries = failed_tries(rundir.journal, mine, done)
    bound = pl.col("judge").cast(pl.String).replace_strict(limits, return_dtype=pl.Int64)
    used_up = tries.filter(pl.col("attempts") >= bound) if tries.height else tries
    if not used_up.height:
        return done, []
    keys = np.frombuffer(b"".join(used_up["key"]), dtype=np.uint64).reshape(-1, KEY_BYTES // 8)
    both = np.concatenate([done, keys.T.astype(np.uint64)], axis=1)
    order = np.lexsort((both[1], both[0]))
    sentence = f"{used_up.height} calls failed max_tries_total times and are not asked again"
    return np.ascontiguousarray(both[:, order]), [sentence]
