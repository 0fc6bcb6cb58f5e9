"""What changed since the last start, in numbers: the input, and what the run asks and compares.

Rows are known by their content. The sample, the repeats and the judges of the last start are what
all tables are made of, so a start that asks one judge for less changes the tables of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.config import RunConfig
from judgebias.design import Design, Words
from judgebias.manifest import Manifest, design_of

_KEY = ["task", "pair_id"]
_OUT = "kept and are out of the tables"


def changes_of_input(old: pl.LazyFrame, new: pl.LazyFrame) -> list[str]:
    """Compare two indexes by pair and by content; re-ordered rows are no change."""
    (old_keys, before), (new_keys, now) = _hashes(old), _hashes(new)
    both, at_old, at_new = np.intersect1d(
        old_keys, new_keys, assume_unique=True, return_indices=True
    )
    counts = {
        "added": len(new_keys) - len(both),
        "removed": len(old_keys) - len(both),
        "edited": int((before[at_old] != now[at_new]).sum()),
    }
    words = {
        "added": "rows were added to the input and will be judged",
        "removed": "rows left the input: their replies are kept and are out of the tables",
        "edited": "rows were edited and will be judged anew: old replies are out of the tables",
    }
    return [f"{counts[what]} {sentence}" for what, sentence in words.items() if counts[what]]


def _hashes(index: pl.LazyFrame) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Hash each pair's key and its content: sixteen bytes a pair, however long its names are."""
    found = index.select(key=pl.struct(_KEY).hash(), content=pl.col("digest").hash())
    frame = found.collect(engine="streaming")
    return frame["key"].to_numpy(), frame["content"].to_numpy()


def changes_of_run(
    old: Manifest,
    config: RunConfig,
    design: Design,
    words: Words,
    only: Collection[str] = (),
    questions: Words | None = None,
) -> list[str]:
    """Compare what an earlier start asked of the present input with what this one asks.

    Parameters
    ----------
    old
        The manifest of the earlier start.
    config, design
        The run now.
    words
        The digests of the input's pairs.
    only
        The judges that are asked now; () = all.
    questions
        The digests of the pairs' questions, for `sampled`.
    """
    names = [judge.name for judge in config.judges]
    n_calls = sum(int(mask.sum()) for mask in design.asked(words, questions).values())
    lines = [
        *_judges(old, names),
        *_orders(old.config, config),
        *_sample(old, design, words, names, only, n_calls),
    ]
    if old.config.cluster != config.cluster:
        lines.append(
            f"cluster = {config.cluster!r} instead of {old.config.cluster!r}: {_ALL_TABLES}"
        )
    if old.config.panel != config.panel:
        now, before = config.panel.quorum, old.config.panel.quorum
        lines.append(f"panel.quorum = {now} instead of {before}: {_ALL_TABLES}")
    if old.config.families != config.families:
        lines.append(f"[families] has {len(config.families)} entries and changed: {_ALL_TABLES}")
    return lines


_ALL_TABLES = "all tables are made by it"


def _judges(old: Manifest, names: Collection[str]) -> Iterator[str]:
    before = [judge.name for judge in old.config.judges]
    gone = [name for name in before if name not in names]
    back = [name for name in names if name not in before and name in old.identities]
    new = [name for name in names if name not in old.identities]
    if gone:
        yield f"{_named(gone)} left the run file: the replies are {_OUT}"
    if back:
        yield f"{_named(back)} came back to the run file: the replies are in the tables again"
    if new:
        yield f"{_named(new)} came new to the run file"


def _orders(old: RunConfig, new: RunConfig) -> Iterator[str]:
    """Say how the orders asked differ from those of the last start, which is allowed either way."""
    if old.orders != new.orders:
        yield (
            f'orders was "{old.orders}" and is "{new.orders}" now: calls on disk count as far as '
            f"they are asked now, and the others are {_OUT}"
        )
    elif new.orders == "sampled" and new.swap_fraction < old.swap_fraction:
        yield (
            f"swap_fraction was {old.swap_fraction} and is {new.swap_fraction} now: second calls "
            f"beyond the smaller sample are {_OUT}"
        )
    if old.seed != new.seed and old.orders == new.orders and new.orders in ("sampled", "random"):
        yield (
            f"seed was {old.seed} and is {new.seed} now: the orders asked are drawn anew, "
            f"and replies outside them are {_OUT}"
        )


def _sample(
    old: Manifest,
    design: Design,
    words: Words,
    names: Collection[str],
    only: Collection[str],
    n_calls: int,
) -> Iterator[str]:
    was, now = design_of(old).chosen(words), design.chosen(words)
    before, after = int(was.sum()), int(now.sum())
    gone, come = int((was & ~now).sum()), int((now & ~was).sum())
    # A start that only showed self pairs asked no pair: there is no sample to compare with.
    if before and (gone or come):
        left = f", {gone:,} left it: the replies are {_OUT}" if gone else ""
        yield f"the sample has {after:,} pairs instead of {before:,}: {come:,} came in{left}"
    repeats = old.config.repeats
    if design.repeats != repeats:
        n = n_calls * abs(design.repeats - repeats)
        more = f"{n:,} calls more of each judge"
        fewer = f"up to {n:,} replies of each judge are {_OUT}"
        what = more if design.repeats > repeats else fewer
        yield f"repeats = {design.repeats} instead of {repeats}: {what}"
    others = [name for name in names if only and name not in only]
    if others and (gone or come or design.repeats != repeats):
        yield (
            f"the tables of {_named(others)}, not asked now, follow: they are made of "
            f"{after:,} pairs and {design.repeats} repeats too"
        )


def _named(names: Collection[str]) -> str:
    judges = "1 judge" if len(names) == 1 else f"{len(names)} judges"
    return f"{judges} ({', '.join(names)})"
