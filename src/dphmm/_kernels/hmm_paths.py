"""Hidden paths: the likeliest one (in logs), one drawn from the posterior, and simulated ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.hmm_lanes import Matrix
from dphmm.types import FloatArray, IntArray


@kernel
def best_paths(
    best: FloatArray, moves: Matrix, likelihood: FloatArray, symbols: IntArray, first: int, pointers: Any
) -> int:
    """Likeliest paths to every state, position by position; all probabilities are logs.

    ``best`` (S,) are those of the states at the position before these symbols, or where ``first`` is 1 the initial
    ones, and in the end those of the last. ``pointers`` (T, S) are the states before, the lowest of equally likely
    ones. Returns -1, or the position whose symbol no path allows.
    """
    n = len(best)
    reached, came = np.empty(n), np.empty(n, dtype=np.int64)
    for t in range(len(symbols)):
        if t >= first:
            reached[:] = -math.inf
            came[:] = 0
            for i in range(n):
                value = best[i]
                if value == -math.inf:
                    continue
                if len(moves.dense) > 0:
                    row = moves.dense[i]
                    for j in range(n):
                        candidate = value + row[j]
                        better = candidate > reached[j]
                        reached[j] = candidate if better else reached[j]
                        came[j] = i if better else came[j]
                else:
                    for e in range(moves.indptr[i], moves.indptr[i + 1]):
                        j = moves.indices[e]
                        if value + moves.data[e] > reached[j]:
                            reached[j] = value + moves.data[e]
                            came[j] = i
            best[:] = reached
            pointers[t] = came
        top = -math.inf
        chances = likelihood[symbols[t]]
        for j in range(n):
            best[j] += chances[j]
            top = max(top, best[j])
        if top == -math.inf:
            return t
    return -1


@kernel
def trace(pointers: Any, last: int, path: IntArray) -> int:
    """Follow pointers back from state ``last`` into ``path`` (T,); the state before the first."""
    for t in range(len(path) - 1, -1, -1):
        path[t] = last
        last = pointers[t, last]
    return last


@kernel
def best_path_each(
    initial: FloatArray,
    moves: Matrix,
    likelihood: FloatArray,
    symbols: IntArray,
    ends: IntArray,
    which: IntArray,
    pointers: Any,
    path: IntArray,
    logs: FloatArray,
) -> int:
    """The likeliest paths of sequences ``which``, each symbols ends[k] to ends[k + 1], that ``pointers`` can hold.

    Returns -1, or the place in ``symbols`` of a symbol that no path allows.
    """
    for k in which:
        best = initial.copy()
        refused = best_paths(best, moves, likelihood, symbols[ends[k] : ends[k + 1]], 1, pointers)
        if refused >= 0:
            return int(ends[k] + refused)
        last = int(np.argmax(best))
        logs[k] = best[last]
        trace(pointers, last, path[ends[k] : ends[k + 1]])
    return -1


@kernel
def draw_lanes(
    columns: Matrix,
    alpha: FloatArray,
    logged: bool,
    widths: IntArray,
    n_follow: int,
    uniforms: FloatArray,
    last: IntArray,
    states: IntArray,
) -> None:
    """``states`` (rows,) of one path per lane from the posterior, backwards, by one uniform number each.

    ``columns`` are the transition matrix's, compressed; they and ``alpha`` are logs where ``logged``. ``last`` (lanes,)
    are the states after these positions, of the ``n_follow`` lanes that go on, and in the end the first ones here.
    """
    n, row = alpha.shape[1], len(alpha)
    weights = np.zeros(n)
    for t in range(len(widths) - 1, -1, -1):
        row -= widths[t]
        for k in range(widths[t]):
            ahead = alpha[row + k]
            if k >= n_follow:
                weights[:] = ahead
            else:
                weights[:] = -math.inf if logged else 0.0
                for e in range(columns.indptr[last[k]], columns.indptr[last[k] + 1]):
                    i = columns.indices[e]
                    weights[i] = ahead[i] + columns.data[e] if logged else ahead[i] * columns.data[e]
            if logged:
                weights[:] = np.exp(weights - np.max(weights))
            last[k] = pick(weights, uniforms[row + k])
            states[row + k] = last[k]
        n_follow = widths[t]


@kernel
def pick(weights: FloatArray, uniform: float) -> int:
    """The entry in which uniform·sum falls; never one that is 0."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i]
    left, chosen = uniform * total, 0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            chosen = i
            left -= weights[i]
            if left < 0.0:
                break
    return chosen


@kernel
def simulate(rows: Matrix, emission: FloatArray, uniforms: FloatArray, states: IntArray, symbols: IntArray) -> None:
    """Walk on from ``states[0]`` and emit: two uniform numbers (T, 2) each, of which the very first is not used."""
    for t in range(len(states)):
        if t > 0:
            first, last = rows.indptr[states[t - 1]], rows.indptr[states[t - 1] + 1]
            states[t] = rows.indices[first + pick(rows.data[first:last], uniforms[t, 0])]
        symbols[t] = pick(emission[states[t]], uniforms[t, 1])
