"""What each judge leaves behind when its calls are settled, for the tables that compare judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from judgebias.biases.ballots import PANEL
from judgebias.cli.evidence import Calls, Evidence
from judgebias.summary import (
    Row,
    compare_repeats,
    costs_table,
    failures_table,
    repeat_rows,
    rows_of,
    several_models,
)
from judgebias.summary.failures import probe_failures
from judgebias.summary.flips import flips_table
from judgebias.summary.lengths import mean_lengths
from judgebias.summary.probe import probe_table
from judgebias.summary.profiles import Group
from judgebias.summary.sampled import sampled_rows
from judgebias.summary.settle import settle_numbered
from judgebias.summary.snapshots import model_changes, snapshot_warnings
from judgebias.summary.soft import soft_rows


@dataclass(kw_only=True, slots=True)
class Gathered:
    """The figures of all judges, and where their verdicts are."""

    verdicts: dict[str, pl.LazyFrame] = field(default_factory=dict[str, pl.LazyFrame])
    """Judge -> what `settle_numbered` gives, in a file."""
    n_calls: int = 0
    """Calls that ended, of all judges."""
    rows: list[Row] = field(default_factory=list[Row])
    repeats: list[Row] = field(default_factory=list[Row])
    lengths: list[pl.DataFrame] = field(default_factory=list[pl.DataFrame])
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

    @classmethod
    def of(cls, evidence: Evidence, room: Path) -> Gathered:
        """Settle one judge after the other, and leave its verdicts in a file of the room."""
        gathered = cls()
        # The tables that compare judges name each a million times, and the panel beside them.
        names = pl.Enum([*evidence.judges, PANEL])
        for number, judge in enumerate(evidence.judges):
            path = room / f"{number}.parquet"
            verdicts = gathered._settle(evidence, judge)
            gathered._add(verdicts.lazy(), evidence)
            verdicts.cast({"judge": names}).write_parquet(path, compression="lz4")
            gathered.verdicts[judge] = pl.scan_parquet(path, glob=False)
        return gathered

    def tables(self) -> dict[str, pl.DataFrame]:
        """Make the tables that need the figures of all judges, and no verdict any more."""
        tables = {"repeats": compare_repeats(self.repeats)}
        parts: Mapping[str, list[pl.DataFrame]] = {
            "failures": self.failures or [pl.DataFrame()],
            "flips": self.flips,
            "model_changes": self.model_changes,
            "costs": self.costs,
        }
        return tables | {name: pl.concat(rows) for name, rows in parts.items() if rows}

    def _settle(self, evidence: Evidence, judge: str) -> pl.DataFrame:
        """Settle a judge's calls, which are not held any longer than that takes."""
        calls = evidence.calls(judge)
        expected = evidence.expected(judge)
        verdicts = settle_numbered(judge, calls.ended, evidence.pairs, expected)
        self.n_calls += calls.ended.height
        self.failures.append(failures_table(calls.ended.lazy(), verdicts.lazy()))
        self._add_calls(calls, evidence)
        self._add_probe(judge, calls, evidence)
        return verdicts

    def _add(self, verdicts: pl.LazyFrame, evidence: Evidence) -> None:
        self.rows.extend(rows_of(verdicts))
        self.repeats.extend(repeat_rows(verdicts, evidence.repeats))
        self.lengths.append(mean_lengths(verdicts))
        self.flips.append(flips_table(verdicts))
        self.several.update(several_models(verdicts))
        if evidence.first_orders is not None:
            named = verdicts.join(evidence.first_orders, on="pair_id", how="left")
            self.sampled.extend(sampled_rows(named))

    def _add_calls(self, calls: Calls, evidence: Evidence) -> None:
        ended = calls.ended.lazy()
        self.soft |= soft_rows(ended, evidence.pairs.lazy())
        # Records do not say which model answered.
        if "model" in calls.ended.columns:
            changes = model_changes(ended)
            self.model_changes.append(evidence.names()(changes) if changes.height else changes)
            self.snapshots += snapshot_warnings(ended, changes)
        if calls.bought is not None and calls.extra is not None:
            self.costs.append(costs_table(calls.bought.lazy(), calls.extra.lazy()))

    def _add_probe(self, judge: str, calls: Calls, evidence: Evidence) -> None:
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
