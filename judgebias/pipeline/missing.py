"""The calls of a block that are still to be asked: read the pairs, leave out what is done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from judgebias.calls import KEY_BYTES, Call, Pair, call_keys, call_mask
from judgebias.design import Mask, words_of
from judgebias.journal import contains, done_keys, journal_folder
from judgebias.pairs import read_block
from judgebias.pipeline.blocks import Assignment, TaskBlock
from judgebias.pipeline.plan import RunPlan
from judgebias.self_pairs import is_probed, self_digests, self_pair
from judgebias.verdicts import Order

Done = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """The calls of a block in one order and repeat."""

    order: Order
    repeat: int
    todo: list[bool]
    """For each pair of the block, whether the call is to be asked."""
    keys: bytes


def missing_calls(
    plan: RunPlan, assignment: Assignment, done: Done, tried: Mapping[bytes, int]
) -> list[Call]:
    """Make the calls of a block that have no verdict yet: pairs in both orders, then items."""
    pairs = read_block(plan.blocks[assignment.block.number], plan.spec)
    digests = b"".join(pair.digest() for pair in pairs)
    sources = _sources(plan, assignment, done)
    both = list(_wanted_pairs(plan, assignment.block, pairs, digests, sources))
    calls = _calls(pairs, digests, both, tried)
    if assignment.block.wave:
        # The probe goes with the first wave: a stop rule ends nothing of it.
        return calls
    for order, items in _items(plan, assignment.block.judge, digests):
        named = self_digests(digests, order)
        todo = list(_wanted(plan, assignment.block.judge, named, {order: items}, sources))
        same = [
            self_pair(pair, order) if is_item else pair
            for pair, is_item in zip(pairs, items.tolist(), strict=True)
        ]
        calls += _calls(same, named, todo, tried)
    return calls


def _sources(plan: RunPlan, assignment: Assignment, done: Done) -> list[Done]:
    if not assignment.again:
        return [done]
    # A dead worker's replies are newer than the keys this run started with.
    judge = assignment.block.judge
    mine = {judge: plan.fingerprints[judge]}
    with journal_folder(plan.journal, since_epoch=plan.epoch) as folder:
        return [done, done_keys(folder, mine, since_epoch=plan.epoch)]


def _wanted_pairs(
    plan: RunPlan, block: TaskBlock, pairs: list[Pair], digests: bytes, sources: list[Done]
) -> Iterator[_Wanted]:
    questions = None
    if plan.design.orders == "sampled":
        questions = words_of(b"".join(pair.question_digest() for pair in pairs))
    asked = plan.design.asked(words_of(digests), questions)
    if plan.buying is not None and block.wave is not None:
        turn = plan.buying.waves_of(pairs) == block.wave
        asked = {order: mask & turn for order, mask in asked.items()}
    return _wanted(plan, block.judge, digests, asked, sources)


def _items(plan: RunPlan, judge: str, digests: bytes) -> Iterator[tuple[Order, Mask]]:
    """Find the block's texts that are items of the probe, with whose text it is."""
    config = next(config for config in plan.config.judges if config.name == judge)
    if not plan.items.size or not is_probed(config):
        return
    for order in Order:
        items = contains(plan.items, self_digests(digests, order))
        if items.any():
            yield order, items


def _wanted(
    plan: RunPlan,
    judge: str,
    digests: bytes,
    asked: Mapping[Order, Mask],
    sources: list[Done],
) -> Iterator[_Wanted]:
    for repeat in range(1, plan.design.repeats + 1):
        for order, mask in asked.items():
            keys = call_keys(digests, call_mask(plan.fingerprints[judge], order, repeat))
            todo = mask & ~_done(keys, sources)
            yield _Wanted(order=order, repeat=repeat, todo=todo.tolist(), keys=keys)


def _done(keys: bytes, sources: list[Done]) -> Mask:
    found = np.zeros(len(keys) // KEY_BYTES, dtype=bool)
    for source in sources:
        found |= contains(source, keys)
    return found


def _calls(
    pairs: list[Pair], digests: bytes, wanted: list[_Wanted], tried: Mapping[bytes, int]
) -> list[Call]:
    return [
        Call(
            pair=pair,
            order=one.order,
            repeat=one.repeat,
            key=(key := one.keys[at : at + KEY_BYTES]),
            digest=digests[at : at + KEY_BYTES],
            tried=tried.get(key, 0),
        )
        for i, (at, pair) in enumerate(zip(range(0, len(digests), KEY_BYTES), pairs, strict=True))
        for one in wanted
        if one.todo[i]
    ]
