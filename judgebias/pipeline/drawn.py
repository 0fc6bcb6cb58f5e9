"""The design of a start: which pairs and which orders, drawn from what the input holds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from judgebias.config import RunConfig
from judgebias.design import Design, Words, cutoff, draws
from judgebias.manifest import Manifest


def drawn_design(
    config: RunConfig,
    words: Words,
    limit: int,
    *,
    questions: Words | None = None,
    old: Manifest | None = None,
) -> Design:
    """Draw the sample of pairs (`limit`), and the questions that are asked in both orders.

    Parameters
    ----------
    config
        The run.
    words
        Digests of the input's pairs.
    limit
        Pairs to ask; 0 = all.
    questions
        Digests of their questions, for `sampled`.
    old
        The last start: with the same seed and a share that is not smaller, what it asked in both
        orders stays in the sample, also where the input has grown.
    """
    whole = Design(orders=config.orders, seed=config.seed, repeats=config.repeats)
    chosen = draws(words, seed=config.seed, salt="pairs")
    below = cutoff(chosen, limit) if limit else whole.pairs_below
    if questions is not None and limit and limit < len(words):
        questions = questions[chosen < np.uint64(below)]
    swap = _swap_below(config, questions, old) if questions is not None else 0
    return replace(whole, pairs_below=below, swap_below=swap)


def untouched(design: Design, old: Manifest | None) -> Design:
    """Leave the pairs as an earlier start had them: none, where there was none."""
    return replace(
        design,
        pairs_below=0 if old is None else old.pairs_below,
        swap_below=0 if old is None else old.swap_below,
    )


def _swap_below(config: RunConfig, questions: Words, old: Manifest | None) -> int:
    units = np.unique(draws(questions, seed=config.seed, salt="swap"))
    # A share that rounds to nothing would leave no pair to tell position bias by.
    count = max(1, round(config.swap_fraction * len(units))) if len(units) else 0
    below = cutoff(units, count)
    grows = (
        old is not None
        and (old.config.orders, old.config.seed) == ("sampled", config.seed)
        and old.config.swap_fraction <= config.swap_fraction
    )
    return max(below, old.swap_below) if old is not None and grows else below
