"""Paths of hidden states: the likeliest one (Viterbi, in logs), one drawn from the posterior, and simulated ones.

`best_paths` is for records of symbols, one transition apart, with a dense or sparse matrix. `viterbi` is for a sparse
chain whose observations lie any number of moves apart: the path is the likeliest over all moves, those between two
observations too. Its ``rows``, ``logged_rows``, ``which`` and ``moves`` are as in `dphmm._kernels.filter`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.hmm import Matrix
from dphmm.types import BoolArray, FloatArray, IntArray


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
def observe(row: FloatArray, weights: FloatArray, logged_weights: bool) -> float:
    """A row of logs made likelier by an observation, in place, its largest entry brought to 0; the largest it was."""
    top = -math.inf
    for s in range(len(row)):
        row[s] += weights[s] if logged_weights else (math.log(weights[s]) if weights[s] > 0.0 else -math.inf)
        top = max(top, row[s])
    if top > -math.inf:
        for s in range(len(row)):
            row[s] -= top
    return top


@kernel
def viterbi(
    indptr: Any,
    indices: Any,
    logs: FloatArray,
    jump: FloatArray,
    settled: float,
    rows: FloatArray,
    logged_rows: BoolArray,
    which: IntArray,
    moves: IntArray,
    row: FloatArray,
    moved: int,
    pointers: Any,
    cycles: IntArray,
    ends: IntArray,
) -> tuple[int, int, int]:
    """Likeliest paths move by move: at most len(pointers) moves, or to the last observation.

    ``row`` (N,) are logs of the likeliest path to each state, the largest 0; ``moved`` of the first observation's moves
    are done. ``logs`` are those of the moves that a matrix stores, in compressed columns, and ``jump`` (N,) those of a
    jump into each state, from every one; (0,) where none is. Of each move, ``pointers`` (k, N) are the states
    before, and ``ends`` the observation that it led to or -1. In a long gap rows come again after some moves, which
    Brent's search finds: then ``cycles`` (k, 2) says that the last so many moves are taken so many times more. Returns
    the moves recorded, the observations reached, and ``moved`` of the next: -1 where no path allows that one.
    """
    n, at, count = len(row), 0, 0
    spare, saved = np.empty_like(row), row.copy()
    saved_at, power = 0, 1
    while at < len(which) and count < len(pointers):
        top = -math.inf
        likeliest = np.int64(np.argmax(row)) if len(jump) > 0 else np.int64(0)
        for j in range(n):
            best, before = -math.inf, np.int64(-1)
            for k in range(indptr[j], indptr[j + 1]):
                candidate = row[indices[k]] + logs[k]
                if candidate > best:
                    best, before = candidate, np.int64(indices[k])
            if len(jump) > 0 and row[likeliest] > -math.inf:
                candidate = row[likeliest] + jump[j]
                if candidate > best or (candidate == best and likeliest < before):
                    best, before = candidate, likeliest
            spare[j] = best
            pointers[count, j] = before
            top = max(top, best)
        for j in range(n):
            row[j] = spare[j] - top
        moved += 1
        cycles[count, 0], cycles[count, 1], ends[count] = 0, 0, -1
        if moved == moves[at]:
            if which[at] >= 0 and observe(row, rows[which[at]], logged_rows[which[at]]) == -math.inf:
                return count, at, -1
            ends[count] = at
            at, moved = at + 1, 0
            saved[:] = row
            saved_at, power = count + 1, 1
        else:
            again = True
            for j in range(n):
                if not (row[j] == saved[j] or abs(row[j] - saved[j]) <= settled):
                    again = False
                    break
            period = count + 1 - saved_at
            if again:
                cycles[count, 0], cycles[count, 1] = period, (moves[at] - 1 - moved) // period
                moved += period * cycles[count, 1]
            if again or period == power:
                saved[:] = row
                saved_at, power = count + 1, 2 * power
        count += 1
    return count, at, moved


@kernel
def trace_moves(pointers: Any, cycles: IntArray, ends: IntArray, count: int, state: int, path: IntArray) -> int:
    """Follow recorded moves back from a state into ``path`` (T,) at the observations; the state before the first."""
    for i in range(count - 1, -1, -1):
        if ends[i] >= 0:
            path[ends[i]] = state
        for _ in range(cycles[i, 1]):
            begun = state
            for k in range(i, i - cycles[i, 0], -1):
                state = pointers[k, state]
            if state == begun:
                break
        state = pointers[i, state]
    return state


@kernel
def draw_paths(
    columns: Matrix,
    alpha: FloatArray,
    logged: bool,
    widths: IntArray,
    n_follow: int,
    uniforms: FloatArray,
    last: IntArray,
    states: IntArray,
) -> None:
    """``states`` (rows,) of one path per record from the posterior, backwards, by one uniform number each.

    ``columns`` are the transition matrix's, compressed; they and ``alpha`` are logs where ``logged``. ``last``
    (records,) are the states after these positions, of the ``n_follow`` records that go on, and in the end the first
    ones here.
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
