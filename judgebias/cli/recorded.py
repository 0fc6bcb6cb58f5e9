"""What tables are made of where it comes from files of verdict records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from judgebias.biases.ballots import PANEL
from judgebias.cli.coded import CodedPairs
from judgebias.cli.evidence import Calls, Evidence
from judgebias.cli.screen import Screen
from judgebias.errors import InputError
from judgebias.leaks import LEAK_COLUMNS
from judgebias.pairs import PairsSpec, survey_pairs
from judgebias.records import Records, join_pairs, read_records, with_shares
from judgebias.summary.texts import Texts
from judgebias.tone import DENSITY_COLUMNS

_KEY = ["task", "pair_id"]


def evidence_of_records(
    sources: Sequence[str], pairs: str, cluster: str, screen: Screen
) -> Evidence:
    """Read files of verdict records, and join the pairs file where one is given."""
    records = read_records(list(sources), cluster=cluster)
    tone = texts = None
    if pairs:
        index_cluster = cluster if cluster in ("question", "pair") else "question"
        survey = survey_pairs(PairsSpec(source=pairs, cluster=index_cluster, base=Path.cwd()))
        records = join_pairs(records, survey.index, cluster=cluster)
        tone = survey.index.select("task", "pair_id", *DENSITY_COLUMNS, *LEAK_COLUMNS)
        judged = survey.index.join(records.pairs, on=_KEY, how="semi")
        texts = Texts.of(judged.lazy())
    if PANEL in records.judges:
        raise InputError(
            f"the records have a judge named {PANEL!r}, which is the name of the panel's own rows",
            do="give that judge another name in the records",
        )
    told = [] if texts is None else texts.words(live=False, recorded=True)
    for notice in (*records.notices, *told):
        screen.say(notice)
    # Sorted by task and id, so the place of a pair is its number.
    coded = CodedPairs.of(_with_tone(records.pairs, tone).lazy())
    repeats = {int(n) for calls in records.judges.values() for n in calls["repeat"].unique()}
    return Evidence(
        judges=tuple(sorted(records.judges)),
        repeats=tuple(sorted(repeats)),
        calls=lambda judge: _calls(records, judge, coded.pairs["task"]),
        pairs=coded.pairs,
        expected=lambda _: None,
        names=coded.names,
        told=coded.told,
        texts=texts,
    )


def _calls(records: Records, judge: str, task: pl.Series) -> Calls:
    calls, pairs = with_shares(records.judges[judge]), records.pairs
    ended = calls.with_columns(
        task.gather(calls["pair"]),
        judge=pl.lit(judge),
        pair_id=pl.col("pair").cast(pl.Int64),
    ).drop("pair")
    return Calls(ended=ended, probe=_on_twins(ended, pairs))


def _on_twins(calls: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Find the recorded calls on pairs with two identical answers; each pair is an item."""
    names = pairs.with_row_index("number").filter("identical")
    twins = names.select(pair_id=pl.col("number").cast(pl.Int64), item="pair_id")
    return calls.join(twins, on="pair_id", how="inner").with_columns(pair_id="item")


def _with_tone(pairs: pl.DataFrame, tone: pl.DataFrame | None) -> pl.DataFrame:
    if tone is None:
        return pairs
    return pairs.join(tone, on=_KEY, how="left", maintain_order="left")
