"""What tables are made of, wherever it came from: a run directory or files of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from judgebias.cli.coded import Namer
from judgebias.families import BUILT_IN, Families
from judgebias.summary.texts import Texts

NO_TASKS = pl.DataFrame(schema={"task": pl.String})


@dataclass(frozen=True, kw_only=True, slots=True)
class Calls:
    """The calls of one judge."""

    ended: pl.DataFrame
    """One row per call that ended, those on two identical texts only where they were recorded."""
    probe: pl.DataFrame
    """Calls that ended on two identical texts, with their `item`."""
    bought: pl.DataFrame | None = None
    """All calls that ended, the probe's included; None for records."""
    extra: pl.DataFrame | None = None
    """Replies that are not their call's answer but were paid for; None for records."""
    n_pending: int = 0
    """Calls that are to be asked, the probe's included."""
    n_pending_items: int = 0
    """Those of them on self pairs."""
    probe_pending: pl.DataFrame = field(default_factory=lambda: NO_TASKS)
    """task: one row per call that is to be asked on two identical texts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What tables are made of; one judge is looked at at a time."""

    judges: tuple[str, ...]
    """Sorted."""
    repeats: tuple[int, ...]
    calls: Callable[[str], Calls]
    """Judge -> its calls."""
    pairs: pl.DataFrame
    """One row per pair, row n of the pair with the number n in `pair_id`; `cluster` is a number."""
    expected: Callable[[str], pl.DataFrame | None]
    """Judge -> what a live run asks (pair_id, repeat, expects_ab, expects_ba); None for records,
    which are all there is."""
    names: Callable[[], Namer]
    """Reads the names of pairs and clusters."""
    told: Callable[[Sequence[str]], pl.LazyFrame | None]
    """Columns of the pairs' texts -> these beside `pair_id`; None where they are not known."""
    quorum: int = 0
    families: Families = BUILT_IN
    judge_families: Mapping[str, str] = field(default_factory=dict[str, str])
    """Judge -> its family, where it is not told by the judge's name."""
    skipped: Mapping[str, int] = field(default_factory=dict[str, int])
    """Task -> pairs left out for an identity leak."""
    live: frozenset[str] = frozenset()
    """Judges that were asked; the others were read from records."""
    has_tie: Mapping[str, bool | None] = field(default_factory=dict[str, bool | None])
    """Judge -> whether it can call a tie, where that is known."""
    first_orders: pl.LazyFrame | None = None
    """pair_id, first_order, where the design does not ask every pair in both orders."""
    notices: tuple[str, ...] = ()
    """What the reader of summary.md must know of the design."""
    texts: Texts | None = None
    """None where the texts are not known."""
    stopping: Callable[[dict[str, int]], pl.DataFrame | None] = lambda _: None
    """Judge -> calls that ended: the table of the stop rule, None without one."""
