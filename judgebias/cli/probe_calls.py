"""The calls on two identical texts: self pairs, and input pairs whose answers are the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from judgebias.cli.evidence import Calls
from judgebias.config import RunConfig
from judgebias.journal import first_wins, read_journal
from judgebias.manifest import Manifest
from judgebias.rundir import RunDir
from judgebias.self_pairs import (
    ITEM_COLUMNS,
    binary,
    draw_items,
    is_probed,
    item_digests,
    self_digests,
)
from judgebias.verdicts import Order

PROBE_COLUMNS: Final = (
    *("judge", "task", "pair", "pair_id", "repeat", "order", "slot", "failure", "message", "item"),
)
"""What the probe's tables need of a call."""
_EXPECTED: Final = ["task", "pair", "order", "repeat"]
_ITEM: Final = {
    Order.AB: pl.format("{}/{}", "question_id", "text_id_a").alias("item"),
    Order.BA: pl.format("{}/{}", "question_id", "text_id_b").alias("item"),
}
"""One text of one question is one item, wherever it stands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """What a judge was shown of self pairs."""

    ended: pl.DataFrame
    """One row per call that ended, with its `item`."""
    extra: pl.DataFrame
    """Replies that are not their call's answer."""
    pending: pl.DataFrame
    """task: one row per call that is to be asked."""

    @property
    def n_pending(self) -> int:
        """Calls that are to be asked."""
        return self.pending.height


def live_judges(config: RunConfig) -> frozenset[str]:
    """Name the judges that are asked, not read from records."""
    return frozenset(judge.name for judge in config.judges if is_probed(judge))


def probe_of_run(run: RunDir, manifest: Manifest, judge: str, strange: pl.DataFrame) -> Probe:
    """Find a judge's self pairs among the replies that belong to no pair of the design.

    What was asked by any start counts, for as long as its text is in the input.
    """
    ended, extra = first_wins(_self_pairs(run, strange))
    expected = _items(run, manifest, judge)
    done = ended.select("pair", "repeat")
    pending = expected.join(done, on=["pair", "repeat"], how="anti").select("task")
    return Probe(ended=ended, extra=extra.drop("item"), pending=pending)


def probed_pairs(run: RunDir) -> pl.Series:
    """Name the self pairs of the current input that the journal has replies on."""
    pairs = read_journal(run.journal, columns=("pair", "order")).table.unique()
    return _self_pairs(run, pairs)["pair"]


def _self_pairs(run: RunDir, strange: pl.DataFrame) -> pl.DataFrame:
    parts = [strange.clear().with_columns(item=pl.lit(None, pl.String))]
    for order in Order:
        mine = strange.filter(pl.col("order") == str(order))
        if mine.is_empty():
            continue
        source = binary(self_digests(b"".join(mine["pair"]), order))
        named = mine.with_columns(source.alias("source"))
        items = run.scan_index().select(pl.col("digest").alias("source"), _ITEM[order])
        asked = items.join(named.lazy().select("source").unique(), on="source", how="semi")
        parts.append(named.join(asked.collect(), on="source", how="inner").drop("source"))
    return pl.concat(parts)


def _items(run: RunDir, manifest: Manifest, judge: str) -> pl.DataFrame:
    """List the self pairs that the run's last start asks of a judge."""
    config = manifest.config
    count = config.self_pair if judge in live_judges(config) else 0
    if not count:
        return pl.DataFrame(schema={"task": pl.String, "pair": pl.Binary, "repeat": pl.Int32})
    drawn = draw_items(
        run.scan_index().select(*ITEM_COLUMNS).collect(), count=count, seed=config.seed
    )
    repeats = pl.DataFrame({"repeat": range(1, config.repeats + 1)}, {"repeat": pl.Int32})
    return drawn.select("task", item_digests(drawn)).join(repeats, how="cross")


def with_twins(
    run: RunDir, calls: Calls, twins: pl.DataFrame, repeats: int, *, live: bool
) -> Calls:
    """Take input pairs with two identical answers into the probe.

    They leave the other tables of a judge that is asked; recorded verdicts stay in both.

    Parameters
    ----------
    run, calls
        The run, and a judge's calls.
    twins
        task, pair (digest), pair_id, expects_ab, expects_ba: the pairs that are asked.
    repeats
        How often each is asked.
    live
        Whether the judge is asked, and not read from records.
    """
    if twins.is_empty():
        return calls
    index = run.scan_index().select(pl.col("digest").alias("pair"), _ITEM[Order.AB])
    named = index.join(twins.lazy().select("pair", "pair_id"), on="pair", how="inner").collect()
    mine = calls.ended.join(named, on="pair_id", how="inner")
    # What stands for the pair is its item from here on.
    words = mine.with_columns(pl.col("pair_id", "task").cast(pl.String)).select(PROBE_COLUMNS)
    probe = pl.concat([calls.probe, words])
    if not live:
        return replace(calls, probe=probe)
    expected = pl.concat(
        twins.filter(f"expects_{order}").select(
            pl.col("task").cast(pl.String), "pair", order=pl.lit(str(order))
        )
        for order in Order
    ).join(pl.DataFrame({"repeat": range(1, repeats + 1)}, {"repeat": pl.Int32}), how="cross")
    ended = mine.select("pair", pl.col("order").cast(pl.String), "repeat")
    pending = expected.join(ended, on=_EXPECTED[1:], how="anti").select("task")
    return replace(
        calls,
        ended=calls.ended.join(twins.select("pair_id"), on="pair_id", how="anti"),
        probe=probe,
        probe_pending=pl.concat([calls.probe_pending, pending]),
    )
