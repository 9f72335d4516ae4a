"""The small programs of all pairs of rows of a transition matrix, equal ones solved once.

A program is the largest log (q·x / d·x) over x > 0 with log x_k - log x_l <= D[k, l], q and d two rows: solved where it
is small, bounded by a coupling where it is not.

Proof: docs/proofs/policy-leakage.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel
from dphmm._kernels.couplings import bottleneck
from dphmm._kernels.quotients import largest_ratio

#: Results are rounded up to multiples of this: programs that differ by rounding alone become equal.
STEP = 2.0**-32


@kernel
def gather(
    indptr: Any,
    columns: Any,
    logs: NDArray[np.float64],
    limits: NDArray[np.float64],
    i: int,
    j: int,
    place: NDArray[np.int64],
    used: NDArray[np.int64],
    out: NDArray[np.float64],
) -> int:
    """Write the program of rows i and j to ``out``: log q, log d, and the limits row by row.

    Returns how many states it has. ``place``: -1 everywhere; ``used``: room for the states.
    """
    count = 0
    for row in (i, j):
        for k in range(indptr[row], indptr[row + 1]):
            if place[columns[k]] < 0:
                place[columns[k]] = count
                used[count] = columns[k]
                count += 1
    out[: 2 * count] = -math.inf
    for k in range(indptr[i], indptr[i + 1]):
        out[place[columns[k]]] = logs[k]
    for k in range(indptr[j], indptr[j + 1]):
        out[count + place[columns[k]]] = logs[k]
    for k in range(count):
        for m in range(count):
            out[(2 + k) * count + m] = limits[used[k], used[m]]
    for k in range(count):
        place[used[k]] = -1
    return count


@kernel
def shorten(limits: NDArray[np.float64]) -> None:
    """Every limit becomes that of the shortest way round, which x obeys all the same."""
    n = len(limits)
    for by in range(n):
        for k in range(n):
            for m in range(n):
                limits[k, m] = min(limits[k, m], limits[k, by] + limits[by, m])


@kernel
def digest(words: NDArray[np.uint64]) -> np.uint64:
    """FNV-1a over whole words, stirred: it finds programs again, equality is tested on all of them."""
    state = np.uint64(14695981039346656037)
    for word in words:
        state = (state ^ word) * np.uint64(1099511628211)
        state ^= state >> np.uint64(29)
    return state


@kernel
def onward(
    indptr: Any,
    columns: Any,
    logs: NDArray[np.float64],
    limits: NDArray[np.float64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    most: int,
    metric: bool,
    result: NDArray[np.float64],
) -> tuple[int, int]:
    """Fill ``result[i, j]``, the largest log (M_i·x / M_j·x), for pairs of rows i = first[p], j = second[p].

    Results are in multiples of STEP. Equal programs are solved once. ``metric``: the limits obey the triangle
    inequality already. Returns how many programs were solved, and how many pairs, of more than ``most`` states, have a
    coupling bound.
    """
    widest = 0
    for row in range(len(indptr) - 1):
        widest = max(widest, int(indptr[row + 1] - indptr[row]))
    widest = min(2 * widest, len(limits))
    place, used = np.full(len(limits), -1, dtype=np.int64), np.empty(widest, dtype=np.int64)
    program, other = np.empty((widest + 2) * widest), np.empty((widest + 2) * widest)
    slots = 1024
    while slots < 2 * len(first):
        slots *= 2
    table = np.full(slots, -1, dtype=np.int64)
    solved = coupled = 0
    for p in range(len(first)):
        count = gather(indptr, columns, logs, limits, first[p], second[p], place, used, program)
        size = (count + 2) * count
        slot = np.int64(digest(program[:size].view(np.uint64)) & np.uint64(slots - 1))
        while table[slot] >= 0:
            known = table[slot]
            same = count == gather(indptr, columns, logs, limits, first[known], second[known], place, used, other)
            if same and np.array_equal(program[:size], other[:size]):
                break
            slot = (slot + 1) & (slots - 1)
        if count > most:
            coupled += 1
        if table[slot] >= 0:
            result[first[p], second[p]] = result[first[table[slot]], second[table[slot]]]
            continue
        table[slot] = p
        solved += 1
        log_q, log_d = program[:count], program[count : 2 * count]
        own = program[2 * count : size].reshape(count, count)
        if not metric:
            shorten(own)
        found = bottleneck(log_q, log_d, own) if count > most else largest_ratio(log_q, log_d, own)
        result[first[p], second[p]] = math.ceil(found / STEP) * STEP
    return solved, coupled
