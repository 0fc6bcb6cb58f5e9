from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from judgebias.stopping.settled import UnitsOfRun

START = datetime(2026, 1, 1, tzinfo=UTC)
PAIRS = [bytes([n]) * 16 for n in range(5)]
# Units in the order of their draws: pair 3; pairs 0 and 1 together; pair 4; pair 2.
DRAWS = np.array([20, 20, 90, 10, 30], dtype=np.uint64)


def calls(*rows: tuple[int, str, str | None], repeat: int = 1) -> pl.DataFrame:
    """Rows of (pair, order, slot), written one after the other; slot None is a failure."""
    schema = {
        "pair": pl.Binary,
        "order": pl.String,
        "slot": pl.String,
        "repeat": pl.Int32,
        "time": pl.Datetime("us", "UTC"),
    }
    return pl.DataFrame(
        [
            (PAIRS[pair], order, slot, repeat, START + timedelta(seconds=n))
            for n, (pair, order, slot) in enumerate(rows)
        ],
        schema,
        orient="row",
    )


def prefix(frame: pl.DataFrame, repeats: int = 1) -> list[tuple[int, int, int]]:
    units = UnitsOfRun.of(pl.Series(PAIRS, dtype=pl.Binary), DRAWS, repeats=repeats).prefix(frame)
    columns = (units.leans.tolist(), units.swings.tolist(), units.sizes.tolist())
    return list(zip(*columns, strict=True))


STUCK = ((3, "ab", "first"), (3, "ba", "first"))
TOGETHER = ((0, "ab", "first"), (0, "ba", "tie"), (1, "ba", "second"), (1, "ab", "second"))
LAST = ((2, "ab", "first"), (2, "ba", "second"))


def test_the_units_that_are_settled_from_the_start_are_summed_in_their_order() -> None:
    assert prefix(calls(*STUCK, *TOGETHER)) == [(1, 2, 1), (0, -1, 2)]


def test_what_is_back_behind_a_gap_is_not_looked_at() -> None:
    # Pair 4 has one of its calls: pair 2, which comes later in the order, does not count yet.
    assert prefix(calls(*STUCK, *TOGETHER, *LAST, (4, "ab", "tie"))) == [(1, 2, 1), (0, -1, 2)]
    # Nor does anything while the first unit is open, or half of a cluster is.
    assert prefix(calls(*STUCK[:1], *TOGETHER)) == []
    assert prefix(calls(*STUCK, *TOGETHER[:2])) == [(1, 2, 1)]


def test_a_failure_settles_a_pair_without_a_verdict() -> None:
    rows = calls(*STUCK, *TOGETHER[:3], (1, "ab", None), (4, "ab", "tie"), (4, "ba", "tie"))
    assert prefix(rows) == [(1, 2, 1), (1, 1, 1), (0, 0, 1)]


def test_what_was_written_first_stays_when_a_failed_call_is_asked_again() -> None:
    before = calls(*STUCK, *TOGETHER[:3], (1, "ab", None))
    after = calls(*STUCK, *TOGETHER[:3], (1, "ab", None), (1, "ab", "second"), (3, "ab", "tie"))
    assert prefix(after) == prefix(before) == [(1, 2, 1), (1, 1, 1)]


def test_repeats_are_pairs_of_the_same_unit() -> None:
    once = calls(*STUCK)
    again = calls((3, "ab", "tie"), (3, "ba", "first"), repeat=2)
    assert prefix(once, repeats=2) == []
    assert prefix(pl.concat([once, again]), repeats=2) == [(2, 3, 2)]


def test_calls_of_pairs_that_left_the_input_do_not_count() -> None:
    strange = calls(*STUCK).with_columns(pair=pl.lit(b"x" * 16))
    assert prefix(pl.concat([calls(*STUCK), strange])) == [(1, 2, 1)]
