"""Verdict records from files: one call per record, checked, with the pairs they speak of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import polars as pl

from judgebias.call_numbers import is_repeated
from judgebias.errors import InputError
from judgebias.records.check import CALL, PAIR, check_values, drop_repeated, refuse_pairs
from judgebias.records.columnar import read_csv, read_parquet
from judgebias.records.columns import KNOWN, QUESTION, SHARES, Chunk, Source
from judgebias.records.jsonl import read_jsonl
from judgebias.records.roster import Roster, parts_by
from judgebias.records.sources import find_files, kind_of
from judgebias.replies import FailureKind
from judgebias.verdicts import Order, Slot

DEFAULT_TASK: Final = "default"
PAIR_COLUMNS: Final = ("model_a", "model_b", "gold", "cluster", "len_a", "len_b", "identical")
CALL_COLUMNS: Final = (*CALL, "slot", "failure", *SHARES)

_Frame: TypeAlias = tuple[pl.DataFrame, frozenset[str]]
"""A part of a file in the common form, and the columns of it that were not used."""
_TYPES: Final = {
    "order": pl.Enum(Order),
    "slot": pl.Enum(Slot),
    "failure": pl.Enum(FailureKind),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """Recorded calls and the pairs they judge; a call names its pair by number."""

    judges: Mapping[str, pl.DataFrame]
    """Judge -> one row a call: `pair` (a row of `pairs`), repeat, order, slot, failure and, where
    one of its records has them, `SHARES`; in the order of the files."""
    pairs: pl.DataFrame
    """task, pair_id and `PAIR_COLUMNS`: one row a pair, sorted by task and pair_id."""
    notices: tuple[str, ...] = ()
    """What a reader should know: records left out, columns not used."""

    @property
    def calls(self) -> pl.DataFrame:
        """`CALL_COLUMNS`: one row a call, judge by judge, with names in the place of numbers."""
        return pl.concat(self._named(judge, calls) for judge, calls in self.judges.items())

    @property
    def n_calls(self) -> int:
        """All calls."""
        return sum(calls.height for calls in self.judges.values())

    def _named(self, judge: str, calls: pl.DataFrame) -> pl.DataFrame:
        keys = (self.pairs[name].gather(calls["pair"]).alias(name) for name in PAIR)
        words = with_shares(calls).with_columns(
            pl.col(list(_TYPES)).cast(pl.String), *keys, judge=pl.lit(judge)
        )
        return words.select(CALL_COLUMNS)


def with_shares(calls: pl.DataFrame) -> pl.DataFrame:
    """Add the `SHARES` that no record of a judge has, as nulls."""
    missing = [name for name in SHARES if name not in calls.columns]
    return calls.with_columns(pl.lit(None, pl.Float64).alias(name) for name in missing)


def read_records(sources: Iterable[str | Path], *, cluster: str = "question") -> Records:
    """Read verdict records from files, folders and globs.

    Of a file only a part is in memory at a time; what is kept of a record is a dozen bytes.

    Parameters
    ----------
    sources
        .jsonl, .ndjson, .csv or .parquet, plain or .gz.
    cluster
        ``question``: the question's text where records carry it, else their `cluster`; ``pair``:
        every pair by itself; else the name of a column that says which pairs belong together.

    Raises
    ------
    InputError
        A file that cannot be read, a record that says what it cannot mean, or records that
        contradict each other; the places are named.
    """
    files = find_files(sources)
    named = cluster if cluster not in {*KNOWN, "pair"} else None
    opened = [Source(path=path, number=n, cluster=named) for n, path in enumerate(files)]
    roster = Roster([named] if named else [])
    judges, unused = _gather(opened, roster)
    if named and named not in roster.told:
        raise _no_cluster(named)
    pairs = roster.pairs()
    judges, again = _each_once(judges, pairs, opened)
    if not roster.contradicted.is_empty():
        told = _select(opened, roster.contradicted, PAIR)
        refuse_pairs(told, opened, [name for name in roster.names if name in roster.told])
    if cluster not in {QUESTION, "pair"} and cluster not in roster.told:
        raise _no_cluster(cluster)
    notices = [
        *([f"{again} records repeat a call with the same verdict and count once"] if again else []),
        *([f"columns that were not used: {', '.join(sorted(unused))}"] if unused else []),
    ]
    return Records(
        judges={judge: _renumbered(calls, pairs) for judge, calls in judges.items()},
        pairs=_labelled(pairs, cluster),
        notices=tuple(notices),
    )


def _gather(sources: list[Source], roster: Roster) -> tuple[dict[str, pl.DataFrame], set[str]]:
    parts: defaultdict[str, list[pl.DataFrame]] = defaultdict(list)
    unused: set[str] = set()
    for frame, more in _read_ahead(_frames(sources)):
        unused |= more
        if frame.is_empty():
            continue
        calls = _calls(frame, roster.numbers(frame))
        for judge, part in parts_by(calls, "judge"):
            parts[judge].append(part.drop("judge"))
    if not parts:
        raise InputError(
            f"no verdict records in {', '.join(str(source.path) for source in sources)}",
            expected="at least one record",
        )
    judges = {judge: pl.concat(rows, how="diagonal") for judge, rows in sorted(parts.items())}
    return judges, unused


def _read_ahead(frames: Iterator[_Frame]) -> Iterator[_Frame]:
    """Read and check the next part in a thread while one is made use of."""
    with ThreadPoolExecutor(1, thread_name_prefix="records") as pool:
        following = pool.submit(next, frames, None)
        while (frame := following.result()) is not None:
            following = pool.submit(next, frames, None)
            yield frame


def _frames(sources: list[Source]) -> Iterator[_Frame]:
    for source in sources:
        for chunk in _chunks(source):
            check_values(chunk.frame, source)
            yield _with_defaults(chunk.frame), chunk.unused


def _chunks(source: Source) -> Iterator[Chunk]:
    kind = kind_of(source.path)
    if kind == ".csv":
        yield read_csv(source)
    elif kind == ".parquet":
        yield read_parquet(source)
    else:
        yield from read_jsonl(source)


def _with_defaults(frame: pl.DataFrame) -> pl.DataFrame:
    defaults = {"task": DEFAULT_TASK, "repeat": 1}
    missing = [
        pl.col(name).fill_null(it) for name, it in defaults.items() if frame[name].has_nulls()
    ]
    return frame.with_columns(missing).cast({"repeat": pl.Int32})


def _calls(frame: pl.DataFrame, pairs: pl.Series) -> pl.DataFrame:
    """Reduce records to their calls."""
    failure = pl.col("failure").fill_null(str(FailureKind.RECORDED))
    shares = [name for name in SHARES if frame[name].null_count() < frame.height]
    return frame.select(
        "judge",
        pairs.alias("pair"),
        "repeat",
        pl.col("order").cast(_TYPES["order"]),
        pl.col("verdict").cast(_TYPES["slot"]).alias("slot"),
        pl.when(pl.col("verdict").is_null()).then(failure).cast(_TYPES["failure"]).alias("failure"),
        *shares,
    )


def _each_once(
    judges: dict[str, pl.DataFrame], pairs: pl.DataFrame, sources: list[Source]
) -> tuple[dict[str, pl.DataFrame], int]:
    """Count a call once that is recorded several times, and refuse contradictions.

    Only the calls that are recorded several times are read again, with all that was said.
    """
    again = {
        judge: pl.Series(is_repeated(calls["pair"], calls["repeat"], calls["order"]))
        for judge, calls in judges.items()
    }
    names = pairs.select("task", "pair_id", pair="number")
    keys = [
        calls.filter(repeated)
        .select("pair", "repeat", pl.col("order").cast(pl.String), judge=pl.lit(judge))
        .join(names, on="pair")
        for (judge, calls), repeated in zip(judges.items(), again.values(), strict=True)
        if repeated.any()
    ]
    if not keys:
        return judges, 0
    suspects = _select(sources, pl.concat(keys).select(CALL).unique(), CALL)
    kept, left_out = drop_repeated(suspects, sources)
    numbers = kept.join(names, on=PAIR, how="left", maintain_order="left")["pair"]
    single = _calls(kept, numbers).partition_by("judge", as_dict=True, include_key=False)
    once = {
        judge: pl.concat([calls.filter(~again[judge]), *_of(single, judge)], how="diagonal")
        for judge, calls in judges.items()
    }
    return once, left_out


def _of(parts: Mapping[tuple[object, ...], pl.DataFrame], judge: str) -> list[pl.DataFrame]:
    return [parts[(judge,)]] if (judge,) in parts else []


def _select(sources: list[Source], keys: pl.DataFrame, on: tuple[str, ...]) -> pl.DataFrame:
    """Read the records of some pairs or calls again, with all that they say."""
    found = (frame.join(keys, on=on, how="semi") for frame, _ in _frames(sources))
    return pl.concat([part for part in found if part.height])


def _renumbered(calls: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Number pairs by their place in the sorted table."""
    places = pairs.select("number", place=pl.int_range(pl.len(), dtype=pl.UInt32))
    by_number = places.sort("number")["place"]
    return calls.with_columns(by_number.gather(calls["pair"]).alias("pair"))


def _labelled(pairs: pl.DataFrame, cluster: str) -> pl.DataFrame:
    rule = {
        QUESTION: pl.coalesce(QUESTION, "cluster"),
        "pair": pl.lit(None, dtype=pl.String),
    }.get(cluster, pl.col(cluster) if cluster in pairs.columns else pl.lit(None))
    labelled = pairs.with_columns(
        rule.cast(pl.String).alias("cluster"), pl.lit(value=False).alias("identical")
    )
    return labelled.select(*PAIR, *PAIR_COLUMNS)


def _no_cluster(name: str) -> InputError:
    return InputError(
        f"the cluster column {name} is in no record",
        expected="question, pair, or a column of the records",
        do="check the name, or join the pairs that have it",
    )
