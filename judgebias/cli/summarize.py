"""`judgebias summarize`: a run directory or files of verdict records -> all tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from judgebias.cli.coded import CodedPairs
from judgebias.cli.evidence import Calls, Evidence
from judgebias.cli.probe_calls import (
    PROBE_COLUMNS,
    live_judges,
    probe_of_run,
    probed_pairs,
    with_twins,
)
from judgebias.cli.recorded import evidence_of_records
from judgebias.cli.replies import CARRIED, AskedPairs, read_replies
from judgebias.cli.screen import Screen
from judgebias.cli.stopping import stopping_of_run
from judgebias.cli.tabulate import Written, tabulate
from judgebias.design import digest_words, question_words
from judgebias.divided import DIVIDED_ABOVE
from judgebias.errors import UsageError
from judgebias.families import families_of, judge_families
from judgebias.held import check_held
from judgebias.journal import write_calls
from judgebias.manifest import Manifest, design_of
from judgebias.outputs import refuse_own_outputs
from judgebias.pipeline.used_up import list_used_up
from judgebias.rundir import RunDir
from judgebias.self_pairs import has_tie
from judgebias.stored import open_rundir
from judgebias.summary.costs import TOKENS
from judgebias.summary.texts import Texts
from judgebias.verdicts import Order

_BOUGHT = ("judge", "task", "slot", "failure", "time", "attempts", *TOKENS, "cost_usd")


def summarize_sources(
    sources: Sequence[str], out: str, *, pairs: str, cluster: str, screen: Screen
) -> Written:
    """Summarise files of records, or one run directory into a folder of choice."""
    run = open_rundir(sources[0])
    if run.exists:
        if len(sources) > 1 or pairs or cluster:
            raise UsageError(
                "a run directory is summarised alone, with the pairs and the cluster it was run by",
                do="leave out --pairs, --cluster and the other sources",
            )
        manifest = run.manifest()
        evidence = evidence_of_run(run, manifest, PairsOfRun.of(run, manifest))
        return write(evidence, open_rundir(out) if out else run, screen)
    if not out:
        raise UsageError("--out is missing", expected="--out DIR, a folder for the tables")
    for source in sources:
        refuse_own_outputs("SOURCE", source, base=Path.cwd(), out=out, deep=True)
    if pairs:
        refuse_own_outputs("--pairs", pairs, base=Path.cwd(), out=out, deep=False)
    return write(
        evidence_of_records(sources, pairs, cluster or "question", screen), open_rundir(out), screen
    )


def summarize_run(run: RunDir, screen: Screen) -> Written:
    """Write all tables of a run directory, and its calls."""
    run.pull()
    manifest = run.manifest()
    pairs = PairsOfRun.of(run, manifest)
    written = write(evidence_of_run(run, manifest, pairs), run, screen)
    _write_calls(run, manifest, pairs.asked, divided=written.n_calls > DIVIDED_ABOVE)
    if written.n_failed:
        list_used_up(run, manifest)
    run.push()
    return written


def _write_calls(run: RunDir, manifest: Manifest, asked: AskedPairs, *, divided: bool) -> None:
    """Write the calls that the tables count, and no others."""
    judges = sorted(judge.name for judge in manifest.config.judges)

    def of_pairs(judge: str, rows: pl.DataFrame) -> pl.DataFrame:
        return asked.of_replies(_of_judge(rows, manifest, judge))

    path = run.path / "calls.parquet"
    write_calls(run.journal, path, judges=judges, choose=of_pairs, divided=divided)
    if manifest.probed:
        probed = probed_pairs(run).to_frame("pair")

        def of_probe(judge: str, rows: pl.DataFrame) -> pl.DataFrame:
            return _of_judge(rows, manifest, judge).join(probed, on="pair", how="semi")

        path = run.path / "self_pair_calls.parquet"
        write_calls(run.journal, path, judges=judges, choose=of_probe)


def write(evidence: Evidence, out: RunDir, screen: Screen) -> Written:
    """Write all tables and say where they are."""
    written = tabulate(evidence, out.path, say=screen.say)
    out.push()
    # What an earlier start wrote, of a probe, a rule or more judges, says nothing of this one.
    out.drop(f"tables/{name}.csv" for name in written.absent)
    screen.say(f"tables are in {out.name}")
    return written


@dataclass(frozen=True, kw_only=True, slots=True)
class PairsOfRun:
    """The pairs of a run by their numbers, and what the design asks of them."""

    coded: CodedPairs
    asked: AskedPairs

    @classmethod
    def of(cls, run: RunDir, manifest: Manifest) -> PairsOfRun:
        """Read the index of a run, which is held to what its manifest says."""
        check_held(run, manifest)
        coded = CodedPairs.of(run.scan_index())
        asked = asked_pairs(run, manifest, coded.numbers)
        task = coded.pairs["task"].gather(asked["pair_id"])
        return cls(coded=coded, asked=AskedPairs.of(asked.with_columns(task)))


def evidence_of_run(run: RunDir, manifest: Manifest, pairs: PairsOfRun) -> Evidence:
    """Read the journal against the index: what is there, and what the design still expects."""
    coded, asked = pairs.coded, pairs.asked
    config = manifest.config
    live = live_judges(config)
    return Evidence(
        judges=tuple(sorted(judge.name for judge in config.judges)),
        repeats=tuple(range(1, config.repeats + 1)),
        calls=lambda judge: calls_of_run(run, manifest, asked, judge=judge),
        pairs=coded.pairs,
        expected=lambda judge: _expected(asked.pairs, config.repeats, live=judge in live),
        quorum=config.panel.quorum,
        families=families_of(config),
        judge_families=judge_families(config),
        skipped=manifest.skipped,
        live=live,
        has_tie={judge.name: has_tie(judge) for judge in config.judges},
        first_orders=first_orders(run, manifest, coded),
        names=coded.names,
        told=coded.told,
        notices=_notices_of_design(run, manifest),
        texts=_texts(run),
        stopping=lambda ended: stopping_of_run(run, manifest, design_of(manifest), ended),
    )


def _texts(run: RunDir) -> Texts | None:
    index = run.scan_index()
    # An index of before texts were told apart; the next start writes a new one.
    return Texts.of(index) if "text_id_a" in index.collect_schema().names() else None


def _notices_of_design(run: RunDir, manifest: Manifest) -> tuple[str, ...]:
    if manifest.config.orders != "sampled":
        return ()
    questions = run.scan_index().select(pl.col("question_id").hash()).collect()["question_id"]
    if not questions.is_duplicated().any():
        return ()
    return (
        "Questions repeat, so the pairs in both orders were drawn by question; the intervals of "
        "swing and win rate over all pairs are for independent pairs",
    )


def first_orders(run: RunDir, manifest: Manifest, coded: CodedPairs) -> pl.LazyFrame | None:
    """Name the order of each pair's first call, unless every pair is asked in both."""
    if manifest.config.orders == "both":
        return None
    pairs = run.scan_index().select("digest").collect()
    ab_first = design_of(manifest).ab_first(digest_words(pairs["digest"]))
    order = pl.when(pl.Series(ab_first)).then(pl.lit("ab")).otherwise(pl.lit("ba"))
    named = pairs.with_columns(coded.numbers)
    return named.lazy().select("pair_id", order.alias("first_order"))


def calls_of_run(run: RunDir, manifest: Manifest, asked: AskedPairs, *, judge: str) -> Calls:
    """Read a judge's calls on what `asked_pairs` gives, without the raw replies."""
    repeats = manifest.config.repeats
    said = read_replies(
        run.journal,
        asked,
        judge=judge,
        fingerprint=manifest.fingerprints[judge],
        repeats=repeats,
        strange=manifest.probed,
    )
    probe = probe_of_run(run, manifest, judge, said.strange)
    left = asked.pairs.select(pl.col("expects_ab", "expects_ba").sum()).row(0)
    calls = Calls(
        ended=said.ended,
        bought=_together(said.ended, probe.ended),
        extra=_together(said.extra, probe.extra),
        probe=_as_carried(probe.ended, PROBE_COLUMNS),
        n_pending=sum(left) * repeats - said.ended.height + probe.n_pending,
        n_pending_items=probe.n_pending,
        probe_pending=probe.pending,
    )
    return with_twins(run, calls, asked.twins, repeats, live=judge in live_judges(manifest.config))


def _together(said: pl.DataFrame, probe: pl.DataFrame) -> pl.DataFrame:
    """Put what was bought of the probe to the rest."""
    task = pl.col("task").cast(said.schema["task"])
    return pl.concat([said.select(_BOUGHT), _as_carried(probe, _BOUGHT).with_columns(task)])


def _as_carried(whole: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Give columns of replies that were kept whole the types of the others."""
    return whole.select(
        pl.col(name).cast(CARRIED.get(name, whole.schema[name] if name == "pair" else pl.String()))
        for name in columns
    )


def _of_judge(rows: pl.DataFrame, manifest: Manifest, judge: str) -> pl.DataFrame:
    """Keep what a judge said, as it is now, in the repeats asked now."""
    mine = pl.col("fingerprint").cast(pl.String) == manifest.fingerprints[judge]
    return rows.filter(mine & (pl.col("repeat") <= manifest.config.repeats))


def asked_pairs(run: RunDir, manifest: Manifest, numbers: pl.Series | None = None) -> pl.DataFrame:
    """Name the pairs of the design by their digests (column pair), with the orders asked.

    Their numbers are the column pair_id: those given, or the places of the pairs in the index.
    """
    index, design = run.scan_index(), design_of(manifest)
    pairs = index.select("task", "identical", pair="digest").collect()
    if numbers is None:
        pairs = pairs.with_columns(pl.int_range(pl.len()).alias("pair_id"))
    else:
        pairs = pairs.with_columns(numbers)
    questions = None
    if design.orders == "sampled":
        ids = index.select("question_id").collect()["question_id"]
        questions = question_words(ids, design.orders)
    asked = design.asked(digest_words(pairs["pair"]), questions)
    return pairs.with_columns(
        expects_ab=pl.Series(asked[Order.AB]), expects_ba=pl.Series(asked[Order.BA])
    ).filter(pl.col("expects_ab") | pl.col("expects_ba"))


def _expected(asked: pl.DataFrame, repeats: int, *, live: bool) -> pl.DataFrame:
    """List what the design asks of a judge: one row per pair and repeat."""
    # What joins the probe is not missing from the other tables.
    pairs = asked.filter(~pl.col("identical")) if live else asked
    numbers = pl.DataFrame({"repeat": range(1, repeats + 1)}, {"repeat": pl.Int32})
    return pairs.select("pair_id", "expects_ab", "expects_ba").join(numbers, how="cross")
