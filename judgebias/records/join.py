"""Records and a pairs file: what the pairs say of question, models, gold and lengths."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import polars as pl

from judgebias.errors import InputError
from judgebias.records.read import PAIR_COLUMNS, Records

_KEY: Final = ("task", "pair_id")
_NUMBER: Final = "number"
_TOLD: Final = ("model_a", "model_b", "gold", "len_a", "len_b")


def join_pairs(records: Records, pairs: pl.DataFrame, *, cluster: str = "question") -> Records:
    """Attach a pairs file to records by (task, pair_id).

    Parameters
    ----------
    records
        What `read_records` returns.
    pairs
        One row per (task, pair_id); of question_id, model_a, model_b, gold, cluster, len_a, len_b,
        identical and the column named by `cluster`, those it has.
    cluster
        ``question``: the question_id, else the pair's cluster; ``pair``; or a column of `pairs`.

    Returns
    -------
    Records
        Records of pairs that are not in `pairs` are left out, with a notice that counts them.

    Raises
    ------
    InputError
        The pairs contradict the records, or have no such column.
    """
    numbered = records.pairs.with_row_index(_NUMBER)
    known = numbered.join(pairs.select(_KEY), on=_KEY, how="semi", maintain_order="left")
    if known.is_empty():
        raise InputError(
            "no record speaks of a pair in the pairs file",
            expected="records and pairs with the same task and pair_id",
            do="check that both belong together",
        )
    told = _attributes(pairs, cluster)
    joined = known.join(told, on=_KEY, how="left", suffix=":pairs", maintain_order="left")
    for name in _TOLD:
        _refuse_conflict(joined, name)
    merged = joined.with_columns(
        *(pl.coalesce(f"{name}:pairs", name).alias(name) for name in _TOLD),
        pl.col("cluster:pairs").alias("cluster"),
        pl.col("identical:pairs").fill_null(value=False).alias("identical"),
    ).select(*_KEY, *PAIR_COLUMNS)
    judges = {judge: _of_known(calls, known) for judge, calls in records.judges.items()}
    kept = Records(
        judges={judge: calls for judge, calls in judges.items() if calls.height}, pairs=merged
    )
    return replace(kept, notices=(*records.notices, *_left_out(records, kept)))


def _of_known(calls: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Keep the calls on known pairs, which are numbered anew."""
    places = known.select(pl.col(_NUMBER).alias("pair")).with_row_index("place")
    joined = calls.join(places, on="pair", how="inner", maintain_order="left")
    return joined.with_columns(pl.col("place").alias("pair")).drop("place")


def _attributes(pairs: pl.DataFrame, cluster: str) -> pl.DataFrame:
    present = set(pairs.columns)
    types = {"len_a": pl.Int64, "len_b": pl.Int64, "identical": pl.Boolean}
    told = [
        (pl.col(name) if name in present else pl.lit(None))
        .cast(types.get(name, pl.String))
        .alias(name)
        for name in (*_TOLD, "identical")
    ]
    return pairs.select(*_KEY, *told, _label(present, cluster).cast(pl.String).alias("cluster"))


def _label(present: set[str], cluster: str) -> pl.Expr:
    if cluster == "pair":
        return pl.lit(None)
    if cluster == "question":
        names = [name for name in ("question_id", "cluster") if name in present]
        return pl.coalesce(names) if names else pl.lit(None)
    if cluster not in present:
        raise InputError(
            f"the cluster column {cluster} is not in the pairs file",
            expected=f"question, pair, or one of {', '.join(sorted(present))}",
        )
    return pl.col(cluster)


def _refuse_conflict(joined: pl.DataFrame, name: str) -> None:
    other = f"{name}:pairs"
    differ = joined.filter(pl.col(name) != pl.col(other)).sort(_KEY)
    if differ.is_empty():
        return
    first = differ.row(0, named=True)
    raise InputError(
        f"the pair {first['pair_id']} of task {first['task']} has {name} {first[name]} in the "
        f"records and {first[other]} in the pairs file ({differ.height} pairs differ)",
        expected="records and pairs that agree",
        do="check that both belong together",
    )


def _left_out(records: Records, kept: Records) -> tuple[str, ...]:
    left = records.n_calls - kept.n_calls
    if not left:
        return ()
    return (f"{left} of {records.n_calls} records speak of pairs that are not in the pairs file",)
