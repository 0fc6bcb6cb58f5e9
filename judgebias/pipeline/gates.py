"""A worker's gates, one per limit group, and what the worker could use of each window."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from judgebias.config import JudgeConfig
from judgebias.judges.gate import Gate, SharedPause
from judgebias.pace.bought import Bought
from judgebias.pace.gate import PacedGate
from judgebias.pace.limits import group_by_judge, groups_of
from judgebias.pace.wallet import Wallet
from judgebias.pipeline.owner import Demand
from judgebias.pipeline.pacers import PacerHandle
from judgebias.pipeline.plan import is_learned
from judgebias.pipeline.window import Window


class Gates:
    """Made once per worker; lives on its event loop."""

    def __init__(
        self,
        worker: str,
        judges: tuple[JudgeConfig, ...],
        pacers: Mapping[str, PacerHandle],
        windows: Mapping[str, Window],
        on_fault: Callable[[str], None],
    ) -> None:
        """Make no gate yet.

        Parameters
        ----------
        worker
            This worker's name.
        judges
            All judges of the run.
        pacers
            By the name of their limit group.
        windows
            By judge, as they are opened.
        on_fault
            Told what went wrong when a gate has ended by a fault of ours.
        """
        self._worker = worker
        self._judges = {judge.name: judge for judge in judges}
        self._groups = group_by_judge(groups_of(judges))
        self._pacers = pacers
        self._windows = windows
        self._on_fault = on_fault
        self._gates: dict[str, PacedGate] = {}
        self._keeping: set[asyncio.Task[None]] = set()

    def open(self, judge: str, wallet: Wallet | None) -> Gate | None:
        """Find the gate of a judge's limit group, or make it.

        A judge in none has no gate, but under a budget one that only has its requests bought.
        """
        if (group := self._groups.get(judge)) is None:
            return None if wallet is None else _bought(SharedPause(), judge, wallet)
        if (gate := self._gates.get(group.name)) is None:
            exchange = self._pacers[group.name].exchange
            busy = partial(self._under_way, group.judges)
            gate = PacedGate(self._worker, exchange, busy, paced=group.limits.known)
            self._gates[group.name] = gate
            keeping = asyncio.get_running_loop().create_task(gate.keep())
            keeping.add_done_callback(self._ended)
            self._keeping.add(keeping)
        return gate if wallet is None else _bought(gate, judge, wallet)

    def stop(self) -> None:
        """Send nothing more: calls that wait for a slot stay pending."""
        for gate in self._gates.values():
            gate.stop()

    def held(self, judge: str) -> int:
        """Count the calls that wait at the gate of a judge that shares it with no other."""
        group = self._groups.get(judge)
        if group is None or len(group.judges) > 1 or group.name not in self._gates:
            return 0
        return self._gates[group.name].waiting

    def demand(self) -> dict[str, Demand]:
        """Say what this worker could use of each window."""
        return {
            name: Demand(busy=window.in_flight, waiting=window.ready, window=self._learned(name))
            for name, window in self._windows.items()
        }

    def _learned(self, judge: str) -> int:
        """Give a judge's part of its group's window, where that is learned."""
        if not is_learned(self._judges[judge]):
            return 0
        group = self._groups[judge]
        window = self._gates[group.name].window
        return max(1, window // len(group.judges)) if window else 0

    def _under_way(self, judges: tuple[str, ...]) -> int:
        return sum(self._windows[judge].in_flight for judge in judges if judge in self._windows)

    def _ended(self, keeping: asyncio.Task[None]) -> None:
        """Stop the run rather than wait for slots that nobody asks for any more."""
        if not keeping.cancelled() and (fault := keeping.exception()) is not None:
            self._on_fault(f"the pace of a limit group failed: {fault!r}")


def _bought(gate: Gate, judge: str, wallet: Wallet) -> Gate:
    return Bought(gate, partial(wallet.again, judge), partial(wallet.clear, judge))
