"""Smoothing of many people side by side, in floats, and of one in logs.

Numbers of n people at N states are one array (N, n) with a column for each: a sparse matrix moves all of them in one
vectorised loop. Each column is computed by operations of its own, in an order that no other changes, so a person comes
out the same in whatever company, and to rounding alone.

Floats do not hold everything, so a belief, a message or a likelihood that is less than LEAST counts as nothing. Each
column thus smooths all paths but a few, and the least of its `totals` bounds how much those weigh. Where that is too
much, the person is smoothed in logs.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.filter import move_logs, scale_logs, times_sparse
from dphmm.types import BoolArray, FloatArray, IntArray

#: What counts of beliefs that sum to 1, and of messages and likelihoods of at most 1.
LEAST = 1e-120
#: Of states that are equally likely but for this share the lowest is named.
_TIE = 1e-12


class JumpChain(NamedTuple):
    """The moves of people: a matrix in compressed columns, or in compressed rows to go back, and jumps.

    With a probability ``stays`` (n,) a person moves by the matrix, else as ``share`` (N, n), or (0, n), says. Moves end
    where nothing changes by more than ``settled`` of itself; below 0 they never do.
    """

    indptr: Any
    indices: Any
    data: FloatArray
    stays: FloatArray
    share: FloatArray
    settled: float


class Fours(NamedTuple):
    """A sparse matrix in blocks of four rows and one column.

    ``indptr``: the first block of each four rows, a multiple of 4. ``columns`` (b,) are those of the blocks, and
    ``entries`` (b, 4) have one for each of the four rows.
    """

    indptr: IntArray
    columns: IntArray
    entries: FloatArray


class Stops(NamedTuple):
    """The T stops; ``moves`` (T,) lie before each of them, the same for all.

    Somebody has observed there what ``table`` (V, N) has the likelihoods of, at most 1, in row ``which`` (T, n); the
    last row, of ones, is that of nothing.
    """

    table: FloatArray
    which: IntArray
    moves: IntArray


class Said(NamedTuple):
    """The summary of columns (N, n) at T stops.

    Their sums and largest entries (T, n), the sums of points by their weights (T, d, n), and which state (T, n) is
    largest, of ties the lowest.
    """

    totals: FloatArray
    tops: FloatArray
    means: FloatArray
    states: IntArray


@kernel
def move(chain: JumpChain, gains: FloatArray, rows: FloatArray, out: FloatArray) -> None:
    """Fill ``out`` (N, n) with columns of ``rows`` (N, n) times a matrix, with gains times ``stays`` plus these.

    ``gains`` are those of each state, (N, n), or the same for all, (1, n), or none, (0, n).
    """
    n = rows.shape[1]
    if n == 1:
        # The same sums in less than half the time.
        now = out.reshape(out.size)
        times_sparse(chain, rows.reshape(rows.size), now)
        for j in range(len(now)):
            now[j] = now[j] * chain.stays[0] + gains[min(j, len(gains) - 1), 0] if len(gains) > 0 else now[j]
            now[j] = now[j] if now[j] >= LEAST else 0.0
        return
    for j in range(len(out)):
        sums, first, last = out[j], chain.indptr[j], chain.indptr[j + 1]
        fours = first + (last - first) // 4 * 4
        sums[:] = 0.0
        for e in range(first, fours, 4):
            p, q, r, s = chain.data[e], chain.data[e + 1], chain.data[e + 2], chain.data[e + 3]
            a, b = rows[chain.indices[e]], rows[chain.indices[e + 1]]
            c, d = rows[chain.indices[e + 2]], rows[chain.indices[e + 3]]
            for k in range(n):
                sums[k] += (p * a[k] + q * b[k]) + (r * c[k] + s * d[k])
        for e in range(fours, last):
            p, a = chain.data[e], rows[chain.indices[e]]
            for k in range(n):
                sums[k] += p * a[k]
        if len(gains) > 0:
            gained = gains[min(j, len(gains) - 1)]
            for k in range(n):
                sums[k] = sums[k] * chain.stays[k] + gained[k]
        for k in range(n):
            sums[k] = sums[k] if sums[k] >= LEAST else 0.0


@kernel
def times_fours(matrix: Fours, rows: FloatArray, out: FloatArray) -> None:
    """Fill ``out`` (N, 16) with a matrix times ``rows`` (N, 16), in less than half the time of `move`.

    Each row is read once for four sums, four rows at a time.
    """
    sums = np.empty(64)
    for four in range(len(matrix.indptr) - 1):
        sums[:] = 0.0
        for e in range(matrix.indptr[four], matrix.indptr[four + 1], 4):
            a, b = rows[matrix.columns[e]], rows[matrix.columns[e + 1]]
            c, d = rows[matrix.columns[e + 2]], rows[matrix.columns[e + 3]]
            p, q, r, s = matrix.entries[e], matrix.entries[e + 1], matrix.entries[e + 2], matrix.entries[e + 3]
            p0, q0, r0, s0 = p[0], q[0], r[0], s[0]
            p1, q1, r1, s1 = p[1], q[1], r[1], s[1]
            p2, q2, r2, s2 = p[2], q[2], r[2], s[2]
            p3, q3, r3, s3 = p[3], q[3], r[3], s[3]
            for k in range(16):
                # Named, or each of them is read four times.
                w, x, y, z = a[k], b[k], c[k], d[k]
                sums[k] += p0 * w + q0 * x + r0 * y + s0 * z
                sums[16 + k] += p1 * w + q1 * x + r1 * y + s1 * z
                sums[32 + k] += p2 * w + q2 * x + r2 * y + s2 * z
                sums[48 + k] += p3 * w + q3 * x + r3 * y + s3 * z
        for j in range(4 * four, min(4 * four + 4, len(out))):
            for k in range(16):
                value = sums[16 * (j - 4 * four) + k]
                out[j, k] = value if value >= LEAST else 0.0


@kernel
def move_many(
    chain: JumpChain,
    back: bool,
    moves: int,
    scales: FloatArray,
    rows: FloatArray,
    spare: FloatArray,
    out: FloatArray,
) -> None:
    """Fill ``out`` with ``rows`` times ``scales`` (n,) moved so many times: distributions ahead, or messages back.

    Whether they have settled is looked for at every eighth move.
    """
    gains = chain.share
    # The last of all moves ends in ``out``.
    before, after = (spare, out) if moves % 2 == 1 else (out, spare)
    for s in range(len(rows)):
        for k in range(len(scales)):
            before[s, k] = rows[s, k] * scales[k]
    for moved in range(moves):
        if back and len(chain.share) > 0:
            gains = np.zeros((1, len(scales)))
            for s in range(len(before)):
                gains[0] += chain.share[s] * before[s]
        move(chain, gains, before, after)
        if chain.settled >= 0.0 and moved % 8 == 1 and np.all(np.abs(after - before) <= chain.settled * before):
            out[:] = after
            return
        before, after = after, before


@kernel
def forward(
    chain: JumpChain,
    stops: Stops,
    span: tuple[int, int],
    row: FloatArray,
    scales: FloatArray,
    alpha: FloatArray,
    sums: FloatArray,
) -> None:
    """Filter stops: ``alpha`` (T, N, n) are the beliefs given all observations so far, times ``sums`` (T, n).

    ``span`` (first, last): the stops that are moved to so. ``row`` (N, n) times ``scales`` (n,) is the belief before
    the first of the moves, and in the end that given the last stop. A sum of 0: no possible state allows what was
    observed.
    """
    n, spare, seen, nothing = row.shape[1], np.empty_like(row), np.empty(row.shape[1]), len(stops.table) - 1
    before = row
    for t in range(*span):
        belief, total = alpha[t], sums[t]
        move_many(chain, False, stops.moves[t], scales, before, spare, belief)
        total[:] = 0.0
        for s in range(len(belief)):
            for k in range(n):
                seen[k] = stops.table[stops.which[t, k], s]
            at = belief[s]
            for k in range(n):
                at[k] *= seen[k]
                total[k] += at[k]
        # Who has observed nothing stops for the others only, and is not changed by that.
        for k in range(n):
            scales[k] = (1.0 if stops.which[t, k] == nothing else 1.0 / total[k]) if total[k] > 0.0 else 0.0
        before = belief
    row[:] = before


@kernel
def describe(at: FloatArray, points: FloatArray, said: Said, t: int) -> None:
    """Fill in the summary of the columns of ``at`` (N, n), whose states have points (N, d)."""
    total, top, mean, state = said.totals[t], said.tops[t], said.means[t], said.states[t]
    total[:], top[:], mean[:], state[:] = 0.0, 0.0, 0.0, 0
    for s in range(len(at)):
        row = at[s]
        for k in range(len(row)):
            total[k] += row[k]
            top[k] = max(top[k], row[k])
        for j in range(points.shape[1]):
            place, sums = points[s, j], mean[j]
            for k in range(len(row)):
                sums[k] += row[k] * place
    for s in range(len(at) - 1, -1, -1):
        row = at[s]
        for k in range(len(row)):
            state[k] = s if row[k] >= top[k] * (1.0 - _TIE) else state[k]


@kernel
def backward(
    chain: JumpChain,
    stops: Stops,
    span: tuple[int, int],
    ends: IntArray,
    observed: BoolArray,
    points: FloatArray,
    later: FloatArray,
    alpha: FloatArray,
    said: Said,
    entered: FloatArray,
) -> None:
    """Smooth stops that `forward` has filtered: ``alpha`` becomes marginals given all observations, times their totals.

    ``later`` (N, n) is what observations after the last stop say of its states, at most 1, and in the end what those
    here and later say of the states before the first of the moves; who ends at stop ``ends`` (n,) has observed nothing
    after it. To ``entered`` (N, n), or (0, n), is added how often each state is expected to have been entered by a jump
    in the last move before an ``observed`` (T, n) stop.
    """
    n, spare, seen, nothing = later.shape[1], np.empty_like(later), np.empty(later.shape[1]), len(stops.table) - 1
    scales, product = np.empty(n), np.empty_like(later)
    for t in range(span[1] - 1, span[0] - 1, -1):
        for k in range(n):
            if ends[k] == t:
                later[:, k] = 1.0
        scales[:] = 0.0
        for s in range(len(later)):
            at, message, both = alpha[t, s], later[s], product[s]
            for k in range(n):
                seen[k] = stops.table[stops.which[t, k], s]
            for k in range(n):
                at[k] *= message[k]
                both[k] = message[k] * seen[k]
                scales[k] += both[k]
        describe(alpha[t], points, said, t)
        if len(entered) > 0 and len(chain.share) > 0 and stops.moves[t] > 0:
            for k in range(n):
                seen[k] = 1.0 / said.totals[t, k] if observed[t, k] and said.totals[t, k] > 0.0 else 0.0
            for s in range(len(entered)):
                entered[s] += chain.share[s] * product[s] * seen
        for k in range(n):
            scales[k] = (1.0 if stops.which[t, k] == nothing else 1.0 / scales[k]) if scales[k] > 0.0 else 0.0
        move_many(chain, True, stops.moves[t], scales, product, spare, later)


@kernel
def forward_logs(
    chain: JumpChain, stops: Stops, span: tuple[int, int], row: FloatArray, alpha: FloatArray, sums: FloatArray
) -> int:
    """`forward` of one person: the table, ``row`` (N, 1), ``alpha`` (T, N, 1), of sum 1, and ``sums`` are logs.

    Returns -1, or the first stop where no possible state allows what was observed.
    """
    now, share = row.reshape(row.size), chain.share.reshape(chain.share.size)
    for t in range(*span):
        move_logs(chain, share[:0], share, chain.settled, stops.moves[t], now)
        now += stops.table[stops.which[t, 0]]
        sums[t, 0] = scale_logs(now)
        if sums[t, 0] == -math.inf:
            return t
        alpha[t] = row
    return -1


@kernel
def backward_logs(
    chain: JumpChain,
    stops: Stops,
    span: tuple[int, int],
    sums: FloatArray,
    observed: BoolArray,
    points: FloatArray,
    later: FloatArray,
    alpha: FloatArray,
    said: Said,
    entered: FloatArray,
) -> None:
    """`backward` of one person whom `forward_logs` has filtered: the table, ``later`` and ``alpha`` are logs.

    ``alpha`` becomes marginals, of sum 1.
    """
    now, share = later.reshape(later.size), chain.share.reshape(chain.share.size)
    gains = np.ones(len(share))
    for t in range(span[1] - 1, span[0] - 1, -1):
        at = alpha[t].reshape(len(now))
        at += now
        total = scale_logs(at)
        at[:] = np.exp(at)
        describe(alpha[t], points, said, t)
        now += stops.table[stops.which[t, 0]]
        if len(entered) > 0 and len(share) > 0 and stops.moves[t] > 0 and observed[t, 0]:
            entered[:, 0] += share * np.exp(now - total - sums[t, 0])
        scale_logs(now)
        move_logs(chain, share, gains, chain.settled, stops.moves[t], now)


@kernel
def scaled_likelihoods(values: FloatArray, logged: BoolArray, out: FloatArray, factors: FloatArray) -> None:
    """Likelihoods (V, N) as `forward` reads them, each row divided by its largest; the logs of these in ``factors``."""
    for v in range(len(values)):
        row, shares, top = values[v], out[v], np.max(values[v])
        inverse = 1.0 / top if top > 0.0 else 0.0
        factors[v] = top if logged[v] else (math.log(top) if top > 0.0 else -math.inf)
        for s in range(len(row)):
            share = math.exp(row[s] - top) if logged[v] else row[s] * inverse
            shares[s] = share if share >= LEAST else 0.0
