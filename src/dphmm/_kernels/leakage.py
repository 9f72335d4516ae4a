"""The growth of a loss over the steps of a Markov chain: L of one step, curves along a chain, reversed kernels.

*One step: a scan over all pairs of rows.* With s = 1 - e^-a and e = e^-a, a pair of rows q, d and a set H of columns
reach the ratio 1 + rho, rho = s (q_H - d_H) / (s d_H + e). A pair beats rho exactly if
s sum_j max(q_j - d_j - rho d_j, 0) > e rho, and the columns with a positive term are then the better set. So most pairs
cost one pass, and none is sorted.

*Curves.* The corners of one curve serve every tuple of a chain with one kernel.

*Backwards, where the marginals move.* Every tuple has a reversed kernel of its own, close to the one before it. Of a
pair of rows q, d and a rho the overlap sum_x min(q_x, (1 + rho) d_x) is remembered: from one tuple to the next it falls
by no more than the marginals move, and a pair whose overlap is still large enough cannot beat the best. So few pairs
are looked at for each tuple.

Proofs: docs/proofs/temporal-leakage.md, docs/proofs/dependent-markov.md, docs/proofs/dependent-reversals.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel

#: A rounding, outwards: of a sum of two floats.
OUTWARD = 1.0 + 2.0**-50
_UNIT = 2.0**-53
#: Weights further apart than this underflow; L rises by no more than its argument does.
FAR = 600.0


@kernel
def steepest(d: NDArray[np.float64], more: NDArray[np.float64], weight: float, heavy: float) -> float:
    """The largest quotient minus 1 over corners (d, q = d + more).

    A search would be led astray by corners a rounding apart: all are looked at.
    """
    most = 0.0
    for k in range(len(d)):
        below = d[k] * heavy + weight
        if below > 0.0:
            most = max(most, more[k] / below * heavy)
        elif more[k] > 0.0:
            return math.inf
    return most


@kernel
def increase(d: NDArray[np.float64], more: NDArray[np.float64], alpha: float) -> float:
    """L(alpha) as computed; alpha may be infinite."""
    if alpha <= 0.0:
        return 0.0
    near = math.log1p(steepest(d, more, math.exp(-min(alpha, FAR)), -math.expm1(-min(alpha, FAR))))
    if alpha <= FAR:
        return near
    limit = math.log1p(steepest(d, more, 0.0, 1.0))
    return limit if alpha == math.inf else min(near + (alpha - FAR), limit)


@kernel
def moved_by(error: float, alpha: float) -> float:
    """The largest change of L(alpha) when all entries move by a relative ``error``."""
    return 2.0 * error * (math.expm1(alpha) if alpha < 0.69 else 1.0)


@kernel
def increase_above(d: NDArray[np.float64], more: NDArray[np.float64], error: float, alpha: float) -> float:
    """A number that is not below L(alpha), rounding and relative errors of the kernel included; at most alpha."""
    if alpha <= 0.0:
        return 0.0
    return min(alpha, increase(d, more, alpha) * (1.0 + 16 * _UNIT) + moved_by(error, alpha))


@kernel
def carry(
    d: NDArray[np.float64],
    more: NDArray[np.float64],
    error: float,
    single: NDArray[np.float64],
    carried: NDArray[np.float64],
    first: int,
    last: int,
    step: int,
) -> None:
    """Fill ``carried`` from tuple ``first`` to ``last`` by ``step``, along one kernel throughout.

    It says what each tuple loses through the tuple before it.
    """
    known, loss = math.nan, 0.0
    for i in range(first, last + step, step):
        before = i - step
        message = single[before] + carried[before]
        if message != known:
            known = message
            loss = increase_above(d, more, error, message * OUTWARD if carried[before] != 0.0 else message)
        carried[i] = loss


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
        candidate = _quotient(more, less, s, e)
        # A column that rounding alone has let in can hide a small one that is worth far more.
        if not candidate > rho:
            more, less = clear_more, clear_less
            candidate = _quotient(more, less, s, e)
        if not candidate > rho:
            break
        rho, gain, below = candidate, more, less
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
                improved = improve(columns[start:stop], data[start:stop], d, s, e, rho)
                if improved[0] > rho:
                    rho, gain, below = improved
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
                improved = improve(everywhere, rows[j], d, s, e, rho)
                if improved[0] > rho:
                    rho, gain, below = improved
    return rho, gain, below


#: What a tuple loses through the one before it: by a scan of its kernel; all of that; nothing.
SCANNED, WHOLE, NOTHING = 0, 1, 2
#: A pair is passed by where its overlap, relative to what would be enough, lacks this at most: what that may hide is
#: added. With larger losses nothing may be hidden, and an overlap must have as much more than enough.
_LACKING = 2.0**-34
_LARGE = 12.0
#: For the rounding of logarithms below the limit, and of their sums.
_ROUNDING = 2.0**-40
#: For that of one logarithm near 0, and relative of others.
_LAST_PLACES = 2.0**-49
_MOST_DRIFT = 2.0**10


@kernel
def movements(
    laws: NDArray[np.float64], possible: NDArray[np.bool_], least: NDArray[np.float64], rare: float
) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """The kinds (T - 1,) of the reversed kernels, and the largest fall of log overlaps since the one before.

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
        falls[t] = max(0.0, math.log(fastest) - math.log(slowest)) * (1.0 + _ROUNDING) + _LAST_PLACES
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
    """Fill ``carried`` (T,) with the largest loss of each tuple through the one before it.

    ``indptr``, ``columns``, ``data``: the transition matrix by columns. ``kinds``, ``falls``: of `movements`.
    ``errors`` (T - 1,): relative ones of the entries of the reversed kernels. ``single`` (T,): losses of changing one
    tuple alone.
    """
    n = laws.shape[1]
    width = np.diff(indptr).max()
    slack = (4 * width + 64) * _UNIT
    known, least = np.full((n, n), -math.inf), np.full(n, -math.inf)
    entries, made, d = np.zeros(len(data)), np.zeros(n, dtype=np.int64), np.zeros(n)
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
            near, error, before = min(message, FAR), errors[i - 1], rho
            s, e = -math.expm1(-near), math.exp(-near)
            rows = (indptr, columns, data, laws[i - 1], laws[i], possible[i], entries, made, i)
            rho = _rho_of(rows, best, s, e, d)
            lost = max(0.0, math.log1p(before) - math.log1p(rho))
            fallen = (fallen + lost + _LAST_PLACES * (1.0 + math.log1p(before))) * OUTWARD
            wrong = 4.0 * error + slack
            lacking = _LACKING if near <= _LARGE else -_LACKING - wrong
            rho, best = _worst(rows, s, e, rho, best, lacking, fallen, known, least, d)
            hidden = (lacking + wrong) * max(0.0, math.expm1(near) - rho) if near <= _LARGE else 0.0
            loss = math.log1p(rho + hidden) * (1.0 + slack) + moved_by(error, near)
            carried[i] = min(message, loss + (message - near))


@kernel
def _worst(
    reversal: Any,
    s: float,
    e: float,
    rho: float,
    best: tuple[int, int],
    lacking: float,
    fallen: float,
    known: NDArray[np.float64],
    least: NDArray[np.float64],
    d: NDArray[np.float64],
) -> tuple[float, tuple[int, int]]:
    """The largest rho over ordered pairs (d, q) of rows of a reversed kernel, and its pair, from one that is reached.

    ``known`` (n, n): log overlap, at a rho that was no larger, plus what had ``fallen`` by then. ``least`` (n,): of its
    rows. ``d``: zeros, to work in.
    """
    indptr, columns, possible = reversal[0], reversal[1], reversal[5]
    most = s / e
    enough = _enough(s, e, rho, lacking, fallen)
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
                row, there = _row(reversal, j), columns[indptr[j] : indptr[j + 1]]
                excess, overlap = _parts(there, row, d, rho)
                known[i, j] = math.log(overlap) + fallen - _ROUNDING if overlap > 0.0 else -math.inf
                if s * excess > e * rho:
                    improved = improve(there, row, d, s, e, rho)[0]
                    if improved > rho:
                        rho, best = improved, (i, j)
                        enough = _enough(s, e, rho, lacking, fallen)
            lowest = min(lowest, known[i, j])
        least[i] = lowest
        _clear(reversal, i, d)
    return rho, best


@kernel
def _enough(s: float, e: float, rho: float, lacking: float, fallen: float) -> float:
    """The least ``known`` overlap, in logs, with which a pair is passed by."""
    overlap = 1.0 - e * rho / s
    overlap = overlap * (1.0 - lacking) if lacking > 0.0 else overlap - lacking
    return math.log(overlap) + fallen + _ROUNDING if 0.0 < overlap < 1.0 else math.inf


@kernel
def _rho_of(reversal: Any, pair: tuple[int, int], s: float, e: float, d: NDArray[np.float64]) -> float:
    """The best rho of one pair of rows; 0 where one of them is impossible."""
    indptr, columns, possible = reversal[0], reversal[1], reversal[5]
    i, j = pair
    if i == j or not (possible[i] and possible[j]):
        return 0.0
    _spread(reversal, i, d)
    rho = improve(columns[indptr[j] : indptr[j + 1]], _row(reversal, j), d, s, e, 0.0)[0]
    _clear(reversal, i, d)
    return rho


@kernel
def _row(reversal: Any, y: int) -> NDArray[np.float64]:
    """The law of the earlier tuple given the later one's value y, on the column of y: computed once for each tuple."""
    indptr, columns, data, before, after, _, entries, made, now = reversal
    if made[y] != now:
        made[y] = now
        for k in range(indptr[y], indptr[y + 1]):
            entries[k] = before[columns[k]] * data[k] / after[y]
    row: NDArray[np.float64] = entries[indptr[y] : indptr[y + 1]]
    return row


@kernel
def _spread(reversal: Any, y: int, d: NDArray[np.float64]) -> None:
    row, start = _row(reversal, y), reversal[0][y]
    for k in range(len(row)):
        d[reversal[1][start + k]] = row[k]


@kernel
def _clear(reversal: Any, y: int, d: NDArray[np.float64]) -> None:
    indptr, columns = reversal[0], reversal[1]
    for k in range(indptr[y], indptr[y + 1]):
        d[columns[k]] = 0.0


@kernel
def _parts(columns: Any, q: NDArray[np.float64], d: NDArray[np.float64], rho: float) -> tuple[float, float]:
    """sum_x max(q_x - d_x - rho d_x, 0), and the overlap."""
    excess = overlap = 0.0
    for k in range(len(q)):
        below = d[columns[k]]
        limit = rho * below
        excess += max(q[k] - below - limit, 0.0)
        overlap += min(q[k], below + limit)
    return excess, overlap
