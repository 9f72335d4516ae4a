"""Forward and backward rows of one sequence in logs: slow, and right where scaled floats underflow or overflow.

The transition matrix is in compressed rows, ``moves`` (E,) the logs of its stored entries; ``likelihood`` (V, S) and
``initial`` (S,) are logs as well. A forward row is normalised: its exponentials sum to 1.
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray


@kernel
def forward_logs(
    initial: FloatArray,
    indptr: IntArray,
    indices: IntArray,
    moves: FloatArray,
    likelihood: FloatArray,
    symbols: IntArray,
    alpha: FloatArray,
    scales: FloatArray,
) -> int:
    """Fill ``alpha`` (T, S) and ``scales`` (T,), of which the sum is the log-likelihood.

    Returns -1, or the first position whose symbol is impossible there.
    """
    n = len(initial)
    largest = np.empty(n)
    for t in range(len(symbols)):
        row = alpha[t]
        if t == 0:
            row[:] = initial
        else:
            before = alpha[t - 1]
            largest[:] = -math.inf
            for i in range(n):
                for e in range(indptr[i], indptr[i + 1]):
                    largest[indices[e]] = max(largest[indices[e]], before[i] + moves[e])
            row[:] = 0.0
            for i in range(n):
                for e in range(indptr[i], indptr[i + 1]):
                    j = indices[e]
                    if largest[j] > -math.inf:
                        row[j] += math.exp(before[i] + moves[e] - largest[j])
            for j in range(n):
                row[j] = largest[j] + math.log(row[j]) if largest[j] > -math.inf else -math.inf
        row += likelihood[symbols[t]]
        scales[t] = log_sum(row)
        if scales[t] == -math.inf:
            return t
        row -= scales[t]
    return -1


@kernel
def backward_logs(
    indptr: IntArray,
    indices: IntArray,
    moves: FloatArray,
    likelihood: FloatArray,
    symbols: IntArray,
    scales: FloatArray,
    alpha: FloatArray,
    posteriors: FloatArray,
    expected: FloatArray,
) -> None:
    """Fill ``posteriors`` (T, S), which are no logs, and add expected moves to ``expected`` (E,)."""
    n = alpha.shape[1]
    back, after = np.zeros(n), np.empty(n)
    terms = np.empty(n)
    for t in range(len(symbols) - 1, -1, -1):
        for i in range(n):
            posteriors[t, i] = math.exp(alpha[t, i] + back[i])
        if t == 0:
            break
        after[:] = likelihood[symbols[t]] + back - scales[t]
        for i in range(n):
            first, last = indptr[i], indptr[i + 1]
            for e in range(first, last):
                terms[e - first] = moves[e] + after[indices[e]]
                expected[e] += math.exp(alpha[t - 1, i] + terms[e - first])
            back[i] = log_sum(terms[: last - first])


@kernel
def log_sum(row: FloatArray) -> float:
    """The log of the sum of exponentials; -inf of nothing."""
    top = -math.inf
    for i in range(len(row)):
        top = max(top, row[i])
    if top == -math.inf:
        return top
    total = 0.0
    for i in range(len(row)):
        total += math.exp(row[i] - top)
    return top + math.log(total)
