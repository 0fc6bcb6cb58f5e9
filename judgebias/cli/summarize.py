"""`judgebias summarize`: a run directory or files of verdict records -> all tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from judgebias.cli.screen import Screen
from judgebias.design import Design, words_of
from judgebias.errors import UsageError
from judgebias.journal import first_wins, read_journal, write_calls
from judgebias.pairs import PairsSpec, survey_pairs
from judgebias.records import join_pairs, read_records
from judgebias.report.tables import write_csv, write_tables, write_verdicts
from judgebias.rundir import Manifest, RunDir
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
from judgebias.verdicts import Order

_NEEDED = (
    *("pair", "judge", "fingerprint", "task", "pair_id", "repeat", "order", "slot", "failure"),
    *("attempts", "time", "worker", "request_id", "cost_usd"),
    *("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Calls:
    """The calls of one judge."""

    ended: pl.DataFrame
    """One row per call that ended."""
    extra: pl.DataFrame | None = None
    """Replies that are not their call's answer but were paid for; None for records."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What tables are made of, wherever it came from; one judge is looked at at a time."""

    judges: tuple[str, ...]
    """Sorted."""
    repeats: tuple[int, ...]
    calls: Callable[[str], Calls]
    """Judge -> its calls."""
    pairs: pl.LazyFrame
    expected: Callable[[str], pl.LazyFrame | None]
    """Judge -> what a live run asks; None for records, which are all there is."""


def summarize_sources(
    sources: Sequence[str], out: str, *, pairs: str, cluster: str, screen: Screen
) -> pl.DataFrame:
    """Summarise files of records, or one run directory into a folder of choice."""
    run = RunDir(Path(sources[0]))
    if run.exists:
        if len(sources) > 1 or pairs or cluster:
            raise UsageError(
                "a run directory is summarised alone, with the pairs and the cluster it was run by",
                do="leave out --pairs, --cluster and the other sources",
            )
        return write(evidence_of_run(run), Path(out or run.path), screen)
    if not out:
        raise UsageError("--out is missing", expected="--out DIR, a folder for the tables")
    return write(
        evidence_of_records(sources, pairs, cluster or "question", screen), Path(out), screen
    )


def summarize_run(run: RunDir, screen: Screen) -> pl.DataFrame:
    """Write all tables of a run directory, and its calls."""
    pairs = asked_pairs(run, run.manifest())["pair"]
    write_calls(run.journal, run.path / "calls.parquet", pairs=pairs)
    return write(evidence_of_run(run), run.path, screen)


def write(evidence: Evidence, out: Path, screen: Screen) -> pl.DataFrame:
    """Settle, summarise and write, judge by judge; returns the summary."""
    rows: list[Row] = []
    repeats: list[Row] = []
    failures: list[pl.DataFrame] = []
    costs: list[pl.DataFrame] = []
    several: set[tuple[str, str]] = set()

    def settled() -> Iterator[pl.DataFrame]:
        for judge in evidence.judges:
            found = evidence.calls(judge)
            calls = found.ended.lazy()
            if found.extra is not None:
                costs.append(costs_table(calls, found.extra.lazy()))
            verdicts = settle_calls(calls, evidence.pairs, evidence.expected(judge)).collect()
            rows.extend(rows_of(verdicts.lazy()))
            repeats.extend(repeat_rows(verdicts.lazy(), evidence.repeats))
            failures.append(failures_table(calls, verdicts.lazy()))
            several.update(several_models(verdicts.lazy()))
            yield verdicts

    write_verdicts(out / "verdicts.parquet", settled())
    summary = table(compare(rows))
    write_tables(
        out,
        summary=summary,
        repeats=compare_repeats(repeats),
        failures=pl.concat(failures) if failures else pl.DataFrame(),
        several=several,
    )
    if costs:
        write_csv(out / "tables" / "costs.csv", pl.concat(costs))
    screen.say(f"tables are in {out}")
    return summary


def evidence_of_records(
    sources: Sequence[str], pairs: str, cluster: str, screen: Screen
) -> Evidence:
    """Read files of verdict records, and join the pairs file where one is given."""
    records = read_records(list(sources), cluster=cluster)
    if pairs:
        index_cluster = cluster if cluster in ("question", "pair") else "question"
        survey = survey_pairs(PairsSpec(source=pairs, cluster=index_cluster, base=Path.cwd()))
        records = join_pairs(records, survey.index, cluster=cluster)
    for notice in records.notices:
        screen.say(notice)
    by_judge = records.calls.partition_by("judge", as_dict=True)
    return Evidence(
        judges=tuple(sorted(str(judge) for (judge,) in by_judge)),
        repeats=tuple(sorted(records.calls["repeat"].unique())),
        calls=lambda judge: Calls(ended=by_judge[(judge,)]),
        pairs=records.pairs.lazy(),
        expected=lambda _: None,
    )


def evidence_of_run(run: RunDir) -> Evidence:
    """Read the journal against the index: what is there, and what the design still expects."""
    manifest = run.manifest()
    expected = expected_of_run(run, manifest)
    return Evidence(
        judges=tuple(sorted(judge.name for judge in manifest.config.judges)),
        repeats=tuple(range(1, manifest.config.repeats + 1)),
        calls=lambda judge: calls_of_run(run, manifest, judge=judge),
        pairs=run.scan_index(),
        expected=lambda judge: expected.filter(pl.col("judge") == judge),
    )


def calls_of_run(run: RunDir, manifest: Manifest, *, judge: str) -> Calls:
    """Read a judge's calls of the current input, without the raw replies."""
    replies = read_journal(run.journal, columns=_NEEDED, judge=judge).table
    mine = pl.col("fingerprint").cast(pl.String) == manifest.fingerprints[judge]
    asked = asked_pairs(run, manifest)
    current = replies.filter(mine).join(asked, on="pair", how="inner")
    wanted = pl.when(pl.col("order") == "ab").then("expects_ab").otherwise("expects_ba")
    in_design = wanted & (pl.col("repeat") <= manifest.config.repeats)
    ended, extra = first_wins(current.filter(in_design).drop("expects_ab", "expects_ba"))
    return Calls(ended=ended, extra=extra)


def asked_pairs(run: RunDir, manifest: Manifest) -> pl.DataFrame:
    """Name the pairs of the design by their digests (column pair), with the orders asked."""
    digests = run.scan_index().select(pair="digest").collect()
    asked = design_of(manifest).asked(words_of(b"".join(digests["pair"])))
    return digests.with_columns(
        expects_ab=pl.Series(asked[Order.AB]), expects_ba=pl.Series(asked[Order.BA])
    ).filter(pl.col("expects_ab") | pl.col("expects_ba"))


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


def expected_of_run(run: RunDir, manifest: Manifest) -> pl.LazyFrame:
    """List what the design asks: one row per judge, pair and repeat."""
    config = manifest.config
    index = run.scan_index().select("task", "pair_id", pair="digest").collect()
    chosen = index.join(asked_pairs(run, manifest), on="pair").drop("pair")
    judges = pl.LazyFrame({"judge": [judge.name for judge in config.judges]})
    repeats = pl.LazyFrame({"repeat": range(1, config.repeats + 1)}, {"repeat": pl.Int32})
    return chosen.lazy().join(judges, how="cross").join(repeats, how="cross")
