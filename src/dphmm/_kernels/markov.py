"""Moves of a Markov chain over compressed rows and columns.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel

#: In a scaled sum at least this large, terms that underflowed (each below 1e-323) are far beyond a double.
TRUSTED = 1e-290


@kernel
def reach(indptr: Any, indices: Any, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Columns with a stored entry in some row of ``mask``; (indptr, indices) are compressed rows."""
    reached = np.zeros(len(mask), dtype=np.bool_)
    for row in range(len(mask)):
        if mask[row]:
            for k in range(indptr[row], indptr[row + 1]):
                reached[indices[k]] = True
    return reached


@kernel
def reachable(indptr: Any, indices: Any, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows of ``mask`` and everything any number of moves away from them."""
    seen = mask.copy()
    stack = np.empty(len(mask), dtype=np.int64)
    depth = 0
    for row in range(len(mask)):
        if mask[row]:
            stack[depth] = row
            depth += 1
    while depth > 0:
        depth -= 1
        row = stack[depth]
        for k in range(indptr[row], indptr[row + 1]):
            if not seen[indices[k]]:
                seen[indices[k]] = True
                stack[depth] = indices[k]
                depth += 1
    return seen


@kernel
def predict(
    indptr: Any,
    indices: Any,
    data: NDArray[np.float64],
    share: NDArray[np.float64],
    log_probability: NDArray[np.float64],
    support: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """log(p M) and its support, from compressed columns of M and the share of a jump, (N,) or (0,) where none is.

    Probabilities scaled by their largest are summed as floats; a column whose sum is too small to trust is
    summed again in logs, so a reached column always gets a finite number. A jump reaches every column.
    """
    n = len(support)
    top = -math.inf
    for i in range(n):
        if support[i] and log_probability[i] > top:
            top = log_probability[i]
    scaled = np.zeros(n)
    for i in range(n):
        if support[i]:
            scaled[i] = math.exp(log_probability[i] - top)
    jumps = len(share) > 0 and top > -math.inf
    whole = 0.0
    if jumps:
        for i in range(n):
            whole += scaled[i]

    result = np.full(n, -math.inf)
    reached = np.zeros(n, dtype=np.bool_)
    for j in range(n):
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            if support[indices[k]]:
                reached[j] = True
                total += scaled[indices[k]] * data[k]
        if jumps:
            reached[j] = True
            total += whole * share[j]
        if total >= TRUSTED:
            result[j] = top + math.log(total)
        elif reached[j]:
            largest = -math.inf
            for k in range(indptr[j], indptr[j + 1]):
                if support[indices[k]]:
                    largest = max(largest, log_probability[indices[k]] + math.log(data[k]))
            total = 0.0
            for k in range(indptr[j], indptr[j + 1]):
                if support[indices[k]]:
                    total += math.exp(log_probability[indices[k]] + math.log(data[k]) - largest)
            result[j] = largest + math.log(total)
    return result, reached
