"""What a record must hold, and what records must not say about each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

import polars as pl

from judgebias.errors import InputError
from judgebias.records.columns import SHARES, WHOLE, WORDS, Source

ALL: Final = "ALL"
CALL: Final = ("judge", "task", "pair_id", "repeat", "order")
PAIR: Final = ("task", "pair_id")
SHOWN: Final = 3
_BITS: Final = 2**31 - 1


def check_values(frame: pl.DataFrame, source: Source) -> None:
    """Refuse the first record of a file with a value that no record may have."""
    rules = list(_rules(source))
    broken = frame.select(wrong.any().alias(str(n)) for n, (wrong, *_) in enumerate(rules)).row(0)
    for (wrong, name, expected), is_broken in zip(rules, broken, strict=True):
        if is_broken:
            _refuse_where(frame, source, wrong, name, expected)


def _rules(source: Source) -> Iterator[tuple[pl.Expr, str, str]]:
    """Give what is wrong, in which column, and what is expected there."""
    for name in ("pair_id", "judge", "order"):
        yield pl.col(name).is_null(), name, "a value"
    for name in source.ids:
        yield pl.col(name) == "", name, "a name, or null where it may be"
    for name, words in WORDS.items():
        nullable = "" if name == "order" else " or null (an empty field in CSV)"
        yield ~pl.col(name).is_in(words), name, f"{', '.join(words)}{nullable}"
    for name, least in WHOLE.items():
        outside = (pl.col(name) < least) | (pl.col(name) > _BITS)
        yield outside, name, f"a whole number from {least}"
    for name in SHARES:
        yield ~pl.col(name).is_between(0.0, 1.0), name, "a number from 0 to 1"
    yield pl.col("task") == ALL, "task", f"another name: {ALL} is the row over all tasks"
    both = pl.col("verdict").is_not_null() & pl.col("failure").is_not_null()
    yield both, "failure", "null beside a verdict"


def drop_repeated(frame: pl.DataFrame, sources: Sequence[Source]) -> tuple[pl.DataFrame, int]:
    """Count a call once that is recorded several times, and refuse contradictions.

    Returns
    -------
    frame, int
        One record per call, and how many records were left out.
    """
    again = frame.group_by(CALL).len().filter(pl.col("len") > 1)
    if again.is_empty():
        return frame, 0
    suspects = frame.join(again.select(CALL), on=CALL, how="semi")
    said = suspects.group_by(CALL).agg((pl.col("verdict").n_unique() > 1).alias("differ"), pl.len())
    differ = said.filter("differ")
    if not differ.is_empty():
        _refuse_calls(suspects.join(differ.sort(CALL).head(1).select(CALL), on=CALL), sources)
    # Sorted by content, so that which record stays does not depend on the order of the files.
    ordered = suspects.sort(*CALL, "failure", *SHARES, nulls_last=True, maintain_order=True)
    kept = ordered.unique(CALL, keep="first", maintain_order=True)
    others = frame.join(again.select(CALL), on=CALL, how="anti")
    return pl.concat([others, kept]), suspects.height - kept.height


def refuse_pairs(frame: pl.DataFrame, sources: Sequence[Source], names: Sequence[str]) -> NoReturn:
    """Refuse records that say different things of one pair: the first such pair, by its first name.

    Parameters
    ----------
    frame
        All records of the pairs that are contradicted.
    sources
        Where the records come from.
    names
        What records say of their pairs.
    """
    for name in names:
        differ = (
            frame.group_by(PAIR).agg(pl.col(name).drop_nulls().n_unique()).filter(pl.col(name) > 1)
        )
        if not differ.is_empty():
            _refuse_pair(frame, sources, differ.sort(PAIR).head(1), name)
    raise ValueError(f"the records of {frame.height} rows do not contradict each other")


def _refuse_where(
    frame: pl.DataFrame, source: Source, wrong: pl.Expr, name: str, expected: str
) -> None:
    bad = frame.lazy().filter(wrong).select("row", name).head(1).collect()
    if not bad.is_empty():
        row, value = bad.row(0)
        shown = "null" if value is None else f'"{value}"' if isinstance(value, str) else value
        source.refuse(row, f"{name} is {shown}", expected=expected, do="mend the record")


def _refuse_calls(records: pl.DataFrame, sources: Sequence[Source]) -> None:
    first = records.row(0, named=True)
    key = ", ".join(f"{name} {first[name]}" for name in CALL)
    raise InputError(
        f"one call has two verdicts ({key}): {_places(records, sources, 'verdict')}",
        expected="one verdict per judge, task, pair, repeat and order",
        do="number the repeats in `repeat`, or leave one record out",
    )


def _refuse_pair(
    frame: pl.DataFrame, sources: Sequence[Source], pair: pl.DataFrame, name: str
) -> NoReturn:
    records = frame.join(pair.select(PAIR), on=PAIR).filter(pl.col(name).is_not_null())
    task, pair_id = pair.select(PAIR).row(0)
    raise InputError(
        f"the pair {pair_id} of task {task} has more than one {name}: "
        f"{_places(records, sources, name)}",
        expected=f"one {name} per pair in all records",
        do="give different pairs different ids or tasks",
    )


def _places(records: pl.DataFrame, sources: Sequence[Source], name: str) -> str:
    distinct = records.sort("file", "row").unique(name, keep="first", maintain_order=True)
    said: list[str] = []
    for value, file, row in distinct.select(name, "file", "row").head(SHOWN).iter_rows():
        source = sources[file]
        said.append(
            f"{value if value is not None else 'null'} in {source.path}, {source.unit} {row}"
        )
    return "; ".join(said)
