"""Hidden Markov models over dense arrays, one sequence at a time: S states, V symbols, T positions.

``likelihood`` (V, S) holds in row v the probability of symbol v in every state. Forward rows are scaled to sum to 1,
and backward rows by the same factors, so their product is the posterior. Every sum has one fixed order of additions:
what comes out depends on the one sequence and on the parameters, never on what else is worked on.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray

#: A backward entry above this may belong to a state whose forward entry has underflowed: logs must take over.
LARGEST = 1e290
#: A forward row whose sum is below this has lost terms to underflow, if it is possible at all.
SMALLEST = 1e-290


@kernel
def forward(
    initial: FloatArray,
    transition: FloatArray,
    likelihood: FloatArray,
    symbols: IntArray,
    alpha: FloatArray,
    scales: FloatArray,
) -> int:
    """Fill ``alpha`` (T, S), P(state | symbols so far), and ``scales`` (T,), whose logs sum to the log-likelihood.

    Returns -1, or the first position whose symbol is impossible there, or too unlikely for floats: rows from it on are
    then not filled, and logs (`dphmm._kernels.hmm_logs`) can tell which of the two it is.
    """
    n = len(initial)
    for t in range(len(symbols)):
        row, chances = alpha[t], likelihood[symbols[t]]
        if t == 0:
            for j in range(n):
                row[j] = initial[j]
        else:
            before = alpha[t - 1]
            times_row(before, transition, row)
        total = 0.0
        for j in range(n):
            row[j] *= chances[j]
            total += row[j]
        if not total >= SMALLEST:
            return t
        scales[t] = total
        inverse = 1.0 / total
        for j in range(n):
            row[j] *= inverse
    return -1


@kernel
def backward(
    transition: FloatArray, likelihood: FloatArray, symbols: IntArray, scales: FloatArray, beta: FloatArray
) -> bool:
    """Fill ``beta`` (T, S): alpha·beta is the posterior P(state | all symbols). False if floats cannot hold it."""
    return backward_by_columns(np.ascontiguousarray(transition.T), likelihood, symbols, scales, beta)


@kernel
def backward_by_columns(
    columns: FloatArray, likelihood: FloatArray, symbols: IntArray, scales: FloatArray, beta: FloatArray
) -> bool:
    """`backward` from the transposed transition matrix."""
    n, last = beta.shape[1], len(symbols) - 1
    after = np.empty(n)
    held = True
    beta[last] = 1.0
    for t in range(last, 0, -1):
        row = beta[t - 1]
        _explained(likelihood[symbols[t]], beta[t], scales[t], after)
        times_row(after, columns, row)
        for i in range(n):
            held &= row[i] < LARGEST
    return held


@kernel
def times_row(row: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """``out`` = row · matrix, by four rows of the matrix at a time: ``out`` is read and written a quarter as often."""
    n, whole = len(out), len(row) // 4 * 4
    for j in range(n):
        out[j] = 0.0
    for i in range(0, whole, 4):
        a, b, c, d = row[i], row[i + 1], row[i + 2], row[i + 3]
        for j in range(n):
            out[j] += (a * matrix[i, j] + b * matrix[i + 1, j]) + (c * matrix[i + 2, j] + d * matrix[i + 3, j])
    for i in range(whole, len(row)):
        a = row[i]
        for j in range(n):
            out[j] += a * matrix[i, j]


@kernel
def add_expected(
    transition: FloatArray,
    likelihood: FloatArray,
    symbols: IntArray,
    scales: FloatArray,
    alpha: FloatArray,
    beta: FloatArray,
    weight: float,
    starts: FloatArray,
    moves: FloatArray,
    emissions: FloatArray,
) -> None:
    """Add ``weight`` times the expected counts of one sequence to starts (S,), moves (S, S), emissions (V, S).

    The moves of the sequence are summed by themselves first, so what is added to them does not depend on what was
    there.
    """
    n = alpha.shape[1]
    pairs = np.zeros((n, n))
    add_pairs(likelihood, symbols, scales, alpha, beta, 1.0, pairs)
    for i in range(n):
        for j in range(n):
            moves[i, j] += weight * (pairs[i, j] * transition[i, j])
    add_positions(symbols, alpha, beta, weight, starts, emissions)


@kernel
def add_pairs(
    likelihood: FloatArray,
    symbols: IntArray,
    scales: FloatArray,
    alpha: FloatArray,
    beta: FloatArray,
    weight: float,
    pairs: FloatArray,
) -> None:
    """Add ``weight`` times the expected moves of one sequence, each divided by its transition probability."""
    n = alpha.shape[1]
    after = np.empty(n)
    for t in range(1, len(symbols)):
        _explained(likelihood[symbols[t]], beta[t], scales[t] / weight, after)
        before = alpha[t - 1]
        for i in range(n):
            mass, sums = before[i], pairs[i]
            for j in range(n):
                sums[j] += mass * after[j]


@kernel
def add_positions(
    symbols: IntArray, alpha: FloatArray, beta: FloatArray, weight: float, starts: FloatArray, emissions: FloatArray
) -> None:
    """Add ``weight`` times the posteriors of one sequence: its first to ``starts``, all to ``emissions`` by symbol."""
    n = alpha.shape[1]
    for j in range(n):
        starts[j] += weight * (alpha[0, j] * beta[0, j])
    for t in range(len(symbols)):
        counts, ahead, back = emissions[symbols[t]], alpha[t], beta[t]
        for j in range(n):
            counts[j] += weight * (ahead[j] * back[j])


@kernel
def _explained(chances: FloatArray, beta: FloatArray, scale: float, after: FloatArray) -> None:
    inverse = 1.0 / scale
    for j in range(len(after)):
        after[j] = chances[j] * beta[j] * inverse
