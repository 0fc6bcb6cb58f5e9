"""The calls of a block that are still to be asked: read the pairs, leave out what is done."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from judgebias.calls import Call, Pair, call_keys, call_mask
from judgebias.design import Mask, words_of
from judgebias.journal import contains, done_keys, journal_folder
from judgebias.pairs import read_block
from judgebias.pipeline.blocks import Assignment
from judgebias.pipeline.plan import RunPlan
from judgebias.verdicts import Order

Done = npt.NDArray[np.uint64]


def missing_calls(
    plan: RunPlan, assignment: Assignment, done: Done, tried: Mapping[bytes, int]
) -> list[Call]:
    """Make the block's calls that have no verdict yet, both orders of a pair together."""
    pairs = read_block(plan.blocks[assignment.block.number], plan.spec)
    digests = [pair.digest() for pair in pairs]
    judge = assignment.block.judge
    joined, fingerprint = b"".join(digests), plan.fingerprints[judge]
    sources = [done]
    if assignment.again:
        # A dead worker's replies are newer than the keys this run started with.
        with journal_folder(plan.journal, since_epoch=plan.epoch) as folder:
            newer = done_keys(folder, {judge: fingerprint}, since_epoch=plan.epoch)
        sources.append(newer)
    asked = plan.design.asked(words_of(joined))
    wanted: list[tuple[int, Order, list[bool], bytes]] = []
    for repeat in range(1, plan.design.repeats + 1):
        for order in Order:
            keys = call_keys(joined, call_mask(fingerprint, order, repeat))
            todo = asked[order] & ~_done(keys, sources)
            wanted.append((repeat, order, todo.tolist(), keys))
    return _calls(pairs, digests, wanted, tried)


def _done(keys: bytes, sources: list[Done]) -> Mask:
    found = np.zeros(len(keys) // 16, dtype=bool)
    for source in sources:
        found |= contains(source, keys)
    return found


def _calls(
    pairs: list[Pair],
    digests: list[bytes],
    wanted: list[tuple[int, Order, list[bool], bytes]],
    tried: Mapping[bytes, int],
) -> list[Call]:
    return [
        Call(
            pair=pair,
            order=order,
            repeat=repeat,
            key=(key := keys[16 * i : 16 * i + 16]),
            digest=digest,
            tried=tried.get(key, 0),
        )
        for i, (pair, digest) in enumerate(zip(pairs, digests, strict=True))
        for repeat, order, todo, keys in wanted
        if todo[i]
    ]
