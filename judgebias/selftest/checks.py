"""What must hold of the figures, and what is known not to: the bars stay where they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

from judgebias.selftest.measure import Measured
from judgebias.selftest.planted import Planted
from judgebias.selftest.truth import WILSON, leaning, scarcer_outcome

SIZE: Final = 0.05
SIZE_FEW: Final = 0.07
"""With 8 clusters or fewer."""
LEAST_SIZE: Final = 0.02
"""Where 40 or more pairs lean: a test that never rejects shows nothing."""
COVERAGE: Final = 0.93
COVERAGE_WILSON: Final = 0.92
MOST_COVERAGE: Final = 0.975
"""Where both outcomes are expected 10 times or more: a wider interval wastes pairs."""
POWER: Final = 0.8
_ERRORS: Final = 3.0
"""Monte Carlo standard errors that are allowed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One bar and what was measured against it."""

    judge: str
    figure: str
    value: float
    at_least: float | None = None
    at_most: float | None = None
    repetitions: int = 0
    """0 = exact."""
    limit: str = ""
    """What would be needed where the bar is known not to be met; "" where it must be met."""
    worst: float | None = None
    """How far off a known limit may be, as measured before."""

    @property
    def holds(self) -> bool:
        """Whether the bar is met, up to the errors of the simulation."""
        return self._within(self.at_least, self.at_most)

    @property
    def broken(self) -> bool:
        """Whether the command fails: a bar is missed that is not known to be, or by more."""
        if self.holds:
            return False
        if not self.limit or self.worst is None:
            return True
        low, high = (self.worst, None) if self.at_least is not None else (None, self.worst)
        return not self._within(low, high)

    def sentence(self) -> str:
        """Say what was measured, the bar, and what would be needed."""
        low, high = self.at_least, self.at_most
        bar, missed = f"at most {high}", self.value - (high or 0.0)
        if low is not None:
            bar, missed = f"at least {low}", low - self.value
        said = f"{self.judge}: {self.figure} is {self.value:.3f}, not {bar} ({missed:.3f} off)"
        return f"{said}; {self.limit}" if self.limit else said

    def _within(self, low: float | None, high: float | None) -> bool:
        above = low is None or self.value >= low - self._slack(low)
        return above and (high is None or self.value <= high + self._slack(high))

    def _slack(self, bar: float) -> float:
        if not self.repetitions:
            return 0.0
        return _ERRORS * sqrt(bar * (1.0 - bar) / self.repetitions)


def checks_of(measured: Measured) -> list[Check]:
    """Hold one planted judge against every bar that applies to it."""
    return [*_size(measured), *_power(measured), *_coverage(measured)]


def _size(measured: Measured) -> Iterator[Check]:
    planted = measured.planted
    if not planted.null:
        return
    size = Check(
        judge=planted.name,
        figure="size of p_position",
        value=measured.found / measured.repetitions,
        repetitions=measured.repetitions,
    )
    yield replace(size, at_most=SIZE_FEW if planted.clusters <= 8 else SIZE)
    if leaning(planted) >= 40:
        yield replace(size, at_least=LEAST_SIZE)


def _power(measured: Measured) -> Iterator[Check]:
    planted = measured.planted
    if planted.promised is None:
        return
    power = Check(
        judge=planted.name,
        figure="power at detectable_offset",
        value=measured.found / measured.repetitions,
        at_least=POWER,
        repetitions=measured.repetitions,
    )
    if _grouped(planted):
        yield replace(power, limit=_PROMISE_OF_CLUSTERS, worst=0.15)
    elif planted.promised:
        yield replace(power, limit=_PROMISE_OF_HALVES, worst=0.4)
    else:
        yield power


def _coverage(measured: Measured) -> Iterator[Check]:
    planted = measured.planted
    for figure, estimated in measured.estimated.items():
        if estimated.available < measured.repetitions / 2:
            continue
        coverage = Check(
            judge=planted.name,
            figure=f"coverage of {figure}",
            value=estimated.covered / estimated.available,
            repetitions=estimated.available,
        )
        if planted.n_pairs >= 50 and not (_grouped(planted) and planted.clusters < 10):
            yield _enough(coverage, planted, figure)
        if scarcer_outcome(planted, figure) >= 10:
            yield _not_too_wide(coverage, planted, figure)


def _enough(coverage: Check, planted: Planted, figure: str) -> Check:
    least = replace(coverage, at_least=COVERAGE_WILSON if figure in WILSON else COVERAGE)
    if figure == "offset" and _grouped(planted):
        return replace(least, limit=_OFFSET_OF_CLUSTERS, worst=0.7)
    return least


def _not_too_wide(coverage: Check, planted: Planted, figure: str) -> Check:
    most = replace(coverage, at_most=MOST_COVERAGE)
    if figure in WILSON and _grouped(planted):
        return replace(most, limit=_FEW_CLUSTERS, worst=1.0)
    return most


def _grouped(planted: Planted) -> bool:
    return set(planted.sizes) != {1}


_OFFSET_OF_CLUSTERS: Final = (
    "its interval takes stuck pairs for independent; needed: an effective count over clusters, as "
    "consistency has it"
)
_FEW_CLUSTERS: Final = (
    "with few clusters a design effect of at least 1 and the t quantile are on the safe side"
)
_PROMISE_OF_HALVES: Final = (
    "it takes every leaning pair for a stuck one, with odds e^2b, and half-leaning pairs have e^b; "
    "needed: solve (1 - h) s(2b) + h s(b) = pi, h being their share"
)
_PROMISE_OF_CLUSTERS: Final = (
    "it takes leaning pairs for independent; needed: the effective number of leaning clusters"
)
