"""The judge behind the server: it leans by a planted amount, and a prompt always gets one verdict.

In slot order::

    x = offset + length_weight*log((len_first+1)/(len_second+1))
        + quality*(q_first - q_second) + noise*(a logistic draw)

A tie where |x| < tie_width, else first for x > 0, else second. q is a standard normal number that
the answer's text alone decides; the draw is keyed by seed and both texts in slot order.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

_NORMAL = NormalDist()
NEVER = -9999.0
"""The log-probability that means "very unlikely" on OpenAI's wire."""

Extract: TypeAlias = Callable[[str], tuple[str, str] | None]


@lru_cache
def _pattern(opening: str, name: str) -> re.Pattern[str]:
    return re.compile(opening.replace("{name}", name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Markers:
    """Finds the two answers between lines such as `[[[first answer 1f00]]]`."""

    opening: str = r"\n(?P<left>\[\[\[|<){name} (?P<tag>[0-9a-f]+)(?P<right>\]\]\]|>)[ \t]*\n"
    """A regular expression; `{name}` stands for `first` or `second`."""
    closing: str = "\n{left}end of {name} {tag}{right}"
    """Plain text; may name every group of `opening`."""
    first: str = "first answer"
    second: str = "second answer"

    def __call__(self, text: str) -> tuple[str, str] | None:
        """Cut both answers out of a prompt that begins with a line end."""
        first = self._between(text, self.first, 0)
        if first is None:
            return None
        second = self._between(text, self.second, first[1])
        return None if second is None else (first[0], second[0])

    def _between(self, text: str, name: str, start: int) -> tuple[str, int] | None:
        opened = _pattern(self.opening, name).search(text, start)
        if opened is None:
            return None
        closing = self.closing.format(name=name, **opened.groupdict())
        # The closing line's own line end may be the one that ended the opening line.
        end = text.find(closing, opened.end() - 1)
        return None if end < 0 else (text[opened.end() : max(end, opened.end())], end)


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """A verdict and how strongly the judge leans to each slot."""

    slot: str
    lean: float = 0.0
    """The latent score: above zero for the first answer."""
    tie_width: float = 0.0

    @property
    def logprobs(self) -> dict[str, float]:
        """Log-probabilities of the three slots; the likeliest is the verdict."""
        # 2*tie_width - |x| > |x| exactly where |x| < tie_width.
        scores = {"first": self.lean, "second": -self.lean}
        if self.tie_width:
            scores["tie"] = 2 * self.tie_width - abs(self.lean)
        top = max(scores.values())
        total = top + math.log(sum(math.exp(score - top) for score in scores.values()))
        return {"tie": NEVER} | {slot: score - total for slot, score in scores.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """Decides by the formula of this module; call it with the answers and the whole prompt."""

    offset: float = 0.0
    length_weight: float = 0.0
    quality: float = 1.0
    noise: float = 0.0
    tie_width: float = 0.0
    seed: int = 0

    def __call__(self, first: str, second: str, call_text: str) -> Decision:
        """Decide; where both answers are empty the prompt itself is the draw."""
        x = self.offset
        if self.length_weight:
            x += self.length_weight * math.log((len(first) + 1) / (len(second) + 1))
        if self.quality:
            x += self.quality * (text_quality(first) - text_quality(second))
        if self.noise:
            x += self.noise * self._draw(first, second, call_text)
        return Decision(slot=self._slot(x), lean=x, tie_width=self.tie_width)

    def _slot(self, x: float) -> str:
        if abs(x) < self.tie_width:
            return "tie"
        return "first" if x > 0 else "second"

    def _draw(self, first: str, second: str, call_text: str) -> float:
        texts = (first, second) if first or second else (call_text,)
        hasher = hashlib.blake2b(f"{self.seed}".encode(), digest_size=8)
        for text in texts:
            raw = text.encode("utf-8", "surrogatepass")
            hasher.update(len(raw).to_bytes(8, "little") + raw)
        u = _unit(hasher.digest())
        return math.log(u / (1 - u))


def text_quality(text: str) -> float:
    """Draw a standard normal number that the text alone decides."""
    raw = text.encode("utf-8", "surrogatepass")
    return _NORMAL.inv_cdf(_unit(hashlib.blake2b(raw, digest_size=8, person=b"served").digest()))


def _unit(digest: bytes) -> float:
    return ((int.from_bytes(digest, "little") >> 11) + 0.5) * 2.0**-53
