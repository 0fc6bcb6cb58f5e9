"""`judgebias reparse`: read kept raw replies again by today's rules; nothing is bought.

A failure whose reply can be read now becomes a verdict: a new record beside the old one, which
stays and keeps its cost. A verdict is never changed; one that would be read otherwise is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from judgebias.cli.screen import Screen
from judgebias.cli.summarize import summarize_run
from judgebias.cli.tabulate import Written
from judgebias.config import WireJudge
from judgebias.held import keep_held
from judgebias.journal import Row, create_segment, first_wins, now_us, read_journal
from judgebias.judges.reading import read_slot
from judgebias.judges.wire_form import WireForm, opening_form
from judgebias.manifest import Manifest
from judgebias.prompts import VerdictForm
from judgebias.replies import FailureKind, Reply, Usage
from judgebias.rundir import RunDir
from judgebias.stored import open_rundir
from judgebias.verdicts import Slot

_UNREAD = (FailureKind.INVALID, FailureKind.EMPTY)
"""Failures of reading; a reply that was cut off or refused has no verdict to be read."""
_NOTHING = Usage(input_tokens=0, output_tokens=0, cached_tokens=0, reasoning_tokens=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reread:
    """What reading again found for one judge."""

    read: int
    """Kept replies that were looked at."""
    mended: tuple[Row, ...]
    """Failures that are verdicts now."""
    differ: int
    """Verdicts that would be read otherwise, and stay as they were recorded."""


def reparse(folder: str, screen: Screen) -> Written:
    """Read the kept replies of every judge of a run directory again, and write the tables."""
    run = open_rundir(folder)
    manifest = run.manifest()
    with run.owned():
        for number, judge in enumerate(manifest.config.judges):
            if isinstance(judge, WireJudge):
                found = reread(run, manifest, judge)
                _keep(run, manifest, number, found.mended)
                screen.say(
                    f"{judge.name}: {found.read:,} kept replies read again, "
                    f"{len(found.mended):,} failures are verdicts now, "
                    f"{found.differ:,} verdicts would be read otherwise and stay as they are"
                )
        written = summarize_run(run, screen)
        keep_held(run)
        return written


def reread(run: RunDir, manifest: Manifest, judge: WireJudge) -> Reread:
    """Read one judge's kept replies again, in the form they were asked in."""
    calls, _ = first_wins(read_journal(run.journal, judge=judge.name).table)
    kept = calls.filter(pl.col("raw").is_not_null())
    form, read, differ = _form(manifest, judge), 0, 0
    mended: list[Row] = []
    for record in kept.iter_rows(named=True):
        if record["slot"] is None and record["failure"] not in _UNREAD:
            continue
        read += 1
        slot = read_slot(record["raw"], form, len(judge.criteria))
        if record["slot"] is not None:
            differ += slot != record["slot"]
        elif isinstance(slot, Slot):
            mended.append(_row(record, slot))
    return Reread(read=read, mended=tuple(mended), differ=differ)


def _form(manifest: Manifest, judge: WireJudge) -> VerdictForm:
    known = manifest.forms.get(judge.name)
    return opening_form(judge).verdict if known is None else WireForm.from_json(known).verdict


def _row(record: Mapping[str, Any], slot: Slot) -> Row:
    # Nothing was bought for this record: what the reply cost stands in the one it was read from.
    reply = Reply(
        slot=slot,
        raw=record["raw"],
        usage=_NOTHING,
        cost_usd=0.0,
        attempts=0,
        model=record["model"],
        request_id=record["request_id"],
    )
    return Row(
        pair=record["pair"],
        judge=record["judge"],
        fingerprint=record["fingerprint"],
        task=record["task"],
        pair_id=record["pair_id"],
        repeat=record["repeat"],
        order=record["order"],
        time=now_us(),
        reply=reply,
    )


def _keep(run: RunDir, manifest: Manifest, number: int, mended: tuple[Row, ...]) -> None:
    if not mended:
        return
    worker = f"reparse-{number}-{now_us()}"
    segment = create_segment(run.journal_place, epoch=manifest.epoch, worker=worker)
    for row in mended:
        segment.append(row)
    segment.flush()
    segment.close()
