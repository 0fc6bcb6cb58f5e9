"""A reply with the call it answers, and the columns it becomes.

A row is a plain tuple with the reply inside: making one and appending it costs well under a
microsecond on the event loop. Columns are made once per frame, by C loops over all its rows.
"""

# pyright: reportUnknownParameterType=false
# pyarrow ships no types: its batches are unknown to the checker wherever they are passed on.

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import pyarrow as pa

from judgebias.calls import KEY_BYTES, Call
from judgebias.replies import Reply

SCHEMA = pa.schema(
    [
        pa.field("pair", pa.binary(KEY_BYTES), nullable=False),
        pa.field("judge", pa.string(), nullable=False),
        pa.field("fingerprint", pa.string(), nullable=False),
        pa.field("task", pa.string(), nullable=False),
        pa.field("pair_id", pa.string(), nullable=False),
        pa.field("repeat", pa.int32(), nullable=False),
        pa.field("order", pa.string(), nullable=False),
        pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("slot", pa.string()),
        pa.field("failure", pa.string()),
        pa.field("message", pa.string()),
        pa.field("raw", pa.string()),
        pa.field("p_first", pa.float64()),
        pa.field("p_second", pa.float64()),
        pa.field("p_tie", pa.float64()),
        pa.field("cost_usd", pa.float64()),
        pa.field("input_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cached_tokens", pa.int64()),
        pa.field("reasoning_tokens", pa.int64()),
        pa.field("attempts", pa.int32(), nullable=False),
        pa.field("latency_ms", pa.float64()),
        pa.field("model", pa.string()),
        pa.field("request_id", pa.string()),
        pa.field("worker", pa.string()),
    ]
)
"""The columns of a frame, in the order in which `batch_of` makes them."""

SCHEMA_FINGERPRINT = hashlib.blake2b(
    "\n".join(f"{field.name} {field.type} {field.nullable}" for field in SCHEMA).encode(),
    digest_size=8,
).hexdigest()
"""Written in every segment: a frame is only decoded by the schema that made it."""

_REPLY = attrgetter(
    "slot",
    "failure",
    "message",
    "raw",
    "p_first",
    "p_second",
    "p_tie",
    "cost_usd",
    "usage.input_tokens",
    "usage.output_tokens",
    "usage.cached_tokens",
    "usage.reasoning_tokens",
    "attempts",
    "latency_ms",
    "model",
    "request_id",
)


class Row(NamedTuple):
    """One received reply and the name of the call it answers."""

    pair: bytes
    """The pair's digest, sixteen bytes."""
    judge: str
    fingerprint: str
    """The judge's fingerprint in hexadecimal."""
    task: str
    pair_id: str
    repeat: int
    order: str
    time: int
    """When the reply arrived, microseconds since 1970 in UTC."""
    reply: Reply


def now_us() -> int:
    """The time as rows carry it."""
    return time.time_ns() // 1000


def row_of(call: Call, reply: Reply, *, digest: bytes, judge: str, fingerprint: str) -> Row:
    """The row of a reply that has just arrived; the texts of the pair are not kept alive."""
    pair = call.pair
    return Row(
        digest,
        judge,
        fingerprint,
        pair.task,
        pair.pair_id,
        call.repeat,
        call.order,
        now_us(),
        reply,
    )


def batch_of(rows: Sequence[Row], worker: str) -> pa.RecordBatch:
    """The rows as one Arrow batch of the journal's schema."""
    *call, replies = zip(*rows, strict=True)
    columns = [*call, *zip(*map(_REPLY, replies), strict=True), (worker,) * len(rows)]
    arrays = [_array(values, field) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _array(values: Sequence[object], field: pa.Field) -> pa.Array:
    try:
        first = values[0]
        if values[-1] == first and values.count(first) == len(values):
            # Most columns of a frame are one name or nothing, and are made without a loop.
            return pa.repeat(pa.scalar(first, type=field.type), len(values))
        return pa.array(values, type=field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        # One odd value from a server (a lone surrogate, a count beyond 64 bits) must not keep the
        # paid replies beside it off the disk.
        return pa.array([_storable(value, field) for value in values], type=field.type)


def _storable(value: object, field: pa.Field) -> object:
    if isinstance(value, str):
        value = value.encode("utf-8", "backslashreplace").decode()
    try:
        pa.scalar(value, type=field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        if not field.nullable:
            raise
        return None
    return value
