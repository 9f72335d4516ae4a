"""The likeliest path of a sparse chain through its observations (Viterbi), in blocks of moves.

Everything is in logs, so nothing underflows. ``rows``, ``logged_rows``, ``which`` and ``moves`` are as in
`dphmm._kernels.hmm_sparse`; the path is the likeliest over all moves, those between two observations too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, FloatArray, IntArray


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
def trace(pointers: Any, cycles: IntArray, ends: IntArray, count: int, state: int, path: IntArray) -> int:
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
