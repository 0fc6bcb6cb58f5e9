"""A run that can start: what is expected, what is done, and the blocks that are left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judgebias.calls import KEY_BYTES, call_keys, call_mask
from judgebias.design import Words
from judgebias.journal import contains, done_keys, failed_tries
from judgebias.pairs import Survey
from judgebias.pipeline.blocks import TaskBlock
from judgebias.pipeline.plan import RunPlan
from judgebias.pipeline.used_up import split_tries
from judgebias.rundir import RunDir
from judgebias.verdicts import Order

Done = npt.NDArray[np.uint64]


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
    expected: Mapping[str, int]
    """Judge -> calls of the design."""
    missing: Mapping[str, int]
    """Judge -> calls still to be asked."""
    text_bytes: Mapping[str, int]
    """Judge -> bytes of the questions and answers in those calls."""
    notices: tuple[str, ...]
    """What the user should be told, one sentence each."""


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
    per_pair = {name: _missing_by_pair(plan, mine[name], words, done) for name in names}
    sizes = survey.index["n_bytes"].to_numpy()
    n_asked = sum(int(asked.sum()) for asked in plan.design.asked(words).values())
    return Ready(
        plan=plan,
        rundir=rundir,
        survey=survey,
        blocks=_blocks(survey, per_pair),
        done=done,
        tried=tried,
        expected=dict.fromkeys(names, n_asked * plan.design.repeats),
        missing={name: int(calls.sum()) for name, calls in per_pair.items()},
        text_bytes={name: int(sizes @ calls) for name, calls in per_pair.items()},
        notices=(*notices, *given_up),
    )


def _blocks(survey: Survey, per_pair: Mapping[str, npt.NDArray[np.int64]]) -> tuple[TaskBlock, ...]:
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


def _missing_by_pair(
    plan: RunPlan, fingerprint: bytes, words: Words, done: Done
) -> npt.NDArray[np.int64]:
    """Count for each pair the calls of one judge that are neither done nor given up."""
    left = np.zeros(len(words), dtype=np.int64)
    asked, joined = plan.design.asked(words), words.tobytes()
    for repeat in range(1, plan.design.repeats + 1):
        for order in Order:
            keys = call_keys(joined, call_mask(fingerprint, order, repeat))
            left += asked[order] & ~contains(done, keys)
    return left


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
