"""Who shares a limit with whom."""

from __future__ import annotations

from judgebias.config.runfile import check_run
from judgebias.pace.limits import Limits, groups_of


def judges(*given: dict[str, object]) -> list[tuple[tuple[str, ...], Limits]]:
    made = [{"name": f"j{n}", "provider": "openai", "model": "m", **one} for n, one in
            enumerate(given)]  # fmt: skip
    config = check_run({"pairs": "p", "out": "o", "judges": made}, where="here")
    return [(group.judges, group.limits) for group in groups_of(config.judges)]


def test_the_same_host_key_and_model_are_one_group_with_the_strictest_limits() -> None:
    found = judges(
        {"requests_per_minute": 600, "tokens_per_minute": 9000},
        {"requests_per_minute": 60, "template": "concise"},
    )
    assert found == [(("j0", "j1"), Limits(requests=60, tokens=9000))]


def test_another_model_key_or_host_is_another_group() -> None:
    url = "http://127.0.0.1:1/v1"
    found = judges({}, {"model": "n"}, {"api_key_env": "OTHER"}, {"base_url": url})
    assert [names for names, _ in found] == [("j0",), ("j1",), ("j2",), ("j3",)]


def test_a_named_group_joins_whoever_says_so() -> None:
    found = judges({"limit_group": "g"}, {"model": "n", "limit_group": "g"})
    assert [names for names, _ in found] == [("j0", "j1")]


def test_a_judge_without_a_network_pays_for_no_pace_unless_it_has_a_limit() -> None:
    local = {"provider": "simulated", "model": None}
    plain = {key: value for key, value in local.items() if value}
    made = [
        {"name": "free", **plain},
        {"name": "held", "requests_per_minute": 60, **plain},
    ]
    config = check_run({"pairs": "p", "out": "o", "judges": made}, where="here")
    assert [group.judges for group in groups_of(config.judges)] == [("held",)]
