"""The budget of a run, in its owner: one purse for all workers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from judgebias.config import Budget
from judgebias.pace.budget import NOTHING, Amount, Answer, Grant, Spending
from judgebias.progress import BudgetState

CLEARED_PART = 8
"""A lot of cleared requests is at most this part of what is left, shared by the workers: so a death
late in a budget cannot cost much of it."""


@dataclass(kw_only=True, slots=True)
class _Account:
    """What one worker has of the budget."""

    held: Amount = NOTHING
    """Reserved and not settled."""
    cleared: Amount = NOTHING
    """What it may have on its way."""
    doubtful: Amount = NOTHING
    """Counted as spent at its worst only until its call has ended."""

    @property
    def sent(self) -> Amount:
        """At most so much of what it holds was sent: nothing is without both."""
        return self.held.least(self.cleared)


class Purse:
    """What is spent, and who holds how much of the rest."""

    def __init__(self, budget: Budget, spent: Amount = NOTHING) -> None:
        self._budget = budget
        self.spent = spent
        """Of all starts of the command; what cannot be known at its worst case."""
        self.lost = NOTHING
        """The part of it that workers may have had on their way when they died."""
        self.exhausted: set[str] = set()
        """Judges whose next pair needs more than there is."""
        self._accounts: dict[str, _Account] = {}

    @property
    def state(self) -> BudgetState:
        """Say where the budget stands."""
        return BudgetState(
            calls=self.spent.calls,
            usd=self.spent.usd,
            lost_calls=self.lost.calls,
            lost_usd=self.lost.usd,
            ended=tuple(sorted(self.exhausted)),
        )

    def exchange(self, worker: str, spending: Spending) -> Grant:
        """Settle what a worker spent, reserve what it needs, and clear what it wants to send."""
        self.spent += spending.spent
        account = self._accounts.setdefault(worker, _Account())
        account.held -= spending.released
        account.cleared -= spending.landed
        account.doubtful += spending.doubtful
        cleared = self._clear(spending)
        account.cleared += cleared
        answer, amount = self._reserve(spending)
        account.held += amount
        return Grant(answer=answer, amount=amount, cleared=cleared)

    def forget(self, worker: str) -> None:
        """Count what a dead worker may have sent as spent; the rest of what it held is free."""
        account = self._accounts.pop(worker, _Account())
        self.spent += account.sent
        self.lost += account.sent

    def _clear(self, spending: Spending) -> Amount:
        """Clear a lot that grows smaller as the budget ends, one request at least where one waits.

        Nothing is refused: what is sent was reserved before.
        """
        lot = spending.lot
        on_its_way = self.spent + _sum(account.cleared for account in self._accounts.values())
        while lot > 1 or (lot and not spending.starved):
            part = spending.request.times(lot * CLEARED_PART * len(self._accounts))
            if self._within(on_its_way + part):
                break
            lot //= 2
        return spending.request.times(lot)

    def _reserve(self, spending: Spending) -> tuple[Answer, Amount]:
        if spending.need == NOTHING:
            return Answer.GRANTED, NOTHING
        if spending.judge in self.exhausted and not spending.retry:
            return Answer.SPENT, NOTHING
        for wanted in self._offers(spending):
            if self._fits(wanted):
                return Answer.GRANTED, wanted
        if self._may_come(spending):
            return Answer.WAIT, NOTHING
        if not spending.retry:
            self.exhausted.add(spending.judge)
        return Answer.SPENT, NOTHING

    def _may_come(self, spending: Spending) -> bool:
        """Tell whether enough for a need may yet come back."""
        accounts = self._accounts.values()
        doubtful = _sum(account.doubtful for account in accounts)
        # Requests in doubt were sent: only their price may come back.
        if not self._within(self.spent - Amount(usd=doubtful.usd) + spending.need):
            return False
        if any(account.held.calls > 0 for account in accounts):
            return True
        # Nothing is on its way: only calls that want another try are open, and end without it.
        return doubtful.calls > 0 and not spending.retry

    def _offers(self, spending: Spending) -> tuple[Amount, ...]:
        """The wish where it leaves as much again for everybody else, or else the bare need."""
        generous = spending.wish.times(max(2, len(self._accounts)))
        wished = spending.wish != NOTHING and self._fits(generous)
        return (spending.wish, spending.need) if wished else (spending.need,)

    def _fits(self, wanted: Amount) -> bool:
        held = _sum(account.held for account in self._accounts.values())
        return self._within(self.spent + held + wanted)

    def _within(self, total: Amount) -> bool:
        calls, usd = self._budget.max_calls, self._budget.max_usd
        # A sum of many prices is not exact to the last bit.
        return (not calls or total.calls <= calls) and (usd is None or total.usd <= usd + 1e-9)


def _sum(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, NOTHING)
