"""Numbers as people read them; what is not available says so and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

Figure: TypeAlias = int | float | str | None
Row: TypeAlias = Mapping[str, Figure]

MISSING: Final = "not available"
FEW_GOLD: Final = 50
SMALL_P: Final = 1e-4


def percent(value: Figure) -> str:
    """Show a share as a percentage."""
    return f"{_number(value):.1%}" if value is not None else MISSING


def signed_percent(value: Figure) -> str:
    """Show a difference of shares with its sign."""
    return f"{_number(value):+.1%}" if value is not None else MISSING


def p_value(value: Figure) -> str:
    """Show a p-value with two significant digits, and a very small one by its power."""
    if value is None:
        return MISSING
    number = _number(value)
    return f"{number:.1e}" if 0.0 < number < SMALL_P else f"{number:.2g}"


def with_interval(row: Row, name: str, *, signed: bool = False) -> str:
    """Show a share and its 95% interval."""
    show = signed_percent if signed else percent
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    if row[name] is None:
        return MISSING
    interval = "interval not available" if low is None else f"{show(low)} to {show(high)}"
    return f"{show(row[name])} [{interval}]"


def offset(row: Row) -> str:
    """Show the offset in logits; an end that is not bounded is said in words."""
    value, low, high = row["offset"], row["offset_low"], row["offset_high"]
    bounds = _bounds(low, high)
    if value is not None:
        return f"{_number(value):+.2f} [{bounds}]"
    return bounds or MISSING


def offset_soft(row: Row) -> str:
    """Show the offset of the verdict's words, in logits on a scale of its own."""
    value = row["offset_soft"]
    if value is None:
        return MISSING
    bounds = _bounds(row["offset_soft_low"], row["offset_soft_high"])
    interval = bounds or "interval not available"
    median = _number(row["offset_soft_median"])
    return f"{_number(value):+.2f} [{interval}], median {median:+.2f}"


def mean_lengths(row: Row) -> str:
    """Show the mean lengths of the answers in whole characters."""
    if row["mean_len_a"] is None:
        return MISSING
    return f"{_number(row['mean_len_a']):,.0f}, {_number(row['mean_len_b']):,.0f}"


def has_soft(rows: Iterable[Row]) -> bool:
    """Tell whether any row has verdict probabilities to show."""
    return any(row.get("n_soft") or row.get("n_soft_bounds") for row in rows)


def kappa(row: Row) -> str:
    """Show kappa against gold, marked where few pairs carry it."""
    if row["kappa"] is None:
        return MISSING
    few = f" (only {row['n_gold']} gold pairs)" if _number(row["n_gold"]) < FEW_GOLD else ""
    return f"{_number(row['kappa']):.2f}{few}"


def bias(row: Row) -> str:
    """Show the words on position bias; what could have been detected stands beside nothing."""
    said = str(row["position_bias"])
    if said != "none detected":
        return said
    least = row["detectable_offset"]
    within = "any offset" if least is None else f"an offset under {_number(least):.2f}"
    return f"{said} ({within} could be missed)"


def cell(text: str) -> str:
    """Keep a text inside its cell of a Markdown table."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _bounds(low: Figure, high: Figure) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f"above {_number(low):+.2f}"
    if low is None:
        return f"below {_number(high):+.2f}"
    return f"{_number(low):+.2f} to {_number(high):+.2f}"


def _number(value: Figure) -> float:
    return float(value) if value is not None else float("nan")
