"""`judgebias summarize`: a run directory or files of verdict records -> all tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from judgebias.cli.screen import Screen
from judgebias.cli.tabulate import PANEL, Calls, Evidence, tabulate
from judgebias.design import words_of
from judgebias.errors import InputError, UsageError
from judgebias.families import families_of, judge_families
from judgebias.journal import first_wins, read_journal, write_calls
from judgebias.outputs import refuse_own_outputs
from judgebias.pairs import PairsSpec, survey_pairs
from judgebias.pipeline.used_up import list_used_up
from judgebias.records import join_pairs, read_records
from judgebias.rundir import Manifest, RunDir, design_of
from judgebias.stored import open_rundir
from judgebias.tone import DENSITY_COLUMNS
from judgebias.verdicts import Order

_NEEDED = (
    *("pair", "judge", "fingerprint", "task", "pair_id", "repeat", "order", "slot", "failure"),
    *("attempts", "time", "worker", "request_id", "cost_usd"),
    *("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "model", "message"),
)


def summarize_sources(
    sources: Sequence[str], out: str, *, pairs: str, cluster: str, screen: Screen
) -> pl.DataFrame:
    """Summarise files of records, or one run directory into a folder of choice."""
    run = open_rundir(sources[0])
    if run.exists:
        if len(sources) > 1 or pairs or cluster:
            raise UsageError(
                "a run directory is summarised alone, with the pairs and the cluster it was run by",
                do="leave out --pairs, --cluster and the other sources",
            )
        return write(evidence_of_run(run), open_rundir(out) if out else run, screen)
    if not out:
        raise UsageError("--out is missing", expected="--out DIR, a folder for the tables")
    for source in sources:
        refuse_own_outputs("SOURCE", source, base=Path.cwd(), out=out, deep=True)
    if pairs:
        refuse_own_outputs("--pairs", pairs, base=Path.cwd(), out=out, deep=False)
    return write(
        evidence_of_records(sources, pairs, cluster or "question", screen), open_rundir(out), screen
    )


def summarize_run(run: RunDir, screen: Screen) -> pl.DataFrame:
    """Write all tables of a run directory, and its calls."""
    run.pull()
    manifest = run.manifest()
    pairs = asked_pairs(run, manifest)["pair"]
    write_calls(run.journal, run.path / "calls.parquet", pairs=pairs)
    summary = write(evidence_of_run(run), run, screen)
    if summary["n_failed"].sum():
        list_used_up(run, manifest)
        run.push()
    return summary


def write(evidence: Evidence, out: RunDir, screen: Screen) -> pl.DataFrame:
    """Write all tables and say where they are; returns the summary."""
    summary = tabulate(evidence, out.path, say=screen.say)
    out.push()
    screen.say(f"tables are in {out.name}")
    return summary


def evidence_of_records(
    sources: Sequence[str], pairs: str, cluster: str, screen: Screen
) -> Evidence:
    """Read files of verdict records, and join the pairs file where one is given."""
    records = read_records(list(sources), cluster=cluster)
    tone = None
    if pairs:
        index_cluster = cluster if cluster in ("question", "pair") else "question"
        survey = survey_pairs(PairsSpec(source=pairs, cluster=index_cluster, base=Path.cwd()))
        records = join_pairs(records, survey.index, cluster=cluster)
        tone = survey.index.select("task", "pair_id", *DENSITY_COLUMNS)
    if PANEL in set(records.calls["judge"]):
        raise InputError(
            f"the records have a judge named {PANEL!r}, which is the name of the panel's own rows",
            do="give that judge another name in the records",
        )
    for notice in records.notices:
        screen.say(notice)
    by_judge = records.calls.partition_by("judge", as_dict=True)
    return Evidence(
        judges=tuple(sorted(str(judge) for (judge,) in by_judge)),
        repeats=tuple(sorted(records.calls["repeat"].unique())),
        calls=lambda judge: Calls(ended=by_judge[(judge,)]),
        pairs=_with_tone(records.pairs, tone).lazy(),
        expected=lambda _: None,
    )


def _with_tone(pairs: pl.DataFrame, tone: pl.DataFrame | None) -> pl.DataFrame:
    return pairs if tone is None else pairs.join(tone, on=["task", "pair_id"], how="left")


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
        quorum=manifest.config.panel.quorum,
        families=families_of(manifest.config),
        judge_families=judge_families(manifest.config),
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


def expected_of_run(run: RunDir, manifest: Manifest) -> pl.LazyFrame:
    """List what the design asks: one row per judge, pair and repeat."""
    config = manifest.config
    index = run.scan_index().select("task", "pair_id", pair="digest").collect()
    chosen = index.join(asked_pairs(run, manifest), on="pair").drop("pair")
    judges = pl.LazyFrame({"judge": [judge.name for judge in config.judges]})
    repeats = pl.LazyFrame({"repeat": range(1, config.repeats + 1)}, {"repeat": pl.Int32})
    return chosen.lazy().join(judges, how="cross").join(repeats, how="cross")
