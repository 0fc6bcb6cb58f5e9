"""P-values adjusted for a family of tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def benjamini_hochberg(p: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995).

    Parameters
    ----------
    p
        P-values; None is not tested: it stays None and does not count in the family.
    """
    return _adjust(p, _step_up)


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Return p-values adjusted for the family-wise error (Holm 1979).

    Parameters
    ----------
    p
        P-values; None is not tested: it stays None and does not count in the family.
    """
    return _adjust(p, _step_down)


def _adjust(
    p: Sequence[float | None], rule: Callable[[list[float]], list[float]]
) -> list[float | None]:
    tested = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    for (_, place), value in zip(tested, rule([value for value, _ in tested]), strict=True):
        adjusted[place] = value
    return adjusted


def _step_up(ascending: list[float]) -> list[float]:
    family, smallest = len(ascending), 1.0
    adjusted: list[float] = []
    for rank in range(family, 0, -1):
        smallest = min(smallest, ascending[rank - 1] * family / rank)
        adjusted.append(smallest)
    return adjusted[::-1]


def _step_down(ascending: list[float]) -> list[float]:
    family, largest = len(ascending), 0.0
    adjusted: list[float] = []
    for rank, value in enumerate(ascending):
        largest = max(largest, min(1.0, value * (family - rank)))
        adjusted.append(largest)
    return adjusted
