"""Forward and backward rows of many sequences at once, side by side in lanes; the transition matrix dense or sparse.

Sequences in order of falling length stand side by side: all their first symbols, then all second ones, and so on, one
row each. ``widths[t]`` lanes are more than t long, so the rows of position t begin at ``widths[:t].sum()``. A long
batch of lanes is worked on in blocks of positions. Scaling is that of `dphmm._kernels.hmm`; a sequence's weight is what
its last backward row is filled with, since every count is linear in the backward rows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.hmm import LARGEST, SMALLEST, times_row
from dphmm.types import FloatArray, IntArray

#: From this many lanes on, a matrix product is worth its call.
_FEW_LANES = 2


class Matrix(NamedTuple):
    """A square matrix: ``dense`` (S, S), or that of shape (0, 0) and compressed rows."""

    dense: FloatArray
    indptr: IntArray
    indices: IntArray
    data: FloatArray


@kernel
def forward_lanes(
    predicted: FloatArray,
    transition: Matrix,
    likelihood: FloatArray,
    symbols: IntArray,
    widths: IntArray,
    alpha: FloatArray,
    scales: FloatArray,
    logs: FloatArray,
) -> bool:
    """Fill ``alpha`` (rows, S) from ``predicted`` (lanes, S), the distributions before the first symbols here.

    Logs of the scales are added to ``logs`` (lanes,). False if a symbol is impossible, or too unlikely for floats.
    """
    n, row, dense = likelihood.shape[1], 0, transition.dense
    for t in range(len(widths)):
        width = widths[t]
        if t == 0:
            alpha[:width] = predicted[:width]
        else:
            first = row - widths[t - 1]
            if width == 1 and len(dense) > 0:
                times_row(alpha[first], dense, alpha[row])
            else:
                times(alpha, first, width, transition, alpha, row)
        for r in range(row, row + width):
            symbol, total = symbols[r], 0.0
            for j in range(n):
                alpha[r, j] *= likelihood[symbol, j]
                total += alpha[r, j]
            if not total >= SMALLEST:
                return False
            scales[r] = total
            inverse = 1.0 / total
            for j in range(n):
                alpha[r, j] *= inverse
        for k in range(width):
            logs[k] += math.log(scales[row + k])
        row += width
    return True


@kernel
def backward_lanes(
    columns: Matrix,
    likelihood: FloatArray,
    symbols: IntArray,
    widths: IntArray,
    scales: FloatArray,
    weights: FloatArray,
    follows: FloatArray,
    n_follow: int,
    beta: FloatArray,
    after: FloatArray,
) -> bool:
    """Fill ``beta`` (rows, S) and ``after``: likelihood·beta/scale of the lane's next position, 0 where it ends.

    ``columns`` is the transposed transition matrix. ``follows`` (lanes, S) holds what comes after the last position
    here, for the ``n_follow`` lanes that go on, and 0 for the others; in the end, what comes after the position before
    these. False if floats cannot hold a row.
    """
    n, row, held, dense = likelihood.shape[1], len(symbols), True, columns.dense
    for t in range(len(widths) - 1, -1, -1):
        width = widths[t]
        row -= width
        if n_follow == 1 and len(dense) > 0:
            times_row(follows[0], dense, beta[row])
        else:
            times(follows, 0, n_follow, columns, beta, row)
        for k in range(n_follow, width):
            for j in range(n):
                beta[row + k, j] = weights[k]
        for k in range(width):
            r = row + k
            symbol, inverse = symbols[r], 1.0 / scales[r]
            for j in range(n):
                after[r, j] = follows[k, j]
                follows[k, j] = likelihood[symbol, j] * beta[r, j] * inverse
            for j in range(n):
                held &= beta[r, j] < LARGEST
        n_follow = width
    return held


@kernel
def times(rows: FloatArray, first: int, count: int, matrix: Matrix, out: FloatArray, out_first: int) -> None:
    """Rows first, first + 1, .. times a matrix, into those of ``out``: by stored entries, or by BLAS where many."""
    if len(matrix.dense) > 0 and count >= _FEW_LANES:
        np.dot(rows[first : first + count], matrix.dense, out[out_first : out_first + count])
        return
    for k in range(count):
        row, into = rows[first + k], out[out_first + k]
        if len(matrix.dense) > 0:
            times_row(row, matrix.dense, into)
        else:
            for j in range(len(into)):
                into[j] = 0.0
            for i in range(len(row)):
                mass = row[i]
                for e in range(matrix.indptr[i], matrix.indptr[i + 1]):
                    into[matrix.indices[e]] += mass * matrix.data[e]


@kernel
def add_entries(matrix: Matrix, alpha: FloatArray, after: FloatArray, pairs: FloatArray) -> None:
    """Add alpha'·after at the stored entries of a sparse matrix to ``pairs``, one for each entry."""
    for r in range(len(alpha)):
        ahead, back = alpha[r], after[r]
        for i in range(len(ahead)):
            mass = ahead[i]
            for e in range(matrix.indptr[i], matrix.indptr[i + 1]):
                pairs[e] += mass * back[matrix.indices[e]]


@kernel
def add_emissions(symbols: IntArray, alpha: FloatArray, beta: FloatArray, emissions: FloatArray) -> None:
    """Add the posteriors alpha·beta of every row to its symbol's in ``emissions`` (V, S)."""
    for r in range(len(symbols)):
        counts, ahead, back = emissions[symbols[r]], alpha[r], beta[r]
        for j in range(len(counts)):
            counts[j] += ahead[j] * back[j]
