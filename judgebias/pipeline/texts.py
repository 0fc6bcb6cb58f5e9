"""What the user should know of the input's texts before a run: repeats, twins, and items."""

from __future__ import annotations

import polars as pl

from judgebias.config import RunConfig
from judgebias.pairs import Survey
from judgebias.self_pairs import is_probed
from judgebias.summary.texts import RepeatedTexts, Texts, repeated_texts

PAIRS_AT_ONCE = 100_000
"""Pairs whose texts are compared together, two hundred thousand texts of eight bytes."""


def notices_of_texts(config: RunConfig, survey: Survey) -> list[str]:
    """Warn of texts that stand in several pairs of a question, and of identical answers."""
    texts = Texts(
        repeated=_repeated(survey),
        n_identical=int(sum(part["identical"].sum() for part in survey.rows.parts("identical"))),
    )
    live = any(is_probed(judge) for judge in config.judges)
    recorded = any(not is_probed(judge) for judge in config.judges)
    return texts.words(live=live, recorded=recorded)


def _repeated(survey: Survey) -> RepeatedTexts:
    """Add up some of the questions at a time: what is compared lies in memory."""
    question = pl.col("question_id").hash()
    names = survey.rows.scan.select("text_id_a", "text_id_b", question_id=question)
    n_parts = 1 + survey.n_pairs // PAIRS_AT_ONCE
    parts = [
        repeated_texts(names.filter(pl.col("question_id") % n_parts == part))
        for part in range(n_parts)
    ]
    return RepeatedTexts(
        n_pairs=survey.n_pairs,
        n_pairs_sharing=sum(part.n_pairs_sharing for part in parts),
        n_texts=sum(part.n_texts for part in parts),
        n_questions=sum(part.n_questions for part in parts),
    )


def notices_of_probe(config: RunConfig, n_items: int) -> list[str]:
    """Say where the probe cannot be what was asked for."""
    if not config.self_pair:
        return []
    notices: list[str] = []
    if n_items < config.self_pair:
        notices.append(
            f"self_pair = {config.self_pair}, and the input has {n_items} distinct answers: "
            "each is an item of the probe"
        )
    recorded = [judge.name for judge in config.judges if not is_probed(judge)]
    if recorded:
        notices.append(f"replay judges are shown no self pairs: {', '.join(recorded)}")
    return notices
