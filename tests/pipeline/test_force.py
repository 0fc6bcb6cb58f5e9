"""A small part of `scripts/force`: the kills and the named steps that no other test has."""

from __future__ import annotations

import pytest

from scripts.forces.crashes import STEPS, crash_points
from scripts.forces.kills import PAIRS_PER_KILL, calm_world, run_under_kills

pytestmark = pytest.mark.ray

SEED = 20261130
STEPS_HERE = (
    "reply:before_record*60",
    "merge:before_delete",
)


def test_a_kill_of_the_raylet_and_of_everything_ends_in_the_bytes_of_an_undisturbed_run() -> None:
    kinds = ["raylet", "everything"]
    with calm_world(2 * PAIRS_PER_KILL) as (pairs, calm):
        row, extras = run_under_kills(SEED, kinds, pairs, calm)
    assert row["holds"], row
    assert sorted(extra.blow.kind for extra in extras) == sorted(kinds)


def test_a_kill_at_a_step_and_the_same_command_end_in_the_same_bytes() -> None:
    ((_, rows),) = crash_points(tuple(step for step in STEPS if step.at in STEPS_HERE))
    assert [(row["step"], row["holds"]) for row in rows] == [(at, True) for at in STEPS_HERE], rows
