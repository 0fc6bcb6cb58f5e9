"""A judge with planted biases: what it leans to is known, so what is measured can be checked.

In slot order::

    x = quality*(q_first - q_second) + length_weight*log((len_first+1)/(len_second+1))
        + offset + family_bonus*(own_first - own_second) + noise*(a logistic draw)

A tie where |x| < tie_width, else first for x > 0, else second. `offset_long` stands for `offset`
where both answers together have more than `long_chars` characters. q is the pair's `quality_a` or
`quality_b`; where it is absent a hash of the answer's text decides (standard normal). Draws are
keyed by (seed, judge, the two texts in slot order, repeat), so exchanging A and B in the input
changes no position figure, and no draw depends on which worker asks or when.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from fnmatch import fnmatchcase
from statistics import NormalDist

from judgebias.calls import Call, Pair
from judgebias.config import SimulatedJudge
from judgebias.replies import FailureKind, Reply
from judgebias.verdicts import Order, Slot

_NORMAL = NormalDist()
_UNIT = 2.0**-53


class Simulated:
    """Answers by the formula of this module."""

    def __init__(self, config: SimulatedJudge) -> None:
        self._config = config
        self._salt = f"{config.seed}\0{config.name}\0".encode()
        self._known: tuple[Pair, float, float] | None = None

    async def ask(self, call: Call) -> Reply:
        """Draw the verdict of one call, after the configured latency."""
        if self._config.latency_s:
            await asyncio.sleep(self._config.latency_s)
        noise, luck = self._draws(call)
        if self._config.failure_rate and self._fails(call, luck):
            return Reply(failure=FailureKind.SERVER, message="a planted failure")
        slot = slot_of(self._latent(call, noise), self._config.tie_width)
        return Reply(slot=slot, latency_ms=self._config.latency_s * 1000)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _latent(self, call: Call, noise: float) -> float:
        config, first, second = self._config, call.first, call.second
        x = config.noise * noise
        x += config.offset if config.offset_long is None else self._offset(first, second)
        if config.quality:
            x += config.quality * self._better(call)
        if config.length_weight:
            x += config.length_weight * math.log((len(first) + 1) / (len(second) + 1))
        if config.family_bonus:
            x += config.family_bonus * (self._own(call, first=True) - self._own(call, first=False))
        return x

    def _better(self, call: Call) -> float:
        """Tell how much better the first answer is; the other order of a pair mostly comes next."""
        if self._known is None or self._known[0] is not call.pair:
            pair = call.pair
            a = hashed_quality(pair.answer_a) if pair.quality_a is None else pair.quality_a
            b = hashed_quality(pair.answer_b) if pair.quality_b is None else pair.quality_b
            self._known = pair, a, b
        _, a, b = self._known
        return a - b if call.order is Order.AB else b - a

    def _offset(self, first: str, second: str) -> float:
        long = len(first) + len(second) > self._config.long_chars
        if long and self._config.offset_long is not None:
            return self._config.offset_long
        return self._config.offset

    def _own(self, call: Call, *, first: bool) -> bool:
        shows_a = first == (call.order is Order.AB)
        model = call.pair.model_a if shows_a else call.pair.model_b
        family = self._config.family
        return bool(model) and bool(family) and fnmatchcase(str(model), f"{family}*")

    def _draws(self, call: Call) -> tuple[float, int]:
        """One standard logistic number, and an integer for failures."""
        hasher = hashlib.blake2b(self._salt, digest_size=16)
        first, second = call.first.encode(), call.second.encode()
        hasher.update(len(first).to_bytes(8, "little"))
        hasher.update(first)
        hasher.update(second)
        hasher.update(call.repeat.to_bytes(4, "little"))
        digest = hasher.digest()
        u = ((int.from_bytes(digest[:8], "little") >> 11) + 0.5) * _UNIT
        return math.log(u / (1 - u)), int.from_bytes(digest[8:], "little")

    def _fails(self, call: Call, luck: int) -> bool:
        """Tell whether this try of the call fails: the draw is keyed by the try as well."""
        text = luck.to_bytes(8, "little") + (call.tried + 1).to_bytes(4, "little")
        draw = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
        return draw < self._config.failure_rate * 2**64


def slot_of(x: float, tie_width: float) -> Slot:
    """Read the latent score as a slot; |x| below the width is a tie."""
    if abs(x) < tie_width:
        return Slot.TIE
    return Slot.FIRST if x > 0 else Slot.SECOND


def hashed_quality(text: str) -> float:
    """Draw a standard normal number that the text alone decides."""
    digest = hashlib.blake2b(text.encode(), digest_size=8, person=b"quality").digest()
    return _NORMAL.inv_cdf(((int.from_bytes(digest, "little") >> 11) + 0.5) * _UNIT)
