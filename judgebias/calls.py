"""A pair, its two calls, and the key that names a call.

The identity of a call is the judge's fingerprint (model, endpoint, template, parameters), the
pair's digest (task, id, question, reference and both texts in their columns), the order and the
repeat. The key is the digest XOR a constant derived from the other three: sixteen bytes that numpy
makes for a whole block at once. Equal texts under two ids, swapped duplicates and the two orders
of identical answers all have different keys, so they never share a verdict by accident.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from judgebias.verdicts import Order

KEY_BYTES = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One question with two answers, as it is judged."""

    pair_id: str
    question: str
    answer_a: str
    answer_b: str
    task: str = "default"
    model_a: str | None = None
    model_b: str | None = None
    gold: str | None = None
    cluster: str | None = None
    reference: str | None = None
    quality_a: float | None = None
    quality_b: float | None = None

    def digest(self) -> bytes:
        """Sixteen bytes that name the pair by its key and its content."""
        hasher = hashlib.blake2b(digest_size=KEY_BYTES)
        texts = (self.task, self.pair_id, self.question, self.answer_a, self.answer_b)
        for text in texts:
            data = text.encode()
            hasher.update(len(data).to_bytes(8, "little"))
            hasher.update(data)
        # A missing reference is not an empty one.
        hasher.update(b"\0" if self.reference is None else b"\1" + self.reference.encode())
        return hasher.digest()

    def question_digest(self) -> bytes:
        """Sixteen bytes that name the question by its text: the index's `question_id`, in bytes."""
        return hashlib.blake2b(self.question.encode(), digest_size=KEY_BYTES).digest()


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """One pair shown to one judge in one order, once."""

    pair: Pair
    order: Order
    repeat: int = 1
    key: bytes = b""
    """The call's name, sixteen bytes."""
    digest: bytes = b""
    """The pair's digest, sixteen bytes; the same in both orders."""
    tried: int = 0
    """Tries that failed in earlier starts of the command."""

    @property
    def first(self) -> str:
        """The answer in the first slot."""
        return self.pair.answer_a if self.order is Order.AB else self.pair.answer_b

    @property
    def second(self) -> str:
        """The answer in the second slot."""
        return self.pair.answer_b if self.order is Order.AB else self.pair.answer_a


def call_mask(fingerprint: bytes, order: Order, repeat: int) -> bytes:
    """The constant that turns a pair's digest into the key of one of its calls."""
    text = b"judgebias call\0" + order.encode() + b"\0" + str(repeat).encode() + b"\0"
    return hashlib.blake2b(text + fingerprint, digest_size=KEY_BYTES).digest()


def call_key(digest: bytes, mask: bytes) -> bytes:
    """The key of a single call; `call_keys` does the same for a block."""
    return bytes(a ^ b for a, b in zip(digest, mask, strict=True))


def call_keys(digests: bytes, mask: bytes) -> bytes:
    """Keys of a block of pairs: n x 16 bytes of digests in, n x 16 bytes of keys out."""
    words = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
    return (words ^ np.frombuffer(mask, dtype=np.uint64)).tobytes()


def both_orders(repeats: int = 1) -> Iterator[tuple[Order, int]]:
    """The calls of a pair that is judged in full: both orders of every repeat, orders together."""
    for repeat in range(1, repeats + 1):
        for order in Order:
            yield order, repeat
