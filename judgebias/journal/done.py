"""Which calls are done: one sorted array of their keys, searched for a whole block at once.

The array has shape (2, n): the first and the last eight bytes of each key, as unsigned integers,
sorted by the first row and then the second. Each row lies in one piece, so searching copies
nothing, and an object store can share the array between processes.
"""

# pyarrow ships no types: its batches are unknown to the checker wherever they are passed on.
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from judgebias.calls import KEY_BYTES, call_mask
from judgebias.design import Words, array_words, words_of
from judgebias.journal.read import JournalReader
from judgebias.verdicts import Order

_NAMES = ["pair", "judge", "fingerprint", "repeat", "order", "slot"]
_CALL = ["key", "judge", "task", "pair_id", "repeat", "order"]
_TRIES = {
    "key": pl.Binary,
    "judge": pl.String,
    "task": pl.String,
    "pair_id": pl.String,
    "repeat": pl.Int32,
    "order": pl.String,
    "failure": pl.String,
    "attempts": pl.Int64,
    "time": pl.Datetime("us", "UTC"),
}


def done_keys(folder: Path, fingerprints: Mapping[str, bytes], *, since_epoch: int = 0) -> Words:
    """The keys of all calls of these judges that have a verdict, sorted, each once.

    `fingerprints` maps a judge's name to its fingerprint: replies of the same name under another
    fingerprint are another judge's. With `since_epoch`, only segments of that epoch or later are
    read: what is newer than an array made before.
    """
    _check(fingerprints)
    parts = [np.empty((0, 2), np.uint64)]
    with JournalReader(folder, since_epoch=since_epoch) as journal:
        for batch in journal.batches(_NAMES):
            parts.extend(keys for _, keys in _by_judge(batch, fingerprints, verdicts=True))
    return _sorted(np.concatenate(parts))


def done_and_failed(folder: Path, fingerprints: Mapping[str, bytes]) -> tuple[Words, pl.DataFrame]:
    """Give what `done_keys` and `failed_tries` give, in one pass over the journal."""
    _check(fingerprints)
    names = sorted({*_NAMES, *_TRIES} - {"key"})
    parts = [np.empty((0, 2), np.uint64)]
    failed: list[tuple[pa.RecordBatch, Words]] = []
    with JournalReader(folder) as journal:
        for batch in journal.batches(names):
            parts.extend(keys for _, keys in _by_judge(batch, fingerprints, verdicts=True))
            failed.extend(_by_judge(batch, fingerprints, verdicts=False))
    done = _sorted(np.concatenate(parts))
    return done, _add_up([_tries(rows, keys, done) for rows, keys in failed])


def contains(done: Words, keys: bytes) -> npt.NDArray[np.bool_]:
    """Say for each of n x 16 bytes of keys, as `call_keys` makes them, whether it is in `done`."""
    wanted = words_of(keys)
    order = np.argsort(wanted[:, 0])
    # Needles in order walk the array once instead of jumping through all of it.
    first, last = wanted[order, 0], wanted[order, 1]
    at = np.searchsorted(done[0], first)
    found = np.zeros(len(first), np.bool_)
    open_ = np.arange(len(first))
    while len(open_):
        open_ = open_[at[open_] < done.shape[1]]
        open_ = open_[done[0, at[open_]] == first[open_]]
        hit = done[1, at[open_]] == last[open_]
        found[open_[hit]] = True
        # Two keys that share eight bytes are next to each other: look on.
        open_ = open_[~hit]
        at[open_] += 1
    answer = np.empty_like(found)
    answer[order] = found
    return answer


def failed_tries(
    folder: Path, fingerprints: Mapping[str, bytes], done: Words, *, since_epoch: int = 0
) -> pl.DataFrame:
    """The calls without a verdict that were tried: their keys and the tries so far.

    Columns `key` (16 bytes), `judge, task, pair_id, repeat, order`, `failure` (the last kind) and
    `attempts` (over all starts of the command, for `max_tries_total`).
    """
    _check(fingerprints)
    names = sorted({*_NAMES, *_TRIES} - {"key"})
    with JournalReader(folder, since_epoch=since_epoch) as journal:
        return _add_up(
            [
                _tries(rows, keys, done)
                for batch in journal.batches(names)
                for rows, keys in _by_judge(batch, fingerprints, verdicts=False)
            ]
        )


def _add_up(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Count each try once: the same one may lie in two segments after a failed sync."""
    tries = pl.concat([pl.DataFrame(schema=_TRIES), *parts])
    ordered = tries.unique(maintain_order=True).sort("time", maintain_order=True)
    return ordered.group_by(_CALL, maintain_order=True).agg(
        pl.col("failure").last(), pl.col("attempts").sum()
    )


def _tries(rows: pa.RecordBatch, keys: Words, done: Words) -> pl.DataFrame:
    data = keys.tobytes()
    named = [data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)]
    columns = [pl.Series(name, rows[name]) for name in _TRIES if name != "key"]
    frame = pl.DataFrame([pl.Series("key", named, dtype=pl.Binary), *columns])
    return frame.select(*_TRIES).cast({"attempts": pl.Int64}).filter(~contains(done, data))


def _check(fingerprints: Mapping[str, bytes]) -> None:
    if len(set(fingerprints.values())) < len(fingerprints):
        msg = f"two judges share a fingerprint, so they would share verdicts: {list(fingerprints)}"
        raise ValueError(msg)


def _by_judge(
    batch: pa.RecordBatch, fingerprints: Mapping[str, bytes], *, verdicts: bool
) -> Iterator[tuple[pa.RecordBatch, Words]]:
    """Pick each judge's rows with a verdict, or without, and make their keys."""
    wanted = _ask("is_valid" if verdicts else "is_null", batch["slot"])
    for judge, fingerprint in fingerprints.items():
        # Text is compared where it lies: a million rows take no time and no copy.
        mine = _ask("equal", batch["judge"], judge)
        mine = _ask("and", mine, _ask("equal", batch["fingerprint"], fingerprint.hex()))
        rows = batch.filter(_ask("and", mine, wanted))
        if rows.num_rows:
            yield rows, _keys(rows, fingerprint)


def _ask(question: str, *about: object) -> pa.Array:
    return pc.call_function(question, list(about))


def _keys(rows: pa.RecordBatch, fingerprint: bytes) -> Words:
    """Each row's call key: the pair's digest XOR the constant of its order and repeat."""
    orders = tuple(Order)
    swapped = _ask("equal", rows["order"], Order.BA.value).to_numpy(zero_copy_only=False)
    kinds, kind = np.unique(rows["repeat"].to_numpy() * 2 + swapped, return_inverse=True)
    masks = b"".join(call_mask(fingerprint, orders[k % 2], int(k // 2)) for k in kinds)
    return array_words(rows["pair"]) ^ words_of(masks)[kind]


def _sorted(keys: Words) -> Words:
    ordered = keys[np.argsort(keys[:, 0])]
    ties = ordered[1:, 0] == ordered[:-1, 0]
    if ties.any():
        ordered = ordered[np.lexsort((ordered[:, 1], ordered[:, 0]))]
        new = np.r_[True, (ordered[1:] != ordered[:-1]).any(axis=1)]
        ordered = ordered[new]
    return np.ascontiguousarray(ordered.T)
