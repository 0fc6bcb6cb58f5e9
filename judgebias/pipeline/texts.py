"""What the user should know of the input's texts before a run: repeats, twins, and items."""

from __future__ import annotations

import polars as pl

from judgebias.config import RunConfig
from judgebias.self_pairs import is_probed
from judgebias.summary.texts import Texts


def notices_of_texts(config: RunConfig, index: pl.DataFrame) -> list[str]:
    """Warn of texts that stand in several pairs of a question, and of identical answers."""
    live = any(is_probed(judge) for judge in config.judges)
    recorded = any(not is_probed(judge) for judge in config.judges)
    return Texts.of(index.lazy()).words(live=live, recorded=recorded)


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
