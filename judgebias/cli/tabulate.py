"""From calls to every table of a run, the calls of one judge in memory at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from judgebias.biases.ballots import PANEL
from judgebias.cli.bias_tables import BiasTables, family_of
from judgebias.cli.evidence import Evidence
from judgebias.cli.gathered import Gathered
from judgebias.divided import DIVIDED_ABOVE
from judgebias.families import own_family_warnings
from judgebias.leaks import LEAK_COLUMNS
from judgebias.report.markdown import render_flips, render_probe, render_sampled
from judgebias.report.stopping import render_stopping
from judgebias.report.tables import VERDICTS_SCHEMA, write_csv, write_tables, write_verdicts
from judgebias.summary import Row, compare, table
from judgebias.summary.hypotheses import hypotheses_table
from judgebias.summary.leaks import leak_rows, leak_words, leaks_table
from judgebias.summary.lengths import with_mean_lengths
from judgebias.summary.probe import NO_CALLS, probe_table
from judgebias.summary.profiles import ALL
from judgebias.summary.sampled import compare_sampled
from judgebias.summary.soft import with_soft

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
    n_calls: int = 0
    """Calls that ended, the probe's left out."""
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


def tabulate(evidence: Evidence, out: Path, *, say: Callable[[str], object]) -> Written:
    """Settle, summarise and write every table.

    What a reader of any figure must know goes to `say` as well as into summary.md.
    """
    with tempfile.TemporaryDirectory(prefix="judgebias-") as room:
        return _tabulate(evidence, out, Path(room), say)


def _tabulate(evidence: Evidence, out: Path, room: Path, say: Callable[[str], object]) -> Written:
    gathered = Gathered.of(evidence, room)
    written = _written(gathered, evidence.live)
    tables = gathered.tables() | _only_where_asked(written)
    stopping = evidence.stopping(_ended_calls(written.summary))
    leaks = _leaks(evidence)
    verdicts = gathered.verdicts or {"": _NO_VERDICTS}
    # The summary comes first: it is what is waited for.
    write_tables(
        out,
        summary=written.summary,
        repeats=tables.pop("repeats"),
        failures=tables.pop("failures"),
        several=gathered.several,
        notices=_notices(evidence, gathered, leaks, pl.concat(verdicts.values())),
        sections=_sections(evidence, written, tables.get("flips"), stopping),
    )
    for warning in gathered.snapshots:
        say(warning)
    biases = BiasTables.of(evidence, verdicts)
    tables |= biases.tables
    tables["tests"] = hypotheses_table({"summary": written.summary, **tables})
    if leaks:
        tables["leaks"] = leaks_table(leaks)
    if evidence.texts is not None:
        tables["texts"] = evidence.texts.table()
    if stopping is not None:
        tables["stopping"] = stopping
    for name, rows in tables.items():
        write_csv(out / "tables" / f"{name}.csv", rows)
    voted = dict(gathered.verdicts) | ({} if biases.panel is None else {PANEL: biases.panel})
    write_verdicts(
        out / "verdicts.parquet",
        (voted[judge].collect() for judge in sorted(voted)),
        evidence.names(),
        divided=gathered.n_calls > DIVIDED_ABOVE,
    )
    return replace(written, absent=_NOT_ALWAYS - tables.keys())


def _written(gathered: Gathered, asked: Collection[str]) -> Written:
    summary = with_soft(table(compare(gathered.rows)), gathered.soft)
    return Written(
        summary=with_mean_lengths(summary, gathered.lengths, asked),
        self_pair=pl.concat([probe_table(NO_CALLS), *gathered.self_pair]),
        sampled=compare_sampled(gathered.sampled),
        pending=gathered.pending,
        pending_items=gathered.pending_items,
        n_failed=gathered.n_failed,
        n_calls=gathered.n_calls,
    )


def _only_where_asked(written: Written) -> dict[str, pl.DataFrame]:
    """Give the tables that a run without a probe or a sample does not have."""
    tables = {"self_pair": written.self_pair, "sampled": written.sampled}
    return {name: rows for name, rows in tables.items() if rows.height}


def _notices(
    evidence: Evidence, gathered: Gathered, leaks: list[Row], verdicts: pl.LazyFrame
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


def _leaks(evidence: Evidence) -> list[Row]:
    """Count identity leaks in the pairs of each judge; none where the answers are not known."""
    told = evidence.told(LEAK_COLUMNS)
    if told is None:
        return []
    leaking = told.filter(pl.any_horizontal(pl.col(LEAK_COLUMNS).is_not_null())).collect()
    tasks = evidence.pairs.select(pl.col("task").cast(pl.String), "pair_id")
    pairs = tasks.join(leaking, on="pair_id", how="left")
    rows: list[Row] = []
    for judge in evidence.judges:
        expected = evidence.expected(judge)
        asked = pairs if expected is None else pairs.join(expected, on="pair_id", how="semi")
        rows += leak_rows(judge, family_of(evidence, judge), asked, evidence.skipped)
    return rows


def _own_family(evidence: Evidence, verdicts: pl.LazyFrame) -> list[str]:
    """Warn the reader of the report of judges that judged their own family."""
    written = pl.concat([verdicts.select(model=f"model_{side}") for side in ("a", "b")])
    models = written.drop_nulls().unique().collect()["model"]
    judges = {judge: family_of(evidence, judge) for judge in evidence.judges}
    return own_family_warnings(judges, models, evidence.families)
