"""Verdict records from files: one call per record, checked, with the pairs they speak of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from judgebias.errors import InputError
from judgebias.records.check import check_values, drop_repeated, pairs_of
from judgebias.records.columnar import read_csv, read_parquet
from judgebias.records.columns import KNOWN, QUESTION, SHARES, Chunk, Source
from judgebias.records.jsonl import read_jsonl
from judgebias.records.sources import find_files, kind_of
from judgebias.replies import FailureKind

DEFAULT_TASK: Final = "default"
PAIR_COLUMNS: Final = ("model_a", "model_b", "gold", "cluster", "len_a", "len_b", "identical")


@dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """Recorded calls and the pairs they judge."""

    calls: pl.DataFrame
    """One row a call: judge, task, pair_id, repeat, order, slot, failure, `SHARES`."""
    pairs: pl.DataFrame
    """task, pair_id and `PAIR_COLUMNS`: one row a pair."""
    notices: tuple[str, ...] = ()
    """What a reader should know: records left out, columns not used."""


def read_records(sources: Iterable[str | Path], *, cluster: str = "question") -> Records:
    """Read verdict records from files, folders and globs.

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
    frame, unused = _gather(opened)
    if named and frame[named].null_count() == frame.height:
        raise _no_cluster(named)
    frame, again = drop_repeated(frame, opened)
    pairs, told = pairs_of(frame, opened, named)
    if cluster not in {QUESTION, "pair"} and cluster not in told:
        raise _no_cluster(cluster)
    notices = [
        *([f"{again} records repeat a call with the same verdict and count once"] if again else []),
        *([f"columns that were not used: {', '.join(sorted(unused))}"] if unused else []),
    ]
    return Records(calls=_calls(frame), pairs=_pairs(pairs, cluster), notices=tuple(notices))


def _gather(sources: list[Source]) -> tuple[pl.DataFrame, set[str]]:
    frames: list[pl.DataFrame] = []
    unused: set[str] = set()
    for source in sources:
        for chunk in _chunks(source):
            check_values(chunk.frame, source)
            frames.append(_with_defaults(chunk.frame))
            unused |= chunk.unused
    if sum(frame.height for frame in frames) == 0:
        raise InputError(
            f"no verdict records in {', '.join(str(source.path) for source in sources)}",
            expected="at least one record",
        )
    return pl.concat(frames), unused


def _chunks(source: Source) -> Iterator[Chunk]:
    kind = kind_of(source.path)
    if kind == ".csv":
        yield read_csv(source)
    elif kind == ".parquet":
        yield read_parquet(source)
    else:
        yield from read_jsonl(source)


def _with_defaults(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        pl.col("task").fill_null(DEFAULT_TASK), pl.col("repeat").fill_null(1).cast(pl.Int32)
    )


def _no_cluster(name: str) -> InputError:
    return InputError(
        f"the cluster column {name} is in no record",
        expected="question, pair, or a column of the records",
        do="check the name, or join the pairs that have it",
    )


def _calls(frame: pl.DataFrame) -> pl.DataFrame:
    failure = pl.col("failure").fill_null(str(FailureKind.RECORDED))
    return frame.select(
        *("judge", "task", "pair_id", "repeat", "order"),
        pl.col("verdict").alias("slot"),
        pl.when(pl.col("verdict").is_null()).then(failure).alias("failure"),
        *SHARES,
    )


def _pairs(pairs: pl.DataFrame, cluster: str) -> pl.DataFrame:
    rule = {
        QUESTION: pl.coalesce(QUESTION, "cluster"),
        "pair": pl.lit(None, dtype=pl.String),
    }.get(cluster, pl.col(cluster) if cluster in pairs.columns else pl.lit(None))
    labelled = pairs.with_columns(
        rule.cast(pl.String).alias("cluster"), pl.lit(value=False).alias("identical")
    )
    return labelled.select("task", "pair_id", *PAIR_COLUMNS)
