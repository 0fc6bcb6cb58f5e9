"""From calls to every table of a run, one judge in memory at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from judgebias.biases.agreement import agreement_table
from judgebias.biases.length import length_table
from judgebias.biases.length_bands import length_bands_table
from judgebias.biases.panel import panel_table
from judgebias.biases.panel_verdicts import panel_verdicts
from judgebias.biases.ranking import ranking_table, wins_table
from judgebias.biases.self_preference import self_preference_table
from judgebias.biases.tone import tone_table
from judgebias.cli.evidence import Calls, Evidence
from judgebias.families import own_family_warnings
from judgebias.leaks import LEAK_COLUMNS
from judgebias.report.markdown import render_flips, render_probe, render_sampled
from judgebias.report.stopping import render_stopping
from judgebias.report.tables import VERDICTS_SCHEMA, write_csv, write_tables, write_verdicts
from judgebias.summary import (
    Row,
    compare,
    compare_repeats,
    costs_table,
    failures_table,
    repeat_rows,
    rows_of,
    settle_calls,
    several_models,
    table,
)
from judgebias.summary.failures import probe_failures
from judgebias.summary.flips import flips_table
from judgebias.summary.hypotheses import hypotheses_table
from judgebias.summary.leaks import leak_rows, leak_words, leaks_table
from judgebias.summary.lengths import with_mean_lengths
from judgebias.summary.matchups import compare_matchups, matchup_rows
from judgebias.summary.probe import NO_CALLS, probe_table
from judgebias.summary.profiles import ALL, Group
from judgebias.summary.sampled import compare_sampled, sampled_rows
from judgebias.summary.snapshots import model_changes, snapshot_warnings
from judgebias.summary.soft import soft_rows, with_soft
from judgebias.summary.strength import compare_strength, strength_rows
from judgebias.tone import DENSITY_COLUMNS

PANEL = "panel"
_PAIR = ("task", "pair_id")
_NOT_ALWAYS = frozenset(
    (
        *("agreement", "costs", "leaks", "model_changes", "panel"),
        *("sampled", "self_pair", "stopping", "texts"),
    )
)
"""Tables that some starts of a run have and others do not."""
_NO_VERDICTS = pl.LazyFrame(VERDICTS_SCHEMA.empty_table()).with_columns(
    pl.lit(0, pl.UInt8).alias(f"state_{order}") for order in ("ab", "ba")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What was written, as far as a command goes on from it."""

    summary: pl.DataFrame
    self_pair: pl.DataFrame
    """Without rows where no judge was shown two identical texts."""
    sampled: pl.DataFrame
    """Without rows where every pair was asked in both orders."""
    pending: Mapping[str, int]
    """Judge -> calls that are to be asked."""
    pending_items: Mapping[str, int]
    """Judge -> those of them on self pairs."""
    n_failed: int
    """Calls that ended without a verdict, of all judges."""
    absent: frozenset[str] = frozenset()
    """Tables that this start does not have, and an earlier one may have left."""


def nothing_written() -> Written:
    """Stand for tables that could not be written."""
    return Written(
        summary=table([]),
        self_pair=probe_table(NO_CALLS),
        sampled=compare_sampled([]),
        pending={},
        pending_items={},
        n_failed=0,
    )


@dataclass(kw_only=True, slots=True)
class _Gathered:
    """What the judges leave behind for the tables that compare them."""

    rows: list[Row] = field(default_factory=list[Row])
    repeats: list[Row] = field(default_factory=list[Row])
    matchups: list[Row] = field(default_factory=list[Row])
    strength: list[Row] = field(default_factory=list[Row])
    failures: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    flips: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    costs: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    model_changes: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    snapshots: list[str] = field(default_factory=list[str])
    self_pair: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
    sampled: list[Row] = field(default_factory=list[Row])
    pending: dict[str, int] = field(default_factory=dict[str, int])
    pending_items: dict[str, int] = field(default_factory=dict[str, int])
    n_failed: int = 0
    several: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    soft: dict[Group, Row] = field(default_factory=dict[Group, Row])

    def add(self, calls: Calls, verdicts: pl.LazyFrame, evidence: Evidence) -> None:
        self.rows.extend(rows_of(verdicts))
        self.repeats.extend(repeat_rows(verdicts, evidence.repeats))
        self.matchups.extend(matchup_rows(verdicts))
        self.strength.extend(strength_rows(verdicts))
        self.failures.append(failures_table(calls.ended.lazy(), verdicts))
        self.flips.append(flips_table(verdicts))
        self.several.update(several_models(verdicts))
        # Records do not say which model answered.
        if "model" in calls.ended.columns:
            changes = model_changes(calls.ended.lazy())
            self.model_changes.append(evidence.named(changes))
            self.snapshots += snapshot_warnings(calls.ended.lazy(), changes)
        if calls.bought is not None and calls.extra is not None:
            self.costs.append(costs_table(calls.bought.lazy(), calls.extra.lazy()))

    def add_probe(self, judge: str, calls: Calls, evidence: Evidence) -> None:
        tie = {judge: evidence.has_tie.get(judge)}
        self.self_pair.append(probe_table(calls.probe.lazy(), tie))
        if judge in evidence.live:
            self.failures.append(
                probe_failures(judge, calls.probe.lazy(), calls.probe_pending.lazy())
            )
        self.pending[judge] = calls.n_pending
        self.pending_items[judge] = calls.n_pending_items
        counted = calls.ended if calls.bought is None else calls.bought
        self.n_failed += counted["slot"].null_count()


def tabulate(evidence: Evidence, out: Path, *, say: Callable[[str], object]) -> Written:
    """Settle, summarise and write every table.

    What a reader of any figure must know goes to `say` as well as into summary.md.
    """
    with tempfile.TemporaryDirectory(prefix="judgebias-") as room:
        return _tabulate(evidence, out, Path(room), say)


def _tabulate(evidence: Evidence, out: Path, room: Path, say: Callable[[str], object]) -> Written:
    gathered = _Gathered()
    settled = _settle(evidence, gathered, room)
    verdicts = pl.concat(settled.values()) if settled else _NO_VERDICTS
    tables = _position_tables(gathered) | _bias_tables(evidence, verdicts)
    written = _written(gathered, tables["length"], evidence.live)
    tables |= _only_where_asked(written)
    tables["tests"] = hypotheses_table({"summary": written.summary, **tables})
    stopping = evidence.stopping(_ended_calls(written.summary))
    leaks = _leaks(evidence)
    write_tables(
        out,
        summary=written.summary,
        repeats=tables.pop("repeats"),
        failures=tables.pop("failures"),
        several=gathered.several,
        notices=_notices(evidence, gathered, leaks, verdicts),
        sections=_sections(evidence, written, tables.get("flips"), stopping),
    )
    for warning in gathered.snapshots:
        say(warning)
    if leaks:
        tables["leaks"] = leaks_table(leaks)
    if evidence.texts is not None:
        tables["texts"] = evidence.texts.table()
    if stopping is not None:
        tables["stopping"] = stopping
    for name, rows in tables.items():
        write_csv(out / "tables" / f"{name}.csv", rows)
    write_verdicts(out / "verdicts.parquet", _with_panel(evidence, settled), evidence.named)
    return replace(written, absent=_NOT_ALWAYS - tables.keys())


def _written(gathered: _Gathered, length: pl.DataFrame, asked: Collection[str]) -> Written:
    summary = with_soft(table(compare(gathered.rows)), gathered.soft)
    return Written(
        summary=with_mean_lengths(summary, length, asked),
        self_pair=pl.concat([probe_table(NO_CALLS), *gathered.self_pair]),
        sampled=compare_sampled(gathered.sampled),
        pending=gathered.pending,
        pending_items=gathered.pending_items,
        n_failed=gathered.n_failed,
    )


def _only_where_asked(written: Written) -> dict[str, pl.DataFrame]:
    """Give the tables that a run without a probe or a sample does not have."""
    tables = {"self_pair": written.self_pair, "sampled": written.sampled}
    return {name: rows for name, rows in tables.items() if rows.height}


def _notices(
    evidence: Evidence, gathered: _Gathered, leaks: list[Row], verdicts: pl.LazyFrame
) -> list[str]:
    """Collect what the reader of summary.md must know of all figures.

    Where every judge is read from records, notes on texts are told on the screen and in tables
    only: records carry no texts, and a replay gives the bytes of its records.
    """
    notices = [*_own_family(evidence, verdicts), *(leak_words(leaks) if evidence.live else [])]
    notices += [*gathered.snapshots, *evidence.notices]
    if evidence.live and evidence.texts is not None:
        recorded = len(evidence.live) < len(evidence.judges)
        notices += evidence.texts.words(live=True, recorded=recorded)
    return notices


def _sections(
    evidence: Evidence,
    written: Written,
    flips: pl.DataFrame | None,
    stopping: pl.DataFrame | None,
) -> list[str]:
    """Render what summary.md has beyond the summary, as far as there is any."""
    asked = written.self_pair.filter(pl.col("judge").is_in(sorted(evidence.live)))
    sections = [render_sampled(written.sampled), render_probe(asked)]
    if flips is not None and flips["n_repeated"].sum():
        sections.append(render_flips(flips))
    if stopping is not None:
        sections.append(render_stopping(stopping))
    return [section for section in sections if section]


def _ended_calls(summary: pl.DataFrame) -> dict[str, int]:
    whole = summary.filter(pl.col("task") == ALL).select("judge", "n_calls")
    return {str(judge): int(n) for judge, n in whole.iter_rows()}


def _settle(evidence: Evidence, gathered: _Gathered, room: Path) -> dict[str, pl.LazyFrame]:
    """Settle one judge after the other, and leave its verdicts in a file of the room."""
    settled: dict[str, pl.LazyFrame] = {}
    for number, judge in enumerate(evidence.judges):
        calls = evidence.calls(judge)
        expected = evidence.expected(judge)
        verdicts = settle_calls(calls.ended.lazy(), evidence.pairs, expected).collect()
        gathered.add(calls, verdicts.lazy(), evidence)
        gathered.soft |= soft_rows(calls.ended.lazy(), evidence.pairs)
        gathered.add_probe(judge, calls, evidence)
        if evidence.first_orders is not None:
            named = verdicts.lazy().join(evidence.first_orders, on=["task", "pair_id"], how="left")
            gathered.sampled.extend(sampled_rows(named))
        path = room / f"{number}.parquet"
        verdicts.write_parquet(path, compression="lz4")
        settled[judge] = pl.scan_parquet(path, glob=False)
    return settled


def _position_tables(gathered: _Gathered) -> dict[str, pl.DataFrame]:
    """Make the tables that need the figures of all judges, and no verdict any more."""
    tables = {
        "repeats": compare_repeats(gathered.repeats),
        "failures": pl.concat(gathered.failures) if gathered.failures else pl.DataFrame(),
        "matchups": compare_matchups(gathered.matchups),
        "matchup_strength": compare_strength(gathered.strength),
    }
    if gathered.flips:
        tables["flips"] = pl.concat(gathered.flips)
    if gathered.model_changes:
        tables["model_changes"] = pl.concat(gathered.model_changes)
    if gathered.costs:
        tables["costs"] = pl.concat(gathered.costs)
    return tables


def _bias_tables(evidence: Evidence, verdicts: pl.LazyFrame) -> dict[str, pl.DataFrame]:
    """Make the tables on what misleads a judge beside position, and on judges together."""
    has_tone = set(DENSITY_COLUMNS) <= set(evidence.pairs.collect_schema().names())
    densities = evidence.pairs.select("task", "pair_id", *DENSITY_COLUMNS) if has_tone else None
    tables = {
        "length": length_table(verdicts),
        "length_bands": length_bands_table(verdicts),
        "tone": tone_table(verdicts, densities),
        "self_preference": self_preference_table(
            verdicts, judges=evidence.judge_families, families=evidence.families
        ),
    }
    voters = verdicts
    if len(evidence.judges) > 1:
        families = {judge: _family(evidence, judge) for judge in evidence.judges}
        tables["agreement"] = agreement_table(verdicts, quorum=evidence.quorum)
        tables["panel"] = panel_table(verdicts, quorum=evidence.quorum, families=families)
        voters = pl.concat([verdicts, panel_verdicts(verdicts, quorum=evidence.quorum)])
    return tables | {"ranking": ranking_table(voters), "wins": wins_table(voters)}


def _leaks(evidence: Evidence) -> list[Row]:
    """Count identity leaks in the pairs of each judge; none where the answers are not known."""
    if not set(LEAK_COLUMNS) <= set(evidence.pairs.collect_schema().names()):
        return []
    pairs = evidence.pairs.select("task", "pair_id", *LEAK_COLUMNS)
    rows: list[Row] = []
    for judge in evidence.judges:
        expected = evidence.expected(judge)
        asked = pairs if expected is None else pairs.join(expected, on=_PAIR, how="semi")
        rows += leak_rows(judge, _family(evidence, judge), asked.collect(), evidence.skipped)
    return rows


def _own_family(evidence: Evidence, verdicts: pl.LazyFrame) -> list[str]:
    """Warn the reader of the report of judges that judged their own family."""
    written = pl.concat([verdicts.select(model=f"model_{side}") for side in ("a", "b")])
    models = written.drop_nulls().unique().collect()["model"]
    judges = {judge: _family(evidence, judge) for judge in evidence.judges}
    return own_family_warnings(judges, models, evidence.families)


def _family(evidence: Evidence, judge: str) -> str:
    return evidence.judge_families.get(judge) or evidence.families.family(judge)


def _with_panel(evidence: Evidence, settled: Mapping[str, pl.LazyFrame]) -> Iterator[pl.DataFrame]:
    """Give the verdicts of each judge, and the panel's as those of one more judge."""
    voted = dict(settled)
    if len(settled) > 1:
        voted[PANEL] = panel_verdicts(pl.concat(settled.values()), quorum=evidence.quorum)
    for judge in sorted(voted):
        yield voted[judge].collect()
