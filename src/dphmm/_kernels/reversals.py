"""How much a loss grows backwards in time, from tuple to tuple, along a chain whose laws keep moving.

Every tuple has a reversed kernel of its own, little different from the one before it. Of a pair of rows q, d and a rho
their overlap is remembered, sum_x min(q_x, (1 + rho) d_x): from one tuple to the next it falls by no more than the laws
move, and a pair whose overlap is still large enough cannot beat the best. So few pairs are looked at for each tuple.

Proof: docs/proofs/dependent-reversals.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel
from dphmm._kernels.leakage import excess_of, improve
from dphmm._kernels.recursion import OUTWARD

#: What a tuple loses through the one before it: by a scan of its kernel; all of that; nothing.
SCANNED, WHOLE, NOTHING = 0, 1, 2
#: Weights further apart than this underflow; L rises by no more than its argument does.
_FAR = 600.0
#: What an overlap must have over the least that is enough, before a pair is passed by.
_MARGIN = 2.0**-30
#: For the rounding of logarithms below the limit, and of their sums.
_ROUNDING = 2.0**-40
_MOST_DRIFT = 2.0**10
_UNIT = 2.0**-53


@kernel
def movements(
    laws: NDArray[np.float64], possible: NDArray[np.bool_], least: NDArray[np.float64], rare: float
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """The kinds (T - 1,) of the reversed kernels, and by how much log overlaps fall at most since the one before.

    ``laws`` (T, n), their ``possible`` values, and the ``least`` chance (n,) above 0 that a value is left by. Where a
    chance of two tuples together is below ``rare``, all may be lost. A fall is infinite where values come or go.
    """
    steps, n = len(laws) - 1, laws.shape[1]
    kinds, falls = np.zeros(steps, dtype=np.int8), np.full(steps, math.inf)
    for t in range(steps):
        rarest, same = math.inf, t > 0
        slowest, fastest = math.inf, 0.0
        for x in range(n):
            if possible[t, x]:
                rarest = min(rarest, laws[t, x] * least[x])
            if possible[t + 1, x]:
                rarest = min(rarest, laws[t + 1, x])
            same = same and possible[t, x] == possible[t + 1, x] and possible[t, x] == possible[t - 1, x]
        if rarest < rare:
            kinds[t] = WHOLE
            continue
        if not same or kinds[t - 1] == WHOLE:
            continue
        for x in range(n):
            if possible[t, x]:
                slowest = min(slowest, laws[t, x] / laws[t - 1, x])
                fastest = max(fastest, laws[t + 1, x] / laws[t, x])
        falls[t] = max(0.0, math.log(fastest) - math.log(slowest)) + _ROUNDING
    return kinds, falls


@kernel
def carry_back(
    indptr: Any,
    columns: Any,
    data: NDArray[np.float64],
    laws: NDArray[np.float64],
    possible: NDArray[np.bool_],
    kinds: NDArray[np.int8],
    falls: NDArray[np.float64],
    errors: NDArray[np.float64],
    single: NDArray[np.float64],
    carried: NDArray[np.float64],
) -> None:
    """Fill ``carried`` (T,): what each tuple loses at most through the one before it.

    ``indptr``, ``columns``, ``data``: the transition matrix by columns. ``kinds``, ``falls``: of `movements`.
    ``errors`` (T - 1,): relative ones of the entries of the reversed kernels. ``single`` (T,): losses of changing one
    tuple alone.
    """
    n = laws.shape[1]
    width = np.diff(indptr).max()
    slack = (4 * width + 64) * _UNIT
    known, least = np.full((n, n), -math.inf), np.full(n, -math.inf)
    q, d = np.zeros(width), np.zeros(n)
    rho, best, fallen = 0.0, (0, 0), 0.0
    for i in range(1, len(laws)):
        message = single[i - 1] + carried[i - 1]
        if carried[i - 1] != 0.0:
            message *= OUTWARD
        fallen = (fallen + falls[i - 1]) * OUTWARD
        if not fallen <= _MOST_DRIFT:
            known[:], least[:], fallen = -math.inf, -math.inf, 0.0
        if kinds[i - 1] == WHOLE:
            carried[i] = message
        elif kinds[i - 1] == NOTHING or message <= 0.0:
            carried[i] = 0.0
        else:
            near, error, before = min(message, _FAR), errors[i - 1], rho
            s, e = -math.expm1(-near), math.exp(-near)
            pair = (indptr, columns, data, laws[i - 1], laws[i], possible[i])
            rho = _rho_of(pair, best, s, e, q, d)
            fallen = (fallen + max(0.0, math.log1p(before) - math.log1p(rho)) + _ROUNDING) * OUTWARD
            rho, best = _worst(pair, s, e, rho, best, _MARGIN + 4.0 * error, fallen, known, least, q, d)
            found = math.log1p(rho) * (1.0 + slack) + 2.0 * error * (math.expm1(near) if near < 0.69 else 1.0)
            carried[i] = min(message, found + (message - near))


@kernel
def _worst(
    reversal: Any,
    s: float,
    e: float,
    rho: float,
    best: tuple[int, int],
    margin: float,
    fallen: float,
    known: NDArray[np.float64],
    least: NDArray[np.float64],
    q: NDArray[np.float64],
    d: NDArray[np.float64],
) -> tuple[float, tuple[int, int]]:
    """The largest rho over ordered pairs (d, q) of rows of a reversed kernel, and its pair, from one that is reached.

    ``known`` (n, n): log overlap, at a rho that was no larger, plus what had ``fallen`` by then. ``least`` (n,): of its
    rows, no less than this. ``q``, ``d``: to work in; ``d`` zeros.
    """
    indptr, columns, _, _, _, possible = reversal
    most = s / e
    enough = _enough(s, e, rho, margin, fallen)
    for i in range(len(known)):
        if 1.0 - rho / most <= _ROUNDING:
            return most, best
        if not possible[i] or least[i] >= enough:
            continue
        _spread(reversal, i, d)
        lowest = math.inf
        for j in range(len(known)):
            if j == i or not possible[j]:
                continue
            if known[i, j] < enough:
                row, there = _row(reversal, j, q), columns[indptr[j] : indptr[j + 1]]
                overlap = _overlap(there, row, d, rho)
                known[i, j] = math.log(overlap) + fallen - _ROUNDING if overlap > 0.0 else -math.inf
                if s * excess_of(there, row, d, rho) > e * rho:
                    found = improve(there, row, d, s, e, rho)[0]
                    if found > rho:
                        rho, best = found, (i, j)
                        enough = _enough(s, e, rho, margin, fallen)
            lowest = min(lowest, known[i, j])
        least[i] = lowest
        _clear(reversal, i, d)
    return rho, best


@kernel
def _enough(s: float, e: float, rho: float, margin: float, fallen: float) -> float:
    """What is known of a pair must be at least this for it to be passed by."""
    overlap = 1.0 - e * rho / s + margin
    return math.log(overlap) + fallen + _ROUNDING if overlap < 1.0 else math.inf


@kernel
def _rho_of(
    reversal: Any, pair: tuple[int, int], s: float, e: float, q: NDArray[np.float64], d: NDArray[np.float64]
) -> float:
    """The best rho of one pair of rows; 0 where one of them is impossible."""
    indptr, columns, _, _, _, possible = reversal
    i, j = pair
    if i == j or not (possible[i] and possible[j]):
        return 0.0
    _spread(reversal, i, d)
    rho = improve(columns[indptr[j] : indptr[j + 1]], _row(reversal, j, q), d, s, e, 0.0)[0]
    _clear(reversal, i, d)
    return rho


@kernel
def _row(reversal: Any, y: int, q: NDArray[np.float64]) -> NDArray[np.float64]:
    """The law of the earlier tuple given the later one's value y, on the column of y; a view of ``q``."""
    indptr, columns, data, before, after, _ = reversal
    start = indptr[y]
    row = q[: indptr[y + 1] - start]
    for k in range(len(row)):
        row[k] = before[columns[start + k]] * data[start + k] / after[y]
    return row


@kernel
def _spread(reversal: Any, y: int, d: NDArray[np.float64]) -> None:
    indptr, columns, data, before, after, _ = reversal
    for k in range(indptr[y], indptr[y + 1]):
        d[columns[k]] = before[columns[k]] * data[k] / after[y]


@kernel
def _clear(reversal: Any, y: int, d: NDArray[np.float64]) -> None:
    indptr, columns = reversal[0], reversal[1]
    for k in range(indptr[y], indptr[y + 1]):
        d[columns[k]] = 0.0


@kernel
def _overlap(columns: Any, q: NDArray[np.float64], d: NDArray[np.float64], rho: float) -> float:
    total = 0.0
    for k in range(len(q)):
        total += min(q[k], (1.0 + rho) * d[columns[k]])
    return total
