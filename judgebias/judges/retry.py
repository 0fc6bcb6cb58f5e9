"""What deserves another try, and after how long: the one place that repeats requests.

The vendors' SDKs repeat nothing here. The first request of a call is made bare; only an outcome
that may deserve another try enters tenacity, because its machinery costs as much CPU as the
rest of our own work on a call.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenacity import AsyncRetrying, RetryCallState, retry_if_result

from judgebias.judges.outcome import Outcome, RateLimited, Refused, Transient, Unusable
from judgebias.replies import FailureKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The bounds of a call's tries."""

    max_attempts: int
    """Requests in all, those that were rate limited not counted."""
    unusable_tries: int = 2
    """Requests whose replies were paid for and could not be read."""
    limited_tries: int = 60
    """Requests that were rate limited."""
    larger_budget: int = 0
    """The output budget of one more try after a cut-off reply; 0 = none."""
    first_pause_s: float = 0.5
    longest_pause_s: float = 30.0


@dataclass(kw_only=True, slots=True)
class Tries:
    """How often a call was tried, by what came of it."""

    counted: int = 0
    """All but the rate limited ones."""
    unusable: int = 0
    limited: int = 0
    enlarged: bool = False
    """The larger budget is in use."""

    def add(self, outcome: Outcome) -> None:
        """Count one request."""
        self.limited += isinstance(outcome, RateLimited)
        self.counted += not isinstance(outcome, RateLimited)
        self.unusable += isinstance(outcome, Unusable)


def worth_another(outcome: Outcome, tries: Tries, policy: Policy) -> bool:
    """Tell whether the call may be sent once more."""
    if isinstance(outcome, RateLimited):
        return tries.limited < policy.limited_tries
    if tries.counted >= policy.max_attempts:
        return False
    if isinstance(outcome, Unusable):
        return tries.unusable < policy.unusable_tries
    if isinstance(outcome, Refused):
        cut = outcome.kind is FailureKind.TRUNCATED
        return cut and policy.larger_budget > 0 and not tries.enlarged
    return isinstance(outcome, Transient)


def pause_s(
    outcome: Outcome, tries: Tries, policy: Policy, draw: Callable[[], float] = random.random
) -> float:
    """Say how long to wait: full jitter after a failure; for a limit the gate does the waiting."""
    if not isinstance(outcome, Transient):
        return 0.0
    longest = policy.first_pause_s * 2 ** (tries.counted - 1)
    return draw() * min(policy.longest_pause_s, longest)


async def persist(
    first: Outcome,
    attempt: Callable[[], Awaitable[Outcome]],
    tries: Tries,
    policy: Policy,
    sleep: Callable[[float], Awaitable[None]],
) -> Outcome:
    """Try again until there is an answer, or the bounds are reached.

    Parameters
    ----------
    first
        What the bare first request came to.
    attempt
        Sends one more request; counts itself in `tries`, and uses the larger budget once
        `tries.enlarged` is set.
    """
    pending = [first]

    async def following() -> Outcome:
        return pending.pop() if pending else await attempt()

    def again(outcome: Outcome) -> bool:
        if not worth_another(outcome, tries, policy):
            return False
        tries.enlarged |= isinstance(outcome, Refused)
        return True

    def wait(state: RetryCallState) -> float:
        if state.outcome is None:
            return 0.0
        return pause_s(state.outcome.result(), tries, policy)

    retrying = AsyncRetrying(retry=retry_if_result(again), wait=wait, sleep=sleep)
    return await retrying(following)
