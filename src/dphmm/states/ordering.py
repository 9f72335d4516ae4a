"""Order among the rows of many users, without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm.types import BoolArray, IntArray


def ranks(owner: NDArray[Any]) -> IntArray:
    """How many rows of the same owner stand before each row (n,)."""
    n = len(owner)
    result = np.empty(n, dtype=np.int64)
    order = np.argsort(owner, kind="stable")
    result[order] = np.arange(n) - _run_starts(owner[order])
    return result


def out_of_order(owner: NDArray[Any], keys: Sequence[IntArray]) -> int:
    """Rows whose key is less than that of the row before them of the same owner."""
    order = np.argsort(owner, kind="stable")
    same = owner[order][1:] == owner[order][:-1]
    return sum(int((same & (key[order][1:] < key[order][:-1])).sum()) for key in keys)


def first_of_each(columns: Sequence[IntArray]) -> BoolArray:
    """Mask of the rows that differ in some column from every earlier row."""
    n = len(columns[0])
    order = np.lexsort(tuple(columns))
    new = np.zeros(n, dtype=np.bool_)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    first = np.zeros(n, dtype=np.bool_)
    first[order[new]] = True
    return first


def _run_starts(values: NDArray[Any]) -> IntArray:
    """Position at which the run of equal values around each position starts."""
    starts = np.arange(len(values))
    starts[1:][values[1:] == values[:-1]] = 0
    return np.maximum.accumulate(starts)
