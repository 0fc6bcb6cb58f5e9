"""A run that can start: what is expected, what is done, and the blocks that are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from judgebias.calls import KEY_BYTES
from judgebias.design import Mask
from judgebias.journal import done_and_failed
from judgebias.pairs import Survey
from judgebias.pipeline.blocks import TaskBlock
from judgebias.pipeline.left import Done, Left, LeftOfJudge, Numbers
from judgebias.pipeline.plan import RunPlan
from judgebias.pipeline.stopping import concluded, waves_of
from judgebias.pipeline.surveyed import questions_of
from judgebias.pipeline.used_up import split_tries
from judgebias.rundir import RunDir
from judgebias.self_pairs import is_probed
from judgebias.verdicts import Order


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the design asks of one judge in one repeat."""

    n_ab: int
    n_ba: int
    n_both: int
    """Pairs asked in both orders."""
    n_items: int
    """Self pairs of the probe; recorded judges are asked none."""

    @property
    def n_pairs(self) -> int:
        """Pairs asked in one order at least."""
        return self.n_ab + self.n_ba - self.n_both


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """A run that can start: everything checked, nothing asked."""

    plan: RunPlan
    rundir: RunDir
    survey: Survey
    blocks: tuple[TaskBlock, ...]
    """Blocks that still have calls to ask, judge by judge in turn."""
    done: Done
    """Keys of calls that are not to be asked: verdicts, and calls whose tries are used up."""
    tried: Mapping[bytes, int]
    """Key -> tries so far, of calls that failed and are asked again."""
    asked: Asked
    expected: Mapping[str, int]
    """Judge -> calls of the design, the probe's included."""
    missing: Mapping[str, int]
    """Judge -> calls still to be asked."""
    text_bytes: Mapping[str, int]
    """Judge -> bytes of the questions and answers in those calls."""
    notices: tuple[str, ...]
    """What the user should be told, one sentence each."""
    concluded: Mapping[str, str] = field(default_factory=dict[str, str])
    """Judge -> why the stop rule allows to ask it nothing: what is on disk is enough."""


def make_ready(
    plan: RunPlan, rundir: RunDir, survey: Survey, only: tuple[str, ...], notices: tuple[str, ...]
) -> Ready:
    """Compare the design with the journal."""
    names = [judge.name for judge in plan.config.judges if not only or judge.name in only]
    mine = {name: plan.fingerprints[name] for name in names}
    done, tried, given_up = _done(plan, rundir, mine)
    digests, questions = survey.digests(), questions_of(survey, plan.design.orders)
    orders = plan.design.asked(digests, questions)
    left = Left(plan=plan, survey=survey, digests=digests, orders=orders, done=done)
    items = {order: left.items(order) for order in Order}
    over = concluded(plan, rundir, survey, names)
    parts, n_parts = _parts(plan, survey)
    found = {
        name: left.of_judge(name, items, parts, n_parts, concluded=name in over) for name in names
    }
    asked = _asked(orders, items)
    probed = {judge.name for judge in plan.config.judges if is_probed(judge)}
    per_repeat = {
        name: asked.n_ab + asked.n_ba + asked.n_items * (name in probed) for name in names
    }
    return Ready(
        plan=plan,
        rundir=rundir,
        survey=survey,
        blocks=_blocks(plan, found, n_parts),
        done=done,
        tried=tried,
        asked=asked,
        expected={name: n * plan.design.repeats for name, n in per_repeat.items()},
        missing={name: its.calls for name, its in found.items()},
        text_bytes={name: its.n_bytes for name, its in found.items()},
        concluded=over,
        notices=(
            *notices,
            *given_up,
            *(f"{name} is not asked: {why}" for name, why in over.items()),
        ),
    )


def _asked(orders: Mapping[Order, Mask], items: Mapping[Order, Mask]) -> Asked:
    return Asked(
        n_ab=int(orders[Order.AB].sum()),
        n_ba=int(orders[Order.BA].sum()),
        n_both=int((orders[Order.AB] & orders[Order.BA]).sum()),
        n_items=sum(int(chosen.sum()) for chosen in items.values()),
    )


def _parts(plan: RunPlan, survey: Survey) -> tuple[Numbers | None, int]:
    """Tell the part each pair is asked in: its block, or under a stop rule its wave and block.

    The parts of the first wave come first and are numbered as their blocks.
    """
    waves, n_blocks = waves_of(plan, survey), len(survey.blocks)
    if waves is None or plan.buying is None:
        return None, n_blocks
    return waves * n_blocks + survey.block_of, plan.buying.n_waves * n_blocks


def _blocks(plan: RunPlan, found: Mapping[str, LeftOfJudge], n_parts: int) -> tuple[TaskBlock, ...]:
    """Make a task block per part and judge that has something left, judges in turn."""
    n_blocks, stretches = len(plan.blocks), _stretches(plan)
    return tuple(
        TaskBlock(
            judge=name,
            number=part % n_blocks,
            n_calls=int(its.parts[part]),
            wave=None if plan.buying is None else part // n_blocks,
            stretch=stretches[part % n_blocks],
        )
        for part in range(n_parts)
        for name, its in found.items()
        if its.parts[part]
    )


def _stretches(plan: RunPlan) -> list[int | None]:
    """Number the row groups that the blocks are in; the order of waves is worth more."""
    numbers: dict[tuple[str, int], int] = {}
    return [
        None
        if block.group is None or plan.buying is not None
        else numbers.setdefault((block.source.file, block.group), len(numbers))
        for block in plan.blocks
    ]


def _done(
    plan: RunPlan, rundir: RunDir, mine: Mapping[str, bytes]
) -> tuple[Done, dict[bytes, int], list[str]]:
    """Find the calls with a verdict, add those whose tries are used up, and keep the other tries.

    A call whose tries are used up stays the failure it is and is not asked again.
    """
    if not rundir.journal.is_dir():
        return np.empty((2, 0), dtype=np.uint64), {}, []
    done, tries = done_and_failed(rundir.journal, mine)
    if not tries.height:
        return done, {}, []
    used_up, again = split_tries(tries, plan.config)
    tried = dict(zip(again["key"], again["attempts"], strict=True))
    if not used_up.height:
        return done, tried, []
    keys = np.frombuffer(b"".join(used_up["key"]), dtype=np.uint64).reshape(-1, KEY_BYTES // 8)
    both = np.concatenate([done, keys.T], axis=1)
    order = np.lexsort((both[1], both[0]))
    sentence = (
        f"{used_up.height:,} calls failed max_tries_total times and are not asked again: "
        f"see {rundir.shown(rundir.rejects)}"
    )
    return np.ascontiguousarray(both[:, order]), tried, [sentence]
