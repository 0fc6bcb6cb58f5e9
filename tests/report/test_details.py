"""The sections of summary.md beyond the summary itself."""

from __future__ import annotations

import polars as pl

from judgebias.report.markdown import (
    render_flips,
    render_probe,
    render_sampled,
    render_strength,
)
from judgebias.summary.flips import flips_table
from judgebias.summary.probe import FLAG, probe_table
from judgebias.summary.sampled import sampled_table
from judgebias.summary.strength import strength_table
from tests.summary.verdict_frames import judged, settled


def test_probe_shows_every_call_and_the_flag() -> None:
    slots = ["first"] * 8 + ["second"] * 4 + ["tie"] * 7 + [None]
    calls = pl.LazyFrame(
        {"judge": "j|k", "task": "t", "item": [str(n) for n in range(20)], "slot": slots}
    )
    text = render_probe(probe_table(calls))
    assert "20 = 8 first + 4 second + 7 tie + 1 failed" in text
    assert FLAG in text
    assert "j\\|k" in text


def test_what_is_missing_has_its_reason_below() -> None:
    verdicts = settled([judged("first", None, n) for n in range(9)])
    text = render_sampled(sampled_table(verdicts.with_columns(first_order=pl.lit("ab"))))
    assert "not available" in text
    assert "- consistency not available: no pair has verdicts in both orders: all rows." in text
    assert "- A was shown first throughout" in text
    assert "no pair has two verdicts in each order (repeats): all rows." in render_flips(
        flips_table(verdicts)
    )


def test_none_detected_is_shown_with_what_could_be_missed() -> None:
    ends = [("first", "first"), ("second", "second"), ("first", "second"), ("second", "first")]
    verdicts = settled([judged(*ends[n % 4], n) for n in range(80)])
    assert "could be missed" in render_strength(strength_table(verdicts))
    sampled = sampled_table(verdicts.with_columns(first_order=pl.lit("ab")))
    assert "could be missed" in render_sampled(sampled)


def test_a_table_without_rows_is_no_section() -> None:
    verdicts = settled([judged("first", "first")]).with_columns(model_a=pl.lit(None, pl.String))
    assert render_strength(strength_table(verdicts)) == ""
