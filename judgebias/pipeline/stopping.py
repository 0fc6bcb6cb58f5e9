"""The stop rule in a run: the order of buying, what is on disk already, and looks on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.config import RunConfig
from judgebias.design import Design, digest_words
from judgebias.errors import JudgebiasError
from judgebias.journal import journal_folder
from judgebias.pairs import Survey
from judgebias.pipeline.plan import RunPlan
from judgebias.rundir import RunDir
from judgebias.stopping.rule import ALPHA, Rule
from judgebias.stopping.sequence import BuyingOrder, Draws, buying_order, unit_draws
from judgebias.stopping.settled import UnitsOfRun, look_at_journal

LEAST_PAUSE_S = 1.0
PAUSE_PER_LOOK = 10.0
"""A look reads the journal: it may take this part of the time, the larger the journal."""


def rule_of(config: RunConfig) -> Rule:
    """Give the rule for each judge of a run; the error is shared among all of them."""
    return Rule(
        half_width=config.stop.swing_half_width,
        decided=config.stop.decided,
        alpha=ALPHA / len(config.judges),
    )


def buying_order_of(config: RunConfig, survey: Survey, design: Design) -> BuyingOrder | None:
    """Order what a run asks; None without a stop rule."""
    if not config.stop.asked:
        return None
    index = asked_columns(survey)
    draws = draws_of(index, seed=config.seed)[_is_asked(index, design)]
    return buying_order(
        draws, seed=config.seed, cluster=config.cluster, n_blocks=len(survey.blocks)
    )


def asked_columns(survey: Survey) -> pl.DataFrame:
    """Read what the units of a run are told by."""
    return survey.rows.scan.select("digest", "cluster", "identical").collect()


def units_of_run(index: pl.DataFrame, design: Design) -> UnitsOfRun:
    """Order the units of the pairs that a run asks, by the index of its input."""
    chosen = index.filter(pl.Series(_is_asked(index, design)))
    draws = draws_of(chosen, seed=design.seed)
    return UnitsOfRun.of(chosen["digest"], draws, repeats=design.repeats)


def draws_of(index: pl.DataFrame, *, seed: int) -> Draws:
    """Draw the place of each pair's unit."""
    return unit_draws(index["cluster"], index["digest"], seed=seed)


def waves_of(plan: RunPlan, survey: Survey) -> npt.NDArray[np.int64] | None:
    """Tell the wave of each pair; None without a stop rule."""
    if plan.buying is None:
        return None
    return plan.buying.waves(draws_of(asked_columns(survey), seed=plan.buying.seed))


def concluded(
    plan: RunPlan, rundir: RunDir, survey: Survey, judges: Iterable[str]
) -> dict[str, str]:
    """Find the judges that need not be asked more, by what is on disk."""
    if plan.buying is None or not rundir.journal.is_dir():
        return {}
    looks = _Looks(plan, survey)
    reasons = {judge: looks.reason(judge) for judge in judges}
    return {judge: reason for judge, reason in reasons.items() if reason}


class StopWatch:
    """Looks at the journal while a run goes on, in a thread of the driver.

    Parameters
    ----------
    plan, survey
        The run.
    judges
        Those that are asked now.
    conclude
        Told once of each judge whose bounds allow to stop.
    """

    def __init__(
        self, plan: RunPlan, survey: Survey, judges: Iterable[str], conclude: Callable[[str], None]
    ) -> None:
        self._looks = _Looks(plan, survey) if plan.buying is not None else None
        self._open = list(judges)
        self._conclude = conclude
        self._end = threading.Event()
        self.concluded: dict[str, str] = {}
        """Judge -> why."""

    @contextmanager
    def watching(self) -> Generator[None]:
        """Look now and then; nothing without a stop rule."""
        if self._looks is None:
            yield
            return
        thread = threading.Thread(target=self._watch, name="stop rule", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()

    def look(self) -> None:
        """Look at every judge that is not concluded yet."""
        for judge in list(self._open):
            if self._looks is not None and (reason := self._looks.reason(judge)):
                self.concluded[judge] = reason
                self._open.remove(judge)
                self._conclude(judge)

    def _watch(self) -> None:
        pause = LEAST_PAUSE_S
        while self._open and not self._end.wait(pause):
            started = time.monotonic()
            try:
                self.look()
            except (JudgebiasError, OSError):
                # A journal that cannot be read now stops no run early; the tables will say so.
                return
            pause = max(LEAST_PAUSE_S, PAUSE_PER_LOOK * (time.monotonic() - started))


class _Looks:
    def __init__(self, plan: RunPlan, survey: Survey) -> None:
        self._plan = plan
        self._units = units_of_run(asked_columns(survey), plan.design)
        self._rule = rule_of(plan.config)

    def reason(self, judge: str) -> str:
        with journal_folder(self._plan.journal) as folder:
            return look_at_journal(
                folder,
                self._units,
                self._rule,
                judge=judge,
                fingerprint=self._plan.fingerprints[judge].hex(),
            ).reason


def _is_asked(index: pl.DataFrame, design: Design) -> npt.NDArray[np.bool_]:
    """Tell which pairs the bounds are about: two identical answers are a matter of the probe."""
    chosen = design.chosen(digest_words(index["digest"]))
    return chosen & ~index["identical"].to_numpy()
