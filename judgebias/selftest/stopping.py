"""The stop rule on planted judges: false calls over all looks, and pairs used.

Blocks end out of order, a block that holds more leans to the first slot sooner; a look uses the
settled prefix. Calls that were bought beyond it are counted as used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
from scipy import special

from judgebias.selftest.checks import Check
from judgebias.stats.anytime import anytime_sign_p
from judgebias.stats.binomial import sign_test_p
from judgebias.stats.interval import Z95
from judgebias.stats.offset import critical_count
from judgebias.stats.profiles import IntArray
from judgebias.stopping.rule import ALPHA, Rule, Units, look, settled_prefix

SWINGS: Final = (0.0, 0.02, 0.05, 0.2)
CONSISTENCIES: Final = (0.6, 0.9)
PAIRS: Final = 2000
BLOCK: Final = 50
WORKERS: Final = 4
HALF_WIDTH: Final = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class StopRow:
    """The rule on one kind of judge; shares are over the repetitions."""

    swing: float
    consistency: float
    seed: tuple[int, int]
    repetitions: int
    """Of the lean; the bounds and the pairs used are measured on `fewer`."""
    fewer: int
    false_population: float
    """Ever called leaning (to the wrong slot, where there is a lean): independent pairs."""
    false_set: float
    """The same for a finite set whose leans are exactly balanced (or as planted)."""
    false_peeking: float
    """The same, over `fewer`, when the fixed-size test is looked at after every block: what is
    not done."""
    missed_set: float
    """Bounds that ever exclude the swing of the set."""
    missed_population: float
    """Bounds that ever exclude the swing of the population."""
    decided: float
    """Share that is called leaning, to the right slot, before the end."""
    used_decided: tuple[float, float]
    """Mean pairs under `decided`: settled when it holds, and bought by then."""
    used_width: tuple[float, float]
    """The same under `swing_half_width`."""
    used_either: tuple[float, float]
    """The same when the first of the two ends it."""
    fixed_power: int | None
    """Pairs of a fixed design whose sign test shows the lean with power .8; None without a lean."""
    fixed_width: int
    """Pairs of a fixed design whose interval is as narrow, for the same finite set."""


def possible() -> list[tuple[float, float]]:
    """List what can be planted: no swing is larger than the share of pairs that lean."""
    return [(s, c) for c in CONSISTENCIES for s in SWINGS if s <= 1.0 - c]


def stop_row(
    swing: float, consistency: float, *, repetitions: int, fewer: int, seed: tuple[int, int]
) -> StopRow:
    """Simulate the rule on one kind of judge."""
    rng = np.random.default_rng(seed)
    populations = [_population(rng, swing, consistency) for _ in range(repetitions)]
    sets = [_set(rng, swing, consistency) for _ in range(repetitions)]
    wrong = _is_wrong(swing)
    of_sets = [_bounds(leans) for leans in sets[:fewer]]
    of_populations = [_bounds(leans) for leans in populations[:fewer]]
    used = [_used(leans, rng) for leans in sets[:fewer]]
    calls = [_called(leans) for leans in sets]
    # No swing of a set is exactly as planted, but for a rounding to whole pairs.
    truths = [float(leans.mean()) for leans in sets[:fewer]]
    return StopRow(
        swing=swing,
        consistency=consistency,
        seed=seed,
        repetitions=repetitions,
        fewer=fewer,
        false_population=_share([wrong(_called(leans)) for leans in populations]),
        false_set=_share([wrong(call) for call in calls]),
        false_peeking=_share([wrong(_peeked(leans)) for leans in sets[:fewer]]),
        missed_set=_share([not s[0] <= t <= s[1] for s, t in zip(of_sets, truths, strict=True)]),
        missed_population=_share([not p[2] <= swing <= p[3] for p in of_populations]),
        decided=_share([call != 0 and not wrong(call) for call in calls]),
        used_decided=_means([pairs[0] for pairs in used]),
        used_width=_means([pairs[1] for pairs in used]),
        used_either=_means([pairs[2] for pairs in used]),
        fixed_power=_fixed_power(swing, consistency),
        fixed_width=_fixed_width(swing, consistency),
    )


def stop_checks(row: StopRow) -> list[Check]:
    """Hold a row against the nominal error."""
    measured = [
        ("false calls, population", row.false_population, row.repetitions),
        ("false calls, finite set", row.false_set, row.repetitions),
        ("bounds that miss, finite set", row.missed_set, row.fewer),
        ("bounds that miss, population", row.missed_population, row.fewer),
    ]
    judge = f"stop rule, swing {row.swing:g}, consistency {row.consistency:g}"
    return [
        Check(judge=judge, figure=figure, value=value, at_most=ALPHA, repetitions=n)
        for figure, value, n in measured
    ]


def _population(rng: np.random.Generator, swing: float, consistency: float) -> IntArray:
    leaning = 1.0 - consistency
    chances = [(leaning + swing) / 2.0, consistency, (leaning - swing) / 2.0]
    return rng.choice(np.array([1, 0, -1]), size=PAIRS, p=chances)


def _set(rng: np.random.Generator, swing: float, consistency: float) -> IntArray:
    first = round(PAIRS * (1.0 - consistency + swing) / 2.0)
    second = round(PAIRS * (1.0 - consistency - swing) / 2.0)
    leans = np.repeat(np.array([1, -1, 0]), [first, second, PAIRS - first - second])
    return rng.permutation(leans)


def _is_wrong(swing: float) -> Callable[[int], bool]:
    return lambda call: call != 0 if swing == 0.0 else call < 0


def _called(leans: IntArray) -> int:
    """Name the slot that the anytime test first calls, at any unit; 0 = none."""
    at = _crossed(leans)
    return 0 if at is None else int(np.sign(leans[: at + 1].sum()))


def _crossed(leans: IntArray) -> int | None:
    below = anytime_sign_p(leans) <= ALPHA
    return int(np.argmax(below)) if below.any() else None


def _peeked(leans: IntArray) -> int:
    firsts, seconds = np.cumsum(leans > 0), np.cumsum(leans < 0)
    for at in range(BLOCK - 1, leans.size, BLOCK):
        f, s = int(firsts[at]), int(seconds[at])
        if f + s and sign_test_p(f, f + s) < ALPHA:
            return 1 if f > s else -1
    return 0


def _bounds(leans: IntArray) -> tuple[float, float, float, float]:
    """Give the bounds at the last look: what an earlier one excluded stays excluded."""
    figures = look(Rule(half_width=HALF_WIDTH), _units(leans), n_units=PAIRS, largest=1)
    ends = (figures.of_set, figures.of_population)
    low, high = ([end.low or 0.0 for end in ends], [end.high or 0.0 for end in ends])
    return low[0], high[0], low[1], high[1]


def _units(leans: IntArray) -> Units:
    return Units(leans=leans, swings=2 * leans, sizes=np.ones(leans.size, dtype=np.int64))


_Pairs = tuple[int, int]


def _used(leans: IntArray, rng: np.random.Generator) -> tuple[_Pairs, _Pairs, _Pairs]:
    blocks = PAIRS // BLOCK
    at = _crossed(leans)
    decided = blocks if at is None else at // BLOCK + 1
    width = _first_narrow(leans, blocks)
    bought = _bought(leans, rng)
    first, second, third = (
        (needed * BLOCK, bought[needed]) for needed in (decided, width, min(decided, width))
    )
    return first, second, third


def _means(used: list[_Pairs]) -> tuple[float, float]:
    settled, bought = np.mean(used, axis=0)
    return float(settled), float(bought)


def _first_narrow(leans: IntArray, blocks: int) -> int:
    """Find the first block at whose end the bounds are narrow enough; they never widen."""
    low, high = 0, blocks
    while high - low > 1:
        middle = (low + high) // 2
        units = _units(leans[: middle * BLOCK])
        holds = look(Rule(half_width=HALF_WIDTH), units, n_units=PAIRS, largest=1).reason
        low, high = (low, middle) if holds else (middle, high)
    return high


def _bought(leans: IntArray, rng: np.random.Generator) -> dict[int, int]:
    """Give the pairs that were handed out when so many blocks were settled from the start."""
    blocks = leans.size // BLOCK
    # More leans to the first slot, sooner back: what is back first is not like the rest.
    lasts = np.exp(-leans.reshape(blocks, BLOCK).mean(axis=1)) * rng.gamma(4.0, size=blocks)
    ends, free = np.zeros(blocks), np.zeros(WORKERS)
    for block in range(blocks):
        worker = int(np.argmin(free))
        free[worker] += lasts[block]
        ends[block] = free[worker]
    bought: dict[int, int] = {}
    for now in np.sort(ends):
        settled = settled_prefix(ends <= now)
        handed = int((ends - lasts <= now).sum()) * BLOCK
        bought |= {needed: handed for needed in range(1, settled + 1) if needed not in bought}
    return bought


def _fixed_power(swing: float, consistency: float) -> int | None:
    if swing == 0.0:
        return None
    share = (1.0 + swing / (1.0 - consistency)) / 2.0
    n = 6
    while _power(n, share) < 0.8:
        n += max(1, n // 50)
    return ceil(n / (1.0 - consistency))


def _power(n: int, share: float) -> float:
    return float(special.bdtrc(critical_count(n) - 1, n, share))


def _fixed_width(swing: float, consistency: float) -> int:
    variance = 1.0 - consistency - swing**2
    n = Z95**2 * variance / HALF_WIDTH**2
    return ceil(n / (1.0 + n / PAIRS))


def _share(events: list[bool]) -> float:
    return float(np.mean(events))
