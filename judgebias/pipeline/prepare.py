"""Before anything is asked: check the run file, read the input, open the run directory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from judgebias.config import FunctionJudge, ReplayJudge, RunConfig, WireJudge
from judgebias.design import Design, Words
from judgebias.errors import ConfigError, JudgebiasError
from judgebias.families import families_of, judge_families, own_family_warnings
from judgebias.held import with_held
from judgebias.judges.local import open_local
from judgebias.judges.opening import template_of
from judgebias.judges.secrets import read_key
from judgebias.manifest import Manifest, check_same
from judgebias.objects import is_uri
from judgebias.outputs import refuse_own_outputs
from judgebias.pace.budget import Amount
from judgebias.pairs import PairsSpec, Reject, Survey, survey_pairs
from judgebias.pipeline.changes import changes_of_input, changes_of_run
from judgebias.pipeline.drawn import drawn_design, untouched
from judgebias.pipeline.files import check_files
from judgebias.pipeline.identify import describe, identify
from judgebias.pipeline.leaking import leaks_of_run, template_leaks
from judgebias.pipeline.place import (
    LOCAL,
    checked_address,
    refuse_crowd,
    refuse_lost_folder,
    runs_here,
)
from judgebias.pipeline.plan import RunPlan
from judgebias.pipeline.ready import Ready, make_ready
from judgebias.pipeline.spent import check_prices
from judgebias.pipeline.stopping import buying_order_of
from judgebias.pipeline.surveyed import models_of, questions_of, rows_of_items
from judgebias.pipeline.texts import notices_of_probe, notices_of_texts
from judgebias.pipeline.unbuilt import refuse_unbuilt
from judgebias.rundir import RunDir
from judgebias.self_pairs import draw_items, item_words
from judgebias.stored import open_rundir
from judgebias.summary.leaks import leak_words


@contextmanager
def prepared(
    config: RunConfig,
    *,
    base: Path,
    limit: int = 0,
    only: tuple[str, ...] = (),
    take_over: bool = False,
    probe: bool = False,
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
    take_over
        Own the run directory even if another host's process seems to.
    probe
        Ask the self-pair probe only; the pairs stay as an earlier start left them.

    Raises
    ------
    UsageError, InputError, ConfigError
        Something cannot be used; nothing was asked.
    JournalDamaged
        The journal of an earlier start fails its checksums, or holds less than it did.
    """
    rundir = _checked(config, base, only)
    _open_keys(config, base, only)
    rundir.prepare()
    with rundir.owned(take_over=take_over), rundir.new_index() as made:
        to_file = partial(_survey_to_file, rundir=rundir, index_file=made)
        checked = _read(config, base, rundir, limit, only, to_file, probe=probe)
        rundir.place_index(made.replace)
        checked = replace(checked, survey=checked.survey.moved(rundir.index))
        torn = _recovered(rundir)
        rundir.write_manifest(with_held(rundir, checked.manifest))
        yield _ready(config, base, rundir, checked, only, torn)


def examined(config: RunConfig, *, base: Path, limit: int = 0, only: tuple[str, ...] = ()) -> Ready:
    """Check everything and leave nothing written: what a run would find, refuse and ask.

    A key that is missing here is a notice and no refusal: counting needs none.
    """
    rundir = _checked(config, base, only)
    rundir.check()
    keys = _missing_keys(config, base, only)
    checked = _read(config, base, rundir, limit, only, survey_pairs)
    return _ready(config, base, rundir, checked, only, keys)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Checked:
    survey: Survey
    design: Design
    """What this start asks of the pairs."""
    items: Words
    """What it asks of the probe."""
    manifest: Manifest
    notices: list[str]


def _checked(config: RunConfig, base: Path, only: tuple[str, ...]) -> RunDir:
    """Find what is wrong with the run file before the input is read."""
    refuse_unbuilt(config)
    check_files(config)
    refuse_lost_folder("out", config.out)
    refuse_crowd(checked_address(config.engine.address) or LOCAL, config.engine.workers)
    _refuse_own_outputs(config, base)
    check_prices(config.budget, [j for j in config.judges if not only or j.name in only])
    for judge in config.judges:
        asked = not only or judge.name in only
        if asked and isinstance(judge, FunctionJudge | ReplayJudge):
            open_local(judge, str(base))
        if isinstance(judge, WireJudge):
            template_of(judge, str(base))
    return open_rundir(config.out, base)


def _refuse_own_outputs(config: RunConfig, base: Path) -> None:
    """Keep the run's own files out of what it reads the next time."""
    out = config.out if is_uri(config.out) else base / config.out
    refuse_own_outputs("pairs", config.pairs, base=base, out=out, deep=False)
    for judge in config.judges:
        if isinstance(judge, ReplayJudge):
            what = f"path of judge {judge.name!r}"
            refuse_own_outputs(what, judge.path, base=base, out=out, deep=True)


def _open_keys(config: RunConfig, base: Path, only: tuple[str, ...]) -> None:
    """Find a missing key here, where every worker will have this environment."""
    for judge in config.judges:
        asked = not only or judge.name in only
        if asked and isinstance(judge, WireJudge) and runs_here(config.engine.address):
            read_key(judge, os.environ, base)


def _missing_keys(config: RunConfig, base: Path, only: tuple[str, ...]) -> list[str]:
    try:
        _open_keys(config, base, only)
    except ConfigError as error:
        return [f"a run would be refused here: {error.given}"]
    return []


def _read(
    config: RunConfig,
    base: Path,
    rundir: RunDir,
    limit: int,
    only: tuple[str, ...],
    survey_by: Callable[[PairsSpec], Survey],
    *,
    probe: bool = False,
) -> _Checked:
    """Read the whole input once, and compare it with an earlier start."""
    old = rundir.manifest() if rundir.exists else None
    identities: dict[str, dict[str, Any]] = identify(config, base)
    if old is not None:
        check_same(old, identities)
    survey = survey_by(_spec(config, base))
    words, questions = survey.digests(), questions_of(survey, config.orders)
    design = drawn_design(config, words, limit, questions=questions, old=old)
    kept = untouched(design, old) if probe else design
    notices = [*survey.notices, *notices_of_texts(config, survey)]
    models = models_of(survey)
    notices += own_family_warnings(judge_families(config), models, families_of(config))
    leaks = leaks_of_run(config, survey, words, design)
    notices += [*leak_words(leaks, config.on_leak), *template_leaks(config, models, base)]
    if old is not None:
        if not rundir.index.exists():
            notices.append(f"{rundir.index} was missing and is written again")
        elif old.input_fingerprint != survey.fingerprint:
            notices += changes_of_input(rundir.scan_index(), survey.rows.scan)
        notices += changes_of_run(old, config, kept, words, only, questions)
    items = draw_items(rows_of_items(survey, config), count=config.self_pair, seed=config.seed)
    notices += notices_of_probe(config, items.height)
    return _Checked(
        survey=survey,
        items=item_words(items),
        design=replace(design, pairs_below=0) if probe else design,
        manifest=describe(config, old, identities, survey, kept, base),
        notices=notices,
    )


def _ready(
    config: RunConfig,
    base: Path,
    rundir: RunDir,
    checked: _Checked,
    only: tuple[str, ...],
    more: list[str],
) -> Ready:
    manifest = checked.manifest
    plan = RunPlan(
        config=config,
        spec=_spec(config, base),
        blocks=tuple(checked.survey.blocks),
        design=checked.design,
        items=checked.items,
        journal=rundir.journal_place,
        epoch=manifest.epoch,
        fingerprints={name: bytes.fromhex(text) for name, text in manifest.fingerprints.items()},
        forms=manifest.forms,
        unrecorded=Amount(calls=manifest.unrecorded_requests, usd=manifest.unrecorded_usd),
        base=str(base),
        buying=buying_order_of(config, checked.survey, checked.design),
    )
    notices = (*checked.notices, *more)
    return make_ready(plan, rundir, checked.survey, only, notices)


def _spec(config: RunConfig, base: Path) -> PairsSpec:
    return PairsSpec(
        source=config.pairs,
        columns=config.columns,
        pairs_per_block=config.engine.pairs_per_block,
        empty=config.empty,
        on_leak=config.on_leak,
        cluster=config.cluster,
        base=base,
    )


def _survey_to_file(spec: PairsSpec, rundir: RunDir, index_file: Path) -> Survey:
    """Survey the pairs; the index and rejected rows, however many, go straight to their files."""
    temporary = rundir.rejects.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:

        def reject(row: Reject) -> None:
            file.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")

        try:
            survey = survey_pairs(spec, on_reject=reject, index_file=index_file)
        except JudgebiasError:
            temporary.unlink()
            raise
    temporary.replace(rundir.rejects)
    n_faulty = survey.n_rejects - sum(survey.skipped.values())
    if not n_faulty:
        return survey
    rows = "1 input row" if n_faulty == 1 else f"{n_faulty:,} input rows"
    notice = f"{rows} cannot be judged: see {rundir.shown(rundir.rejects)}"
    return replace(survey, notices=[*survey.notices, notice])


def _recovered(rundir: RunDir) -> list[str]:
    recovery = rundir.recovered()
    if not recovery.torn_bytes:
        return []
    return [f"{recovery.torn_bytes} bytes of unfinished records were cut from the journal"]
