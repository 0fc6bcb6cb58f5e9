"""The whole self-test: planted judges, enumerations and the stop rule, on a few processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Generator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from judgebias.selftest.checks import Check, checks_of
from judgebias.selftest.exact import exact_checks
from judgebias.selftest.judges import planted_judges
from judgebias.selftest.measure import Measured, measure
from judgebias.selftest.planted import Planted
from judgebias.selftest.stopping import StopRow, possible, stop_checks, stop_row

REPETITIONS: Final = 600
PROCESSES: Final = 2
_STOP_SEEDS: Final = 1000
"""Seeds of the stop rule are (seed, this and above), those of the planted judges are below."""
_STOPS_PER_REPETITION: Final = 5
"""A lean costs much less to simulate than a row of the summary."""
_FEWER: Final = 4
"""The bounds cost more: so many times fewer repetitions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfTest:
    """Everything that was measured."""

    seed: int
    repetitions: int
    measured: tuple[Measured, ...]
    stops: tuple[StopRow, ...]
    checks: tuple[Check, ...]

    @property
    def broken(self) -> tuple[Check, ...]:
        """Bars that are missed and are not known to be."""
        return tuple(check for check in self.checks if check.broken)

    @property
    def short(self) -> tuple[Check, ...]:
        """Bars that are missed as they are known to be."""
        return tuple(check for check in self.checks if not check.holds and not check.broken)


def self_test(
    *, seed: int = 0, repetitions: int = REPETITIONS, processes: int = PROCESSES
) -> SelfTest:
    """Run it all; the same seed and repetitions give the same figures."""
    judges = [(judge, repetitions, (seed, i)) for i, judge in enumerate(planted_judges())]
    cells = [
        (swing, consistency, repetitions, (seed, _STOP_SEEDS + i))
        for i, (swing, consistency) in enumerate(possible())
    ]
    with _pool(processes) as pool:
        # The long jobs first, so that no process waits long for the last one.
        stops = pool.map(_stop, cells)
        measured = tuple(pool.map(_measure, judges))
        rows = tuple(stops)
    checks = [
        *exact_checks(),
        *(check for one in measured for check in checks_of(one)),
        *(check for row in rows for check in stop_checks(row)),
    ]
    return SelfTest(
        seed=seed, repetitions=repetitions, measured=measured, stops=rows, checks=tuple(checks)
    )


def _measure(job: tuple[Planted, int, tuple[int, int]]) -> Measured:
    planted, repetitions, seed = job
    return measure(planted, repetitions=repetitions, seed=seed)


def _stop(job: tuple[float, float, int, tuple[int, int]]) -> StopRow:
    swing, consistency, repetitions, seed = job
    return stop_row(
        swing,
        consistency,
        repetitions=_STOPS_PER_REPETITION * repetitions,
        fewer=max(1, repetitions // _FEWER),
        seed=seed,
    )


@contextmanager
def _pool(processes: int) -> Generator[Executor]:
    # Polars has threads of its own, which a forked process would find locked.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=processes, mp_context=context) as pool:
        yield pool
