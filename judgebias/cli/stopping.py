"""The stop rule's figures of a run, from its journal: the same whenever they are made."""

from __future__ import annotations

from typing import Final

import polars as pl

from judgebias.design import Design
from judgebias.manifest import Manifest
from judgebias.pipeline.stopping import rule_of, units_of_run
from judgebias.rundir import RunDir
from judgebias.stopping.rule import Anytime, Rule
from judgebias.stopping.settled import look_at_journal
from judgebias.summary.columns import NUMBER, TEXT, WHOLE, Schema, frame_of, typed
from judgebias.summary.figures import Row

STOPPING_COLUMNS: Final[Schema] = {
    **typed(TEXT, "judge", "reason"),
    **typed(NUMBER, "alpha", "half_width"),
    **typed(WHOLE, "n_units", "n_settled_units", "n_settled_pairs", "lean_first", "lean_second"),
    **typed(NUMBER, "p_anytime", "swing", "swing_of_set_low", "swing_of_set_high"),
    **typed(NUMBER, "swing_low", "swing_high"),
    **typed(WHOLE, "n_calls_of_set", "n_calls", "n_calls_saved"),
}
"""The columns of tables/stopping.csv: bounds without `of_set` are on the population's swing."""


def stopping_of_run(
    run: RunDir, manifest: Manifest, design: Design, n_calls: dict[str, int]
) -> pl.DataFrame | None:
    """Make the table of the stop rule; None where the run has none.

    Parameters
    ----------
    run, manifest, design
        The run as its last start left it.
    n_calls
        Judge -> calls that ended.
    """
    if not manifest.config.stop.asked:
        return None
    units, rule = units_of_run(run.scan_index().collect(), design), rule_of(manifest.config)
    whole = 2 * int(units.sizes.sum()) * units.repeats
    rows = [
        _row(
            judge,
            rule,
            look_at_journal(
                run.journal, units, rule, judge=judge, fingerprint=manifest.fingerprints[judge]
            ),
            n_units=units.sizes.size,
            whole=whole,
            ended=n_calls[judge],
        )
        for judge in sorted(n_calls)
    ]
    return frame_of(rows, STOPPING_COLUMNS)


def _row(judge: str, rule: Rule, found: Anytime, *, n_units: int, whole: int, ended: int) -> Row:
    return {
        "judge": judge,
        "reason": found.reason or None,
        "alpha": rule.alpha,
        "half_width": rule.half_width or None,
        "n_units": n_units,
        "n_settled_units": found.n_units,
        "n_settled_pairs": found.n_pairs,
        "lean_first": found.lean_first,
        "lean_second": found.lean_second,
        "p_anytime": found.p_lean,
        "swing": found.swing,
        "swing_of_set_low": found.of_set.low,
        "swing_of_set_high": found.of_set.high,
        "swing_low": found.of_population.low,
        "swing_high": found.of_population.high,
        "n_calls_of_set": whole,
        "n_calls": ended,
        # What is pending for another reason is not saved.
        "n_calls_saved": whole - ended if found.reason else 0,
    }
