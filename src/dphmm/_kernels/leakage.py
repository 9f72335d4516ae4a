"""How much a loss grows over one move of a Markov chain: one scan over all pairs of rows.

With s = 1 - e^-a and e = e^-a, a pair of rows q, d and a set H of columns reach the ratio 1 + rho,
rho = s (q_H - d_H) / (s d_H + e). A pair beats rho exactly if s sum_j max(q_j - d_j - rho d_j, 0) > e rho, and the
columns with a positive term are then the better set. So most pairs cost one pass, and none is sorted.

Proof: docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel

#: How many times a set of columns may be improved; each time strictly, so this is never reached in practice.
MOST_IMPROVEMENTS = 10_000
#: Columns whose quotient is not beyond 1 + rho by this factor may be there through rounding.
CLEAR = 1 + 2.0**-48


@kernel
def _quotient(more: float, less: float, s: float, e: float) -> float:
    """The rho of a set of columns, 0 of none."""
    bottom = s * less + e
    if more == 0.0:
        return 0.0
    return s * more / bottom if bottom > 0 else math.inf


@kernel
def improve(
    columns: Any, q: NDArray[np.float64], d: NDArray[np.float64], s: float, e: float, rho: float
) -> tuple[float, float, float]:
    """The best (rho, q_H - d_H, d_H) of one pair of rows, from a rho that it beats.

    ``q`` is given on ``columns``, ``d`` everywhere.
    """
    gain = below = 0.0
    for _ in range(MOST_IMPROVEMENTS):
        more = less = clear_more = clear_less = 0.0
        for k in range(len(columns)):
            difference, limit = q[k] - d[columns[k]], rho * d[columns[k]]
            if difference > limit:
                more += difference
                less += d[columns[k]]
            if difference > limit * CLEAR:
                clear_more += difference
                clear_less += d[columns[k]]
        found = _quotient(more, less, s, e)
        # A column that rounding alone has let in can hide a small one that is worth far more.
        if not found > rho:
            more, less = clear_more, clear_less
            found = _quotient(more, less, s, e)
        if not found > rho:
            break
        rho, gain, below = found, more, less
        if rho == math.inf:
            break
    return rho, gain, below


@kernel
def excess_of(columns: Any, q: NDArray[np.float64], d: NDArray[np.float64], rho: float) -> float:
    """sum_j max(q_j - d_j - rho d_j, 0), over the columns where q is given."""
    excess = 0.0
    for k in range(len(q)):
        below = d[columns[k]]
        excess += max(q[k] - below - rho * below, 0.0)
    return excess


@kernel
def worst_pair(
    indptr: Any,
    columns: Any,
    data: NDArray[np.float64],
    rows: NDArray[np.int64],
    s: float,
    e: float,
    known: tuple[float, float, float],
    bounds: NDArray[np.float64],
    d: NDArray[np.float64],
) -> tuple[float, float, float]:
    """The largest rho over ordered pairs of ``rows``, and the q_H - d_H and d_H that reach it, from ones ``known``.

    Nothing exceeds s/e: a pair without a common column ends the search. ``bounds`` (rows, rows), or empty: no pair's
    excess is above its bound at any rho from ``known`` on; lowered to what is found. ``d``: zeros, one per column, to
    work in.
    """
    most = s / e if e > 0 else math.inf
    rho, gain, below = known
    for i in range(len(rows)):
        first, last = indptr[rows[i]], indptr[rows[i] + 1]
        for k in range(first, last):
            d[columns[k]] = data[k]
        for j in range(len(rows)):
            if rho >= most:
                return rho, gain, below
            if len(bounds) > 0 and s * bounds[i, j] <= e * rho:
                continue
            start, stop = indptr[rows[j]], indptr[rows[j] + 1]
            excess = excess_of(columns[start:stop], data[start:stop], d, rho)
            if len(bounds) > 0:
                bounds[i, j] = excess
            if s * excess > e * rho:
                found = improve(columns[start:stop], data[start:stop], d, s, e, rho)
                if found[0] > rho:
                    rho, gain, below = found
        for k in range(first, last):
            d[columns[k]] = 0.0
    return rho, gain, below


@kernel
def worst_of_all(
    rows: NDArray[np.float64],
    columns: NDArray[np.float64],
    s: float,
    e: float,
    known: tuple[float, float, float],
) -> tuple[float, float, float]:
    """`worst_pair` of all ``rows`` (k, m) of a dense matrix; ``columns`` (m, k): the same, transposed."""
    most = s / e if e > 0 else math.inf
    rho, gain, below = known
    everywhere, excess = np.arange(rows.shape[1]), np.zeros(len(rows))
    for d in rows:
        if rho >= most:
            break
        excess[:] = 0.0
        for x in range(len(d)):
            limit = rho * d[x]
            for j in range(len(rows)):
                beyond = columns[x, j] - d[x] - limit
                excess[j] += beyond if beyond > 0.0 else 0.0
        for j in range(len(rows)):
            if s * excess[j] > e * rho:
                found = improve(everywhere, rows[j], d, s, e, rho)
                if found[0] > rho:
                    rho, gain, below = found
    return rho, gain, below
