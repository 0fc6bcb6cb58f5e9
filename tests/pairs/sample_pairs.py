"""Small inputs of every format, and what comes back from them."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from judgebias.calls import Pair
from judgebias.pairs import PairsSpec, Survey, read_block, survey_pairs

Row = dict[str, Any]


def row(pair_id: Any = "p1", **values: Any) -> Row:
    """A row that can be judged."""
    base = {"pair_id": pair_id, "question": "Why?", "answer_a": "Because.", "answer_b": "So."}
    return base | values


def write_rows(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows in the format that the name says."""
    plain = path.with_name(path.name.removesuffix(".gz"))
    names = list(dict.fromkeys(key for row in rows for key in row))
    if plain.suffix == ".parquet":
        table = pa.table({name: [row.get(name) for row in rows] for name in names})
        pq.write_table(table, path, row_group_size=5)
    elif plain.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
    else:
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        path.write_bytes("".join(lines).encode())
    if path != plain:
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def write_bytes(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def survey(path: Path, **spec: Any) -> Survey:
    return survey_pairs(PairsSpec(source=str(path), **spec))


def survey_and_read(path: Path, **values: Any) -> tuple[Survey, list[Pair]]:
    """Survey a file, read all its blocks in order, and check that both tell of the same pairs."""
    spec = PairsSpec(source=str(path), **values)
    found = survey_pairs(spec)
    pairs: list[Pair] = []
    for block in found.blocks:
        inside = read_block(block, spec)
        listed = found.index.filter(pl.col("block") == block.number)["digest"].to_list()
        assert [pair.digest() for pair in inside] == listed
        pairs += inside
    assert len(pairs) == found.index.height
    return found, pairs
