"""Pairs of realistic size, as many as wanted, in Parquet files that are written as they are made.

Each question has about 1 kB and each answer 0.2 to 4 kB, of words that compress as prose does, with
some markdown among them. The same seed gives the same pairs, and a larger input begins with a
smaller one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

TASKS = 20
MODELS = ("model-a", "model-b", "model-c", "model-d")
QUESTION_BYTES = 1_000
ANSWER_BYTES = (200, 4_000)
FILE_PAIRS = 100_000
GROUP_PAIRS = 25_000
"""Pairs in a row group of the files."""
_CHUNK = 5_000
_POOL_WORDS = 800_000
_VOCABULARY = 20_000


def write_big_pairs(folder: Path, count: int, *, seed: int = 1) -> Path:
    """Write so many pairs into Parquet files of `folder`; never more than one file's are held."""
    folder.mkdir(parents=True)
    pool = _pool(np.random.default_rng(seed))
    for first in range(0, count, FILE_PAIRS):
        end = min(first + FILE_PAIRS, count)
        parts = [
            _pairs(pool, np.random.default_rng((seed, start)), start, min(start + _CHUNK, end))
            for start in range(first, end, _CHUNK)
        ]
        path = folder / f"{first // FILE_PAIRS:04d}.parquet"
        pl.concat(parts).write_parquet(path, row_group_size=GROUP_PAIRS)
    return folder


def _pool(generator: np.random.Generator) -> str:
    """Make a text that every question and answer is a stretch of."""
    letters = np.array(list("eeeeaaaooiinnttssrrhldcumfpgwybvkx"))
    lengths = generator.integers(2, 11, _VOCABULARY)
    words = ["".join(generator.choice(letters, length)) for length in lengths]
    # Zipf's law, as words have it: prose compresses two to three times.
    places = np.minimum(generator.zipf(1.3, _POOL_WORDS), _VOCABULARY) - 1
    ends = generator.choice([" ", ". ", ", ", ".\n", "\n- ", "\n\n## ", " **"], _POOL_WORDS,
                            p=[0.86, 0.06, 0.05, 0.015, 0.008, 0.002, 0.005])  # fmt: skip
    return "".join(words[place] + end for place, end in zip(places, ends, strict=True))


def _pairs(pool: str, generator: np.random.Generator, first: int, end: int) -> pl.DataFrame:
    n = end - first
    numbers = np.arange(first, end)
    models = generator.integers(0, len(MODELS), (2, n))
    return pl.DataFrame(
        {
            "pair_id": [f"{number:08d}" for number in numbers],
            "task": [f"task-{number % TASKS:02d}" for number in numbers],
            "question": _texts(pool, generator, np.full(n, QUESTION_BYTES)),
            "answer_a": _texts(pool, generator, generator.integers(*ANSWER_BYTES, n)),
            "answer_b": _texts(pool, generator, generator.integers(*ANSWER_BYTES, n)),
            "model_a": [MODELS[model] for model in models[0]],
            "model_b": [MODELS[model] for model in models[1]],
        }
    )


def _texts(pool: str, generator: np.random.Generator, sizes: npt.NDArray[np.int64]) -> list[str]:
    starts = generator.integers(0, len(pool) - ANSWER_BYTES[1], len(sizes))
    return [pool[start : start + size] for start, size in zip(starts, sizes, strict=True)]
