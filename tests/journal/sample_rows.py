"""Rows as the tests write them, and a journal read back as plain values."""

from __future__ import annotations

import hashlib
from pathlib import Path

from judgebias.journal import Row, Segment, read_journal
from judgebias.replies import FailureKind, Reply, Usage
from judgebias.verdicts import Order, Slot

FINGERPRINT = b"fingerprint-of-j"


def digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def row(
    number: int,
    *,
    slot: Slot | None = Slot.FIRST,
    time: int | None = None,
    order: Order = Order.AB,
    repeat: int = 1,
    judge: str = "j",
    fingerprint: bytes = FINGERPRINT,
    reply: Reply | None = None,
) -> Row:
    if reply is None:
        failure = None if slot else FailureKind.TIMEOUT
        reply = Reply(slot=slot, failure=failure, usage=Usage(input_tokens=number), cost_usd=0.5)
    return Row(
        digest(f"p{number}"),
        judge,
        fingerprint.hex(),
        "t",
        f"p{number}",
        repeat,
        order,
        1_000_000 + number if time is None else time,
        reply,
    )


def write(folder: Path, *frames: list[Row], epoch: int = 1, worker: str = "w0") -> Path:
    """Write a closed segment with these frames."""
    segment = Segment.create(folder, epoch=epoch, worker=worker)
    for rows in frames:
        for each in rows:
            segment.append(each)
        segment.flush()
    segment.close()
    return segment.path


def ids(folder: Path) -> list[str]:
    """The pair of every row, in the order of the journal."""
    return read_journal(folder).table["pair_id"].to_list()
