"""Equal rows of whole numbers, counted.

A row travels as one number, its columns the digits: one number is grouped and sorted ten times
faster than six.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import polars as pl


@dataclass(frozen=True, kw_only=True, slots=True)
class Digit:
    """A column of whole numbers that has its place in a row's number."""

    name: str
    least: int
    base: int
    """How many values there may be, from `least` up."""

    @classmethod
    def of(cls, name: str, values: pl.Series, *, least: int = 0) -> Digit:
        """Make the digit that has room for some values."""
        largest = values.max()
        return cls(
            name=name, least=least, base=largest - least + 1 if isinstance(largest, int) else 1
        )


def number_of(digits: Sequence[Digit]) -> pl.Expr:
    """Write a row as one number; numbers sort as the rows do, column by column."""
    fits = prod(digit.base for digit in digits) < 2**63
    number = pl.lit(0, pl.Int64 if fits else pl.Int128)
    for digit in digits:
        number = number * digit.base + (pl.col(digit.name).cast(pl.Int64) - digit.least)
    return number


def count_equal(frame: pl.DataFrame, digits: Sequence[Digit]) -> pl.DataFrame:
    """Count equal rows, in sorted order: the columns of the digits, and `count`."""
    one = frame.select(number=number_of(digits), count=pl.lit(1, pl.Int64))
    return read_numbers(add_counts([one]), digits)


def add_counts(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add up the column `count` by the column `number`, sorted."""
    return pl.concat(parts).group_by("number").agg(pl.col("count").sum()).sort("number")


def read_numbers(counted: pl.DataFrame, digits: Sequence[Digit]) -> pl.DataFrame:
    """Turn numbers into rows again."""
    rest, columns = pl.col("number"), {"count": pl.col("count")}
    for digit in reversed(digits):
        columns[digit.name] = (rest % digit.base).cast(pl.Int64) + digit.least
        rest = rest // digit.base
    return counted.select(**columns)
