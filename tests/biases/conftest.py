"""The set of recorded verdicts that known answers were made of, by question."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

import polars as pl
import pytest

from judgebias.records import join_pairs, read_records
from judgebias.summary import settle_calls


@pytest.fixture(scope="session")
def vicuna80(shared: Path) -> pl.LazyFrame:
    """The settled verdicts of three judges on 800 pairs of 80 questions."""
    data = shared / "data/prd_vicuna80"
    lines = (data / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    pairs = pl.DataFrame(
        [
            {name: row[name] for name in ("task", "pair_id", "model_a", "model_b", "gold")}
            | {
                "question_id": blake2b(row["question"].encode(), digest_size=16).hexdigest(),
                "len_a": len(row["answer_a"]),
                "len_b": len(row["answer_b"]),
            }
            for row in rows
        ],
        infer_schema_length=None,
    )
    records = join_pairs(read_records([data / "verdicts.jsonl"]), pairs)
    return settle_calls(records.calls.lazy(), records.pairs.lazy()).collect().lazy()
