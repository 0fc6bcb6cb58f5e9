"""Whole fleets in virtual time: what a server counts, whoever asks, dies or is slow."""

from __future__ import annotations

import asyncio

import pytest

from judgebias.pace.limits import Limits
from tests.pace.fleet import Fleet, Server, in_virtual_time, most_within, now

START = 1000.0
STEADY = 640
"""Calls per second of two workers with 64 calls in flight each and 0.2 s of latency."""


def between(times: list[float], start: float, end: float) -> int:
    """Count the arrivals of a part of the story, in seconds from its start."""
    return sum(START + start <= time < START + end for time in times)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("limit", [60, 600, 3000])
@pytest.mark.slow
def test_no_minute_exceeds_the_limit_and_97_percent_of_it_is_used(limit: int, workers: int) -> None:
    server = Server(per_minute=limit)

    async def story() -> None:
        fleet = Fleet(server, workers, Limits(requests=limit))
        await asyncio.sleep(150)
        fleet.end()

    in_virtual_time(story())
    assert most_within(server.arrivals, 60.0) <= limit
    assert between(server.arrivals, 30, 150) >= 0.97 * 2 * limit
    assert server.refused == []


def test_under_a_high_limit_latency_alone_decides() -> None:
    server = Server(latency_s=0.05)

    async def story() -> None:
        fleet = Fleet(server, 2, Limits(requests=60_000), window=8)
        await asyncio.sleep(12)
        fleet.end()

    in_virtual_time(story())
    assert between(server.accepted, 2, 12) >= 0.97 * 10 * 2 * 8 / 0.05


def test_without_a_limit_requests_pass_and_the_pacer_is_not_asked_per_call() -> None:
    server = Server()

    async def story() -> None:
        fleet = Fleet(server, 2)
        await asyncio.sleep(10)
        fleet.end()
        assert fleet.exchanges < 10 * 2 * 5

    in_virtual_time(story())
    assert between(server.accepted, 0, 10) >= 0.99 * 10 * STEADY


@pytest.mark.slow
def test_a_limit_that_only_the_headers_tell_is_kept() -> None:
    server = Server(per_minute=600, headers={"x-ratelimit-limit-requests": "600"})

    async def story() -> None:
        fleet = Fleet(server, 2)
        await asyncio.sleep(120)
        fleet.end()

    in_virtual_time(story())
    assert between(server.accepted, 60, 120) >= 0.97 * 600
    assert len([time for time in server.refused if time > START + 2]) <= 5


@pytest.mark.parametrize("retry_after", [True, False])
@pytest.mark.slow
def test_a_limit_that_nobody_tells_is_learned(retry_after: bool) -> None:
    server = Server(per_minute=600, retry_after=retry_after)

    async def story() -> None:
        fleet = Fleet(server, 2)
        await asyncio.sleep(180)
        fleet.end()

    in_virtual_time(story())
    assert between(server.accepted, 60, 180) >= 0.8 * 1200
    assert between(server.refused, 60, 180) <= 0.05 * 1200


@pytest.mark.slow
def test_a_bound_on_calls_at_once_is_learned() -> None:
    server = Server(in_flight=20)

    async def story() -> None:
        fleet = Fleet(server, 2)
        await asyncio.sleep(120)
        fleet.end()

    in_virtual_time(story())
    assert between(server.accepted, 60, 120) >= 0.7 * 60 * 20 / 0.2
    assert between(server.refused, 60, 120) <= 0.02 * 60 * 20 / 0.2


@pytest.mark.slow
def test_one_workers_retry_after_pauses_all_within_a_quarter_second() -> None:
    server = Server()

    async def story() -> None:
        fleet = Fleet(server, 4)
        await asyncio.sleep(10)
        fleet.gates[0].rate_limited(5.0)
        await asyncio.sleep(15)
        fleet.end()

    in_virtual_time(story())
    assert between(server.arrivals, 10.3, 15) == 0
    assert between(server.arrivals, 15, 16) <= 2 * STEADY
    assert between(server.arrivals, 15, 25) >= 0.75 * 10 * 2 * STEADY


@pytest.mark.parametrize("limit", [0, 600])
@pytest.mark.slow
def test_after_an_outage_the_first_second_sends_no_more_than_the_steady_rate(limit: int) -> None:
    server = Server(per_minute=limit, outage=(START + 20, START + 50))

    async def story() -> None:
        fleet = Fleet(server, 2, Limits(requests=limit))
        await asyncio.sleep(70)
        fleet.end()

    in_virtual_time(story())
    steady = limit / 60 if limit else STEADY
    back = next(time for time in server.accepted if time >= START + 50) - START
    assert back - 50 <= 3
    assert between(server.arrivals, 50, 51) <= steady
    assert between(server.arrivals, back, back + 1) <= steady
    # Single probes: some thirty requests are wasted on thirty seconds, not thousands.
    assert between(server.arrivals, 21, 50) <= 40
    assert between(server.accepted, back + 3, 70) >= 0.95 * (67 - back) * steady


@pytest.mark.slow
def test_a_storm_of_refusals_costs_few_requests_and_is_over_at_once() -> None:
    server = Server(storm=(START + 20, START + 30))

    async def story() -> None:
        fleet = Fleet(server, 2)
        await asyncio.sleep(50)
        fleet.end()

    in_virtual_time(story())
    assert len(server.refused) <= 100
    assert between(server.arrivals, 30, 31) <= STEADY
    assert between(server.accepted, 33, 50) >= 0.9 * 17 * STEADY


@pytest.mark.parametrize("limit", [0, 600, 60])
@pytest.mark.slow
def test_the_pacers_death_neither_stalls_nor_unleashes(limit: int) -> None:
    server = Server(per_minute=limit)

    async def story() -> None:
        fleet = Fleet(server, 3, Limits(requests=limit))
        await asyncio.sleep(90)
        fleet.kill_pacer()
        await asyncio.sleep(20)
        fleet.restart_pacer()
        await asyncio.sleep(70)
        fleet.end()

    in_virtual_time(story())
    rate = limit / 60 if limit else 3 * 64 / 0.2
    assert between(server.arrivals, 95, 110) >= 0.85 * 15 * rate
    assert between(server.arrivals, 113, 180) >= 0.95 * 67 * rate
    if limit:
        assert most_within(server.arrivals, 60.0) <= limit


def test_a_reborn_pacer_takes_over_what_was_learned_and_the_pause() -> None:
    server = Server()

    async def story() -> None:
        fleet = Fleet(server, 2)
        await asyncio.sleep(10)
        fleet.gates[0].rate_limited(8.0)
        await asyncio.sleep(1)
        fleet.kill_pacer()
        fleet.restart_pacer()
        await asyncio.sleep(0.5)
        # A worker that comes now has never heard of the pause.
        fleet.join("late")
        await asyncio.sleep(6)
        fleet.end()

    in_virtual_time(story())
    assert between(server.arrivals, 12, 17.5) == 0


def test_a_dead_workers_part_of_the_limit_goes_to_the_living_at_once() -> None:
    server = Server(per_minute=600)

    async def story() -> None:
        fleet = Fleet(server, 1, Limits(requests=600))
        dying = fleet.join("dying")
        await asyncio.sleep(60)
        for task in dying:
            task.cancel()
        died = now()
        await asyncio.sleep(30)
        fleet.end()
        assert not [time for time in fleet.passed["dying"] if time > died]

    in_virtual_time(story())
    assert between(server.arrivals, 62, 90) >= 0.97 * 28 * 10


def test_estimated_tokens_are_corrected_by_what_was_used() -> None:
    # Each request is estimated at 100 tokens and uses 300: 6,000 a minute are 20 requests.
    server = Server(tokens_per_request=300)

    async def story() -> None:
        fleet = Fleet(server, 2, Limits(tokens=6000))
        await asyncio.sleep(360)
        fleet.end()

    in_virtual_time(story())
    used = between(server.arrivals, 120, 360) / 4
    assert 0.95 * 20 <= used <= 20


def test_a_stop_sends_those_back_that_wait() -> None:
    server = Server()

    async def story() -> None:
        fleet = Fleet(server, 1, Limits(requests=60))
        await asyncio.sleep(5)
        sent = len(server.arrivals)
        fleet.gates[0].stop()
        await asyncio.sleep(5)
        fleet.end()
        assert len(server.arrivals) <= sent + 1

    in_virtual_time(story())
