"""Exact sums over cluster profiles.

A *profile* is a vector of counts that one or more clusters share; `multiplicity` says how many.
Ten million pairs that are each their own cluster make a few dozen profiles. Sums stay whole numbers
until the last step, so they depend neither on the order of the profiles nor on how they were split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]

_INT64_SAFE = 2.0**62


def whole_numbers(values: npt.ArrayLike, *, name: str) -> IntArray:
    """Return counts as int64, refusing what would have to be rounded.

    Raises
    ------
    ValueError
        The values are not integers.
    """
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iub":
        msg = f"{name} holds {array.dtype} values; expected whole numbers: pass counts, not rates"
        raise ValueError(msg)
    return array.astype(np.int64)


def columns(**named: npt.ArrayLike) -> tuple[IntArray, ...]:
    """Return the columns of a profile table, all one-dimensional and equally long.

    Raises
    ------
    ValueError
        A column is not of whole numbers, not one-dimensional, or of another length.
    """
    arrays = tuple(whole_numbers(values, name=name) for name, values in named.items())
    shapes = {name: array.shape for name, array in zip(named, arrays, strict=True)}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        msg = f"profile columns have shapes {shapes}; expected one length, a row per profile"
        raise ValueError(msg)
    return arrays


def dot(*factors: IntArray) -> int:
    """Return the sum of the products, exactly, whatever its size."""
    # int64 wraps silently, so sums that might not fit go through Python's own integers.
    product = factors[0] if _fits(factors) else factors[0].astype(object)
    for factor in factors[1:]:
        product = product * factor
    return int(product.sum())


def _fits(factors: Sequence[IntArray]) -> bool:
    if factors[0].size == 0:
        return True
    largest = factors[0].size
    for factor in factors:
        largest *= max(int(factor.max()), -int(factor.min()))
    if largest < _INT64_SAFE:
        return True
    bound = np.ones(factors[0].shape)
    for factor in factors:
        bound = bound * np.abs(factor.astype(np.float64))
    return bool(bound.sum() < _INT64_SAFE)


def gram(rows: IntArray, weight: IntArray) -> npt.NDArray[np.object_]:
    """Return sum_r weight_r rows_ri rows_rj for all i and j, exactly, as Python's integers.

    Parameters
    ----------
    rows
        (R, C) whole numbers.
    weight
        (R,) whole numbers.
    """
    size = np.abs(rows.astype(np.float64))
    bound = (size.T @ (size * np.abs(weight.astype(np.float64))[:, None])).max(initial=0.0)
    exact = rows if bound < _INT64_SAFE else rows.astype(object)
    return (exact.T @ (exact * weight[:, None])).astype(object)


def dense(numbers: IntArray) -> tuple[IntArray, int]:
    """Replace whole numbers by their places among those that occur, and count these.

    As `np.unique(numbers, return_inverse=True)` does, without sorting where the numbers lie close
    together.
    """
    if numbers.size == 0:
        return numbers, 0
    low, high = int(numbers.min()), int(numbers.max())
    # A mark for each number that might occur is cheaper than sorting those that do.
    if high - low > 32 * numbers.size:
        names, places = np.unique(numbers, return_inverse=True)
        return places.astype(np.int64), len(names)
    shifted = numbers - low
    occurs = np.zeros(high - low + 1, np.bool_)
    occurs[shifted] = True
    places = np.cumsum(occurs) - 1
    return places[shifted], int(places[-1]) + 1


def squared_residuals(
    values: IntArray, sizes: IntArray, multiplicity: IntArray, *, numerator: int, denominator: int
) -> int:
    """Return sum_c (denominator values_c - numerator sizes_c)^2 over clusters, exactly.

    Divided by denominator^2 it is the sum of squared cluster totals of v_i - numerator/denominator.
    """
    return (
        denominator**2 * dot(multiplicity, values, values)
        - 2 * denominator * numerator * dot(multiplicity, values, sizes)
        + numerator**2 * dot(multiplicity, sizes, sizes)
    )
