"""Pairs of states of a Markov chain: which are needed, and which are bounded by way of a third state.

Proof: docs/proofs/policy-leakage.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel


@kernel
def next_pairs(
    indptr: Any,
    columns: Any,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    level: NDArray[np.int32],
    number: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of states that rows first[p], second[p] have between them and ``level`` has not; they are entered."""
    n = len(level)
    size = 1024
    found_i, found_j = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    count = 0
    seen = np.full(n, -1, dtype=np.int64)
    used = np.empty(n, dtype=np.int64)
    for p in range(len(first)):
        together = 0
        for row in (first[p], second[p]):
            for k in range(indptr[row], indptr[row + 1]):
                if seen[columns[k]] != p:
                    seen[columns[k]] = p
                    used[together] = columns[k]
                    together += 1
        for k in range(together):
            for m in range(k):
                i, j = used[k], used[m]
                if level[i, j] <= number:
                    continue
                level[i, j] = level[j, i] = number
                if count == size:
                    size *= 2
                    larger_i, larger_j = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
                    larger_i[:count] = found_i
                    larger_j[:count] = found_j
                    found_i, found_j = larger_i, larger_j
                found_i[count], found_j[count] = i, j
                count += 1
    return found_i[:count], found_j[:count]


@kernel
def by_way_of(
    known: NDArray[np.float64],
    near_start: NDArray[np.int64],
    near: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    otherwise: float,
) -> NDArray[np.float64]:
    """For pairs (first[p], second[p]) the least known[i, m] + known[m, j], m near i; at most ``otherwise``."""
    bounds = np.full(len(first), otherwise)
    for p in range(len(first)):
        i, j = first[p], second[p]
        least = math.inf
        for k in range(near_start[i], near_start[i + 1]):
            least = min(least, known[i, near[k]] + known[near[k], j])
        bounds[p] = min(otherwise, least)
    return bounds
