"""A judge's replies out of a run's journal, with numbers for pairs and little else.

A reply on a pair of the design is kept as what tables need of it, some fifty bytes. Replies on
texts that are no pair of the design are few, and kept whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from judgebias.call_numbers import is_repeated
from judgebias.design import digest_words
from judgebias.journal import SCHEMA, JournalReader
from judgebias.journal.table import CALL_KEY, TRY, categories, first_wins
from judgebias.summary.costs import TOKENS
from judgebias.verdicts import Order, Slot

_SHARES: Final = ("p_first", "p_second", "p_tie")
CARRIED: Final[dict[str, pl.DataType]] = {
    "repeat": pl.Int32(),
    "order": pl.Enum(Order),
    "slot": pl.Enum(Slot),
    "failure": pl.Categorical(),
    "attempts": pl.Int64(),
    "time": pl.Datetime("us", "UTC"),
    "cost_usd": pl.Float64(),
    **dict.fromkeys(TOKENS, pl.Int64()),
    "model": pl.Categorical(),
    "message": pl.String(),
    **dict.fromkeys(_SHARES, pl.Float64()),
}
"""What is kept of a reply."""
_OFTEN_EMPTY: Final = ("failure", "message", "model", "cost_usd", *TOKENS, *_SHARES)
_AT: Final = "_at"
"""The reply's place in the journal."""
_ROW: Final = "_row"
"""The row of its pair in what is asked."""
_WHOLE: Final = tuple(dict.fromkeys((*CALL_KEY, *TRY, *CARRIED)))

Ints = npt.NDArray[np.int64]
Words1 = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Replies:
    """What a judge said."""

    ended: pl.DataFrame
    """Calls of the design that ended, one a row: judge, task, pair_id (the number), `CARRIED`."""
    extra: pl.DataFrame
    """The same of replies that are not their call's answer."""
    strange: pl.DataFrame
    """All columns of replies on no pair of the design, where they were asked for."""


def read_replies(
    folder: Path, asked: AskedPairs, *, judge: str, fingerprint: str, repeats: int, strange: bool
) -> Replies:
    """Read what a judge, as it is now, said in the repeats that are asked now.

    Parameters
    ----------
    folder
        The journal.
    asked
        What the design asks.
    judge, fingerprint, repeats
        Whose replies, and up to which repeat.
    strange
        Whether replies on other pairs are wanted, too.
    """
    mine = (pl.col("judge") == judge) & (pl.col("fingerprint") == fingerprint)
    rule = mine & (pl.col("repeat") <= repeats)
    schema: dict[str, pl.DataType] = {_AT: pl.UInt32(), _ROW: pl.Int64(), **CARRIED}
    parts = [pl.DataFrame(schema=schema)]
    others: list[pl.DataFrame] = [categories(pl.DataFrame(SCHEMA.empty_table().select(_WHOLE)))]
    names = _WHOLE if strange else ("pair", "judge", "fingerprint", *CARRIED)
    with JournalReader(folder) as journal:
        for frame in _placed(journal, names, rule):
            rows = asked.find(frame)
            kept = pl.Series(asked.are_asked(frame, rows))
            parts.append(_narrow(frame.with_columns(pl.Series(_ROW, rows)).filter(kept)))
            if strange:
                others.append(categories(frame.filter(pl.Series(rows < 0)).drop(_AT)))
        ended, extra = _each_once(pl.concat(parts, how="diagonal"), journal, rule)
    return Replies(
        ended=_named(ended, asked.pairs, judge),
        extra=_named(extra, asked.pairs, judge),
        strange=pl.concat(others),
    )


def _placed(
    journal: JournalReader, names: tuple[str, ...], rule: pl.Expr
) -> Iterator[pl.DataFrame]:
    """Give the rows that are wanted, with their places in the journal."""
    before = 0
    for frame in journal.frames(list(dict.fromkeys(names))):
        rows = frame.with_row_index(_AT, offset=before).filter(rule)
        before += frame.height
        if rows.height:
            yield rows


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedPairs:
    """The pairs of a design, found by their digests."""

    pairs: pl.DataFrame
    """task, pair_id (the number), identical, expects_ab, expects_ba."""
    twins: pl.DataFrame
    """The same of pairs with two identical answers, with their digests in `pair`."""
    digests: tuple[Words1, Words1]
    """Both words of each digest, in the order of the first."""
    rows: Ints
    """(pairs,) their rows in `pairs`."""

    @classmethod
    def of(cls, asked: pl.DataFrame) -> AskedPairs:
        """Sort pairs by their digests: the columns of `pairs`, and pair."""
        digests = digest_words(asked["pair"])
        rows = np.argsort(digests[:, 0], kind="stable")
        return cls(
            pairs=asked.drop("pair"),
            twins=asked.filter("identical"),
            digests=(digests[rows, 0], digests[rows, 1]),
            rows=rows,
        )

    def of_replies(self, replies: pl.DataFrame) -> pl.DataFrame:
        """Keep the replies on pairs and orders that are asked, with the pair's `number`."""
        rows = self.find(replies)
        kept = self.are_asked(replies, rows)
        numbers = self.pairs["pair_id"].gather(rows[kept]).alias("number")
        return replies.filter(pl.Series(kept)).with_columns(numbers)

    def find(self, replies: pl.DataFrame) -> Ints:
        """Give the row of each reply's pair, -1 where it is none of the design."""
        wanted = digest_words(replies["pair"])
        found = np.full(len(wanted), -1)
        first, second = self.digests
        size = len(first)
        at = np.searchsorted(first, wanted[:, 0])
        # One round, unless the first words of two digests are equal.
        while (looking := np.flatnonzero(at < size)).size:
            here = at[looking]
            same = first[here] == wanted[looking, 0]
            hit = same & (second[here] == wanted[looking, 1])
            found[looking[hit]] = self.rows[here[hit]]
            at[looking] = np.where(same & ~hit, here + 1, size)
        return found

    def are_asked(self, replies: pl.DataFrame, rows: Ints) -> npt.NDArray[np.bool_]:
        """Say of each reply whether its order is asked of its pair."""
        asked = np.zeros(len(rows), np.bool_)
        for order in map(str, Order):
            known = (rows >= 0) & (replies["order"] == order).to_numpy()
            asked[known] = self.pairs[f"expects_{order}"].gather(rows[known]).to_numpy()
        return asked


def _narrow(replies: pl.DataFrame) -> pl.DataFrame:
    """Keep what is carried, columns without a value left out."""
    empty = [name for name in _OFTEN_EMPTY if replies[name].null_count() == replies.height]
    return replies.select(
        _AT,
        _ROW,
        *(pl.col(name).cast(kind) for name, kind in CARRIED.items() if name not in empty),
    )


def _each_once(
    replies: pl.DataFrame, journal: JournalReader, rule: pl.Expr
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split the replies into one per call, and those that are only spend.

    Nearly every call has one. The others are read again with all that says which counts.
    """
    again = pl.Series(is_repeated(replies[_ROW], replies["repeat"], replies["order"]))
    if not again.any():
        return replies, replies.clear()
    several = replies.filter(again)
    tries = [
        categories(frame.filter(pl.col(_AT).is_in(several[_AT].implode())))
        for frame in _placed(journal, (*CALL_KEY, *TRY), rule)
    ]
    calls, extra = first_wins(pl.concat(tries))
    counted = several.drop("attempts").join(calls.select(_AT, "attempts"), on=_AT, how="inner")
    beside = several.join(extra.select(_AT), on=_AT, how="semi")
    return pl.concat([replies.filter(~again), counted.select(replies.columns)]), beside


def _named(replies: pl.DataFrame, asked: pl.DataFrame, judge: str) -> pl.DataFrame:
    """Put the judge, the task and the pair's number beside each reply."""
    missing = [name for name in CARRIED if name not in replies.columns]
    rows = replies[_ROW]
    return replies.select(
        pl.lit(judge).alias("judge"),
        *(asked[name].gather(rows).alias(name) for name in ("task", "pair_id")),
        *(pl.lit(None, CARRIED[name]).alias(name) if name in missing else name for name in CARRIED),
    )
