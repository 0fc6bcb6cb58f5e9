from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from judgebias.cli import run_app
from judgebias.selftest.checks import Check, checks_of
from judgebias.selftest.exact import exact_checks, sign_test_size, wilson_coverage
from judgebias.selftest.judges import planted_judges
from judgebias.selftest.measure import measure
from judgebias.selftest.planted import Planted, by_cells, mixed
from judgebias.selftest.run import SelfTest, self_test
from judgebias.selftest.stopping import possible, stop_row

LEAST = Check(judge="j", figure="coverage of swing", value=0.925, at_least=0.93, repetitions=1000)


def test_three_errors_of_the_simulation_are_allowed_and_no_more() -> None:
    error = (0.93 * 0.07 / 1000) ** 0.5
    assert LEAST.holds
    assert replace(LEAST, value=0.93 - 2.9 * error).holds
    assert replace(LEAST, value=0.93 - 3.1 * error).broken
    # What is computed exactly has no such errors.
    assert not replace(LEAST, repetitions=0).holds
    most = Check(judge="j", figure="size", value=0.05, at_most=0.05)
    assert most.holds
    assert replace(most, value=0.0501).broken


def test_what_is_known_to_fall_short_is_said_and_breaks_only_when_it_gets_worse() -> None:
    short = replace(LEAST, value=0.75, limit="needed: clusters", worst=0.7)
    assert not short.holds
    assert not short.broken
    assert replace(short, value=0.6).broken
    said = "j: coverage of swing is 0.750, not at least 0.93 (0.180 off); needed: clusters"
    assert short.sentence() == said
    wide = Check(judge="j", figure="f", value=0.99, at_most=0.975)
    assert wide.sentence() == "j: f is 0.990, not at most 0.975 (0.015 off)"


def test_enumeration_of_the_sign_test() -> None:
    # By hand: of 6 flips only the two unanimous outcomes reach .05.
    assert sign_test_size(5) == 0.0
    assert sign_test_size(6) == pytest.approx(2 / 64)
    assert sign_test_size(9) == pytest.approx(2 * (1 + 9) / 512)


@pytest.mark.slow
def test_enumeration_of_wilson_and_of_what_must_hold_exactly() -> None:
    checks = exact_checks()
    assert [check.sentence() for check in checks if check.broken] == []
    # The one dip below .92: said, with how much.
    short = [check for check in checks if not check.holds]
    assert [check.judge for check in short] == ["Wilson, 50 pairs, rates .5 to .98"]
    assert short[0].value == pytest.approx(0.9170, abs=5e-5)
    # No pair can be missed at a rate of one half with one flip: both intervals hold it.
    assert wilson_coverage(1, np.array([0.5]))[0] == pytest.approx(1.0)


def test_a_broken_interval_would_be_seen() -> None:
    """Clusters that go together, taken for single pairs: the checks find it."""
    kinds = mixed(by_cells(0.4, offset=1.5), by_cells(0.4, offset=-1.5))
    planted = Planted(name="grouped", kinds=kinds, clusters=20, sizes=(10,), null=True)
    measured = measure(planted, repetitions=150, seed=(1, 1))
    honest = {check.figure: check for check in checks_of(measured) if not check.holds}
    # The offset's interval takes pairs for independent, which is known.
    assert set(honest) <= {"coverage of offset", "coverage of consistency"} | {
        "coverage of decisive_win_rate_a"
    }
    assert honest["coverage of offset"].limit != ""
    assert measured.rejected["p_paired"] > 3 * measured.rejected["p_position"]
    assert measured.rejected["p_value"] > 3 * measured.rejected["p_position"]


def test_the_same_seed_gives_the_same_figures_and_another_gives_others() -> None:
    planted = Planted(name="one", kinds=mixed(by_cells(0.7, offset=0.4)), clusters=80)
    one, same, other = (measure(planted, repetitions=40, seed=(s, 0)) for s in (5, 5, 6))
    assert (one.said, one.rejected, one.estimated) == (same.said, same.rejected, same.estimated)
    assert one.estimated != other.estimated
    assert one.estimated["offset"].mean == pytest.approx(0.4, abs=0.2)


def result(*checks: Check) -> SelfTest:
    planted = Planted(name="one", kinds=mixed(by_cells(0.7)), clusters=60, null=True)
    measured = (measure(planted, repetitions=20, seed=(0, 0)),)
    stops = (stop_row(0.2, 0.6, repetitions=5, fewer=2, seed=(0, 1)),)
    return SelfTest(seed=0, repetitions=20, measured=measured, stops=stops, checks=checks)


@pytest.mark.parametrize(("value", "code"), [(0.93, 0), (0.5, 1)])
def test_the_command_prints_one_table_and_fails_where_a_bar_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: float, code: int
) -> None:
    found = result(replace(LEAST, value=value))
    monkeypatch.setattr("judgebias.cli.selftest.self_test", lambda **_: found)
    assert run_app(["selftest"]) == code
    printed = capsys.readouterr().out
    assert "pooled %" in printed
    assert "Stop rule" in printed
    assert f"{1 - code} of 1 bars hold, {code} are broken" in printed
    assert ("BROKEN" in printed) == bool(code)
    assert run_app(["selftest", "--json", "--seed", "0"]) == code
    data = json.loads(capsys.readouterr().out)
    assert data["checks"][0]["broken"] == bool(code)
    assert data["planted"][0]["seed"] == [0, 0]
    assert {"false_set", "used_width", "fixed_width"} <= data["stop_rule"][0].keys()


@pytest.mark.slow
def test_the_whole_self_test_gives_the_figures_of_its_parts_whatever_the_processes() -> None:
    whole = self_test(seed=4, repetitions=20, processes=2)
    judges = planted_judges()
    assert [one.planted.name for one in whole.measured] == [planted.name for planted in judges]
    third = measure(judges[3], repetitions=20, seed=(4, 3))
    assert (whole.measured[3].said, whole.measured[3].estimated) == (third.said, third.estimated)
    assert [(row.swing, row.consistency) for row in whole.stops] == possible()
    swing, consistency = possible()[5]
    fifth = stop_row(swing, consistency, repetitions=100, fewer=5, seed=(4, 1005))
    assert whole.stops[5] == fifth
    assert len(whole.checks) > 400
