"""One comparison, looked up: the pair, what each judge is sent, and what it has said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from judgebias.calls import Call, Pair
from judgebias.config import JudgeConfig, RunConfig, WireJudge, fingerprint, load_run_file
from judgebias.errors import ConfigError, InputError
from judgebias.journal import JournalReader, first_wins
from judgebias.journal.rows import SCHEMA
from judgebias.judges.opening import template_of
from judgebias.judges.wire_form import WireForm, opening_form
from judgebias.manifest import Manifest
from judgebias.objects import is_uri
from judgebias.pairs import PairsSpec, close_readers, read_block, survey_pairs
from judgebias.pipeline.identify import identify
from judgebias.prompts import Prompt, VerdictForm
from judgebias.rundir import RunDir
from judgebias.stored import open_rundir
from judgebias.verdicts import Cell, Order, Slot, Winner, final, settle


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """What a judge said in one order."""

    slot: Slot | None
    failure: str | None
    message: str | None
    raw: str | None
    probabilities: Mapping[str, float | None]
    model: str | None
    time: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Repeat:
    """Both orders of one repeat; None where there is no reply yet."""

    number: int
    prompts: Mapping[Order, Prompt]
    """Empty for a judge that is sent no prompt."""
    said: Mapping[Order, Said]

    @property
    def cell(self) -> Cell | None:
        """Where the pair lies; None unless both orders have a verdict."""
        slots = [self.said[order].slot for order in Order if order in self.said]
        ab, ba = slots if len(slots) == len(Order) else (None, None)
        return None if ab is None or ba is None else settle(ab, ba)

    @property
    def winner(self) -> Winner | None:
        """Who won by the two-order rule."""
        return None if self.cell is None else final(self.cell)


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """A pair before one judge."""

    judge: JudgeConfig
    form: str
    """The form of the verdict, in words; "" for a judge that is sent no prompt."""
    repeats: tuple[Repeat, ...]
    notice: str
    """What makes the prompts or replies other than they seem; "" = nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A run file or a run directory, opened to be looked at."""

    config: RunConfig
    base: Path
    folder: RunDir
    manifest: Manifest | None
    """None before the first start."""


def open_run(place: str) -> Run:
    """Open a run file, or the directory of a run, which may be at a URI.

    Raises
    ------
    InputError
        A directory without `run.json`.
    ConfigError
        A run file that cannot be used.
    """
    path = Path(place)
    if is_uri(place) or path.is_dir():
        folder = open_rundir(place)
        manifest = folder.manifest()
        return Run(
            config=manifest.config, base=Path(manifest.base), folder=folder, manifest=manifest
        )
    config, base = load_run_file(path), path.resolve().parent
    folder = open_rundir(config.out, base)
    manifest = folder.manifest() if folder.exists else None
    return Run(config=config, base=base, folder=folder, manifest=manifest)


def find_pair(run: Run, name: str) -> Pair:
    """Find a pair of the input by its id, or by TASK/ID where several tasks have the id.

    Raises
    ------
    InputError
        There is no such pair, or there are several.
    """
    spec = PairsSpec(
        source=run.config.pairs,
        columns=run.config.columns,
        pairs_per_block=run.config.engine.pairs_per_block,
        empty=run.config.empty,
        cluster=run.config.cluster,
        base=run.base,
    )
    survey = survey_pairs(spec)
    whole = pl.concat_str("task", pl.lit("/"), "pair_id")
    found = survey.rows.scan.filter((pl.col("pair_id") == name) | (whole == name)).collect()
    if found.height != 1:
        raise _not_one(name, found, survey.rows.scan.head(5).collect())
    row = found.row(0, named=True)
    pairs = read_block(survey.blocks[row["block"]], spec)
    close_readers()
    return next(p for p in pairs if (p.task, p.pair_id) == (row["task"], row["pair_id"]))


def compare(run: Run, pair: Pair, judge: str = "") -> list[Compared]:
    """Give what each judge, or the one named, is sent about a pair and what it has said.

    Raises
    ------
    ConfigError
        No judge has that name.
    """
    names = [config.name for config in run.config.judges]
    if judge and judge not in names:
        raise ConfigError(f"no judge is named {judge!r}", expected=f"one of: {', '.join(names)}")
    calls = _calls(run, pair)
    return [
        _compared(run, pair, config, calls)
        for config in run.config.judges
        if judge in ("", config.name)
    ]


def _not_one(name: str, found: pl.DataFrame, index: pl.DataFrame) -> InputError:
    if found.height:
        tasks = ", ".join(f"{task}/{name}" for task in found["task"].sort())
        return InputError(f"several tasks have a pair {name!r}", do=f"name one of {tasks}")
    some = ", ".join(index["pair_id"].head(5)) or "none"
    return InputError(
        f"the input has no pair {name!r} that can be judged", expected=f"a pair_id such as {some}"
    )


def _compared(run: Run, pair: Pair, config: JudgeConfig, calls: pl.DataFrame) -> Compared:
    form, words = _form(run, config)
    mine = calls.filter(pl.col("judge").cast(pl.String) == config.name)
    repeats = tuple(
        Repeat(
            number=number,
            prompts=_prompts(run, pair, config, form, number),
            said=_said(mine.filter(pl.col("repeat") == number)),
        )
        for number in range(1, run.config.repeats + 1)
    )
    return Compared(judge=config, form=words, repeats=repeats, notice=_changed(run, config))


def _form(run: Run, config: JudgeConfig) -> tuple[VerdictForm, str]:
    if not isinstance(config, WireJudge):
        return VerdictForm.TEXT, ""
    known = run.manifest.forms.get(config.name) if run.manifest else None
    if known is not None:
        form = WireForm.from_json(known).verdict
        return form, form.value
    form = opening_form(config).verdict
    return form, f"{form.value} (tried first)" if config.verdict == "auto" else form.value


def _prompts(
    run: Run, pair: Pair, config: JudgeConfig, form: VerdictForm, repeat: int
) -> dict[Order, Prompt]:
    if not isinstance(config, WireJudge):
        return {}
    template = template_of(config, str(run.base))
    return {
        order: template.render(Call(pair=pair, order=order, repeat=repeat), form) for order in Order
    }


def _changed(run: Run, config: JudgeConfig) -> str:
    """Say where today's judge is not the one that was asked."""
    if run.manifest is None or config.name not in run.manifest.fingerprints:
        return ""
    now = identify(run.config.model_copy(update={"judges": (config,)}), run.base)[config.name]
    if fingerprint(now).hex() == run.manifest.fingerprints[config.name]:
        return ""
    return "the judge or its template was changed since it was asked: the prompts are today's"


def _calls(run: Run, pair: Pair) -> pl.DataFrame:
    """Read what the journal holds about a pair as it is today, one row per call."""
    empty = pl.DataFrame(SCHEMA.empty_table())
    if run.manifest is None or not run.folder.journal.is_dir():
        return empty
    digest = pair.digest()
    fingerprints = list(run.manifest.fingerprints.values())
    # Frame by frame: a journal may be larger than memory, and one pair's replies are few.
    with JournalReader(run.folder.journal) as journal:
        mine = (pl.col("pair") == digest) & pl.col("fingerprint").is_in(fingerprints)
        parts = [frame.filter(mine) for frame in journal.frames(SCHEMA.names)]
    return first_wins(pl.concat([empty, *parts]))[0]


def _said(calls: pl.DataFrame) -> dict[Order, Said]:
    return {Order(str(row["order"])): _one(row) for row in calls.iter_rows(named=True)}


def _one(row: Mapping[str, Any]) -> Said:
    words: Sequence[str] = ("p_first", "p_second", "p_tie")
    return Said(
        slot=None if row["slot"] is None else Slot(str(row["slot"])),
        failure=None if row["failure"] is None else str(row["failure"]),
        message=row["message"],
        raw=row["raw"],
        probabilities={word: row[word] for word in words},
        model=None if row["model"] is None else str(row["model"]),
        time=f"{row['time']:%Y-%m-%d %H:%M:%S} UTC",
    )
