"""A run that can start: what is expected, what is done, and the blocks that are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from judgebias.calls import KEY_BYTES
from judgebias.design import Words, question_words
from judgebias.journal import done_keys, failed_tries
from judgebias.pairs import Survey
from judgebias.pipeline.blocks import TaskBlock
from judgebias.pipeline.left import Counts, Done, Left
from judgebias.pipeline.plan import RunPlan
from judgebias.pipeline.stopping import concluded, in_waves
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
    plan: RunPlan,
    rundir: RunDir,
    survey: Survey,
    words: Words,
    only: tuple[str, ...],
    notices: tuple[str, ...],
) -> Ready:
    """Compare the design with the journal."""
    names = [judge.name for judge in plan.config.judges if not only or judge.name in only]
    mine = {name: plan.fingerprints[name] for name in names}
    done, tried, given_up = _done(plan, rundir, mine)
    orders = plan.design.asked(
        words, question_words(survey.index["question_id"], plan.design.orders)
    )
    left = Left(plan=plan, survey=survey, words=words, orders=orders, done=done)
    items = {order: left.items(order) for order in Order}
    over = concluded(plan, rundir, survey, names)
    per_pair = {
        name: left.pairs(fingerprint) * (name not in over) for name, fingerprint in mine.items()
    }
    per_item = {name: left.self_pairs(name, items) for name in names}
    asked = Asked(
        n_ab=int(orders[Order.AB].sum()),
        n_ba=int(orders[Order.BA].sum()),
        n_both=int((orders[Order.AB] & orders[Order.BA]).sum()),
        n_items=sum(int(chosen.sum()) for chosen in items.values()),
    )
    probed = {judge.name for judge in plan.config.judges if is_probed(judge)}
    per_repeat = {
        name: asked.n_ab + asked.n_ba + asked.n_items * (name in probed) for name in names
    }
    of_items = {name: sum(per_item[name].values(), 0 * per_pair[name]) for name in names}
    calls = {name: per_pair[name] + of_items[name] for name in names}
    return Ready(
        plan=plan,
        rundir=rundir,
        survey=survey,
        blocks=in_waves(_blocks(survey, calls), plan, survey, per_pair, of_items),
        done=done,
        tried=tried,
        asked=asked,
        expected={name: n * plan.design.repeats for name, n in per_repeat.items()},
        missing={name: int(n.sum()) for name, n in calls.items()},
        text_bytes={name: left.n_bytes(per_pair[name], per_item[name]) for name in names},
        concluded=over,
        notices=(
            *notices,
            *given_up,
            *(f"{name} is not asked: {why}" for name, why in over.items()),
        ),
    )


def _blocks(survey: Survey, per_pair: Mapping[str, Counts]) -> tuple[TaskBlock, ...]:
    """Make a task block per block and judge that has something left, judges in turn."""
    block_of, n_blocks = survey.index["block"].to_numpy(), len(survey.blocks)
    left = {
        name: np.bincount(block_of, weights=calls, minlength=n_blocks).astype(np.int64)
        for name, calls in per_pair.items()
    }
    return tuple(
        TaskBlock(judge=name, number=block, n_calls=int(calls[block]))
        for block in range(n_blocks)
        for name, calls in left.items()
        if calls[block]
    )


def _done(
    plan: RunPlan, rundir: RunDir, mine: Mapping[str, bytes]
) -> tuple[Done, dict[bytes, int], list[str]]:
    """Find the calls with a verdict, add those whose tries are used up, and keep the other tries.

    A call whose tries are used up stays the failure it is and is not asked again.
    """
    if not rundir.journal.is_dir():
        return np.empty((2, 0), dtype=np.uint64), {}, []
    done = done_keys(rundir.journal, mine)
    tries = failed_tries(rundir.journal, mine, done)
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
