"""The E-step of learning: expected moves of many people side by side, each move in a slot of its own matrix.

Numbers of n people at N states are one array (N, n). Sums are made in one order: people in runs of `BESIDE` where all
are in one slot, which is fastest, else one by one; steps from the last. So equal observations give equal bytes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray

#: People that are added up side by side.
BESIDE = 8


class Moves(NamedTuple):
    """K matrices of one structure, in compressed rows ``ahead`` (K, m); in columns entry e is row entry ``column[e]``.

    With probability ``stays`` a move is one of the matrix; ``share`` (N,) is that of a jump into each state.
    """

    indptr: IntArray
    indices: IntArray
    ahead: FloatArray
    column_indptr: IntArray
    column_indices: IntArray
    column: IntArray
    stays: float
    share: FloatArray


@kernel
def _slot(slots: IntArray) -> int:
    """The slot that all (n,) are in; -1 of several."""
    for k in range(1, len(slots)):
        if slots[k] != slots[0]:
            return -1
    return int(slots[0])


@kernel
def forward(
    moves: Moves, slots: IntArray, table: FloatArray, which: IntArray, alpha: FloatArray, sums: FloatArray
) -> None:
    """Filter T steps of a group: ``alpha`` (T, N, n), whose first row is the belief before step 1, and is overwritten.

    ``slots`` (T - 1, n): of each one's move from each step. ``table`` (V, N): likelihoods, its last row ones; ``which``
    (T, n): the row of each step. ``sums`` (T, n): by what each belief was divided; their logs add up to the
    log-likelihood.
    """
    steps, n_states, n = alpha.shape
    for t in range(steps):
        now = alpha[t]
        if t > 0:
            before, matrix, slot = alpha[t - 1], slots[t - 1], _slot(slots[t - 1])
            for j in range(n_states):
                row = now[j]
                row[:] = 0.0
                for e in range(moves.column_indptr[j], moves.column_indptr[j + 1]):
                    come = before[moves.column_indices[e]]
                    if slot >= 0:
                        chance = moves.ahead[slot, moves.column[e]]
                        for k in range(n):
                            row[k] += chance * come[k]
                    else:
                        for k in range(n):
                            row[k] += moves.ahead[matrix[k], moves.column[e]] * come[k]
                for k in range(n):
                    row[k] = moves.stays * row[k] + moves.share[j]
        total = sums[t]
        total[:] = 0.0
        for j in range(n_states):
            row = now[j]
            for k in range(n):
                row[k] *= table[which[t, k], j]
                total[k] += row[k]
        for j in range(n_states):
            row = now[j]
            for k in range(n):
                row[k] /= total[k]


@kernel
def backward(
    moves: Moves,
    slots: IntArray,
    table: FloatArray,
    which: IntArray,
    ends: IntArray,
    alpha: FloatArray,
    sums: FloatArray,
    counts: FloatArray,
    starts: FloatArray,
) -> None:
    """Add the expected moves of a group that `forward` has filtered to ``counts`` (K, m).

    To ``starts`` (N, n) are added the laws of each person's first state. ``alpha`` becomes the marginals given all
    observations up to the step ``ends`` (n,).
    """
    steps, n_states, n = alpha.shape
    later, gain = np.empty((n_states, n)), np.empty((n_states, n))
    sums_beside, jumped = np.zeros(BESIDE), np.empty(n)
    for t in range(steps - 1, -1, -1):
        for k in range(n):
            if ends[k] == t:
                later[:, k] = 1.0
        jumped[:] = 0.0
        for s in range(n_states):
            row, at, message = gain[s], alpha[t, s], later[s]
            for k in range(n):
                seen = t <= ends[k]
                row[k] = message[k] * table[which[t, k], s] / sums[t, k] if seen else 0.0
                at[k] = at[k] * message[k] if seen else at[k]
                jumped[k] += moves.share[s] * row[k]
        if t == 0:
            starts += alpha[0]
            return
        matrix, slot = slots[t - 1], _slot(slots[t - 1])
        for i in range(n_states):
            before, message = alpha[t - 1, i], later[i]
            message[:] = 0.0
            for e in range(moves.indptr[i], moves.indptr[i + 1]):
                come = gain[moves.indices[e]]
                if slot < 0:
                    for k in range(n):
                        chance = moves.ahead[matrix[k], e]
                        counts[matrix[k], e] += chance * moves.stays * (before[k] * come[k])
                        message[k] += chance * come[k]
                    continue
                chance = moves.ahead[slot, e]
                sums_beside[:] = 0.0
                whole = n // BESIDE * BESIDE
                for first in range(0, whole, BESIDE):
                    for k in range(BESIDE):
                        sums_beside[k] += before[first + k] * come[first + k]
                for k in range(whole, n):
                    sums_beside[k - whole] += before[k] * come[k]
                total = 0.0
                for k in range(BESIDE):
                    total += sums_beside[k]
                counts[slot, e] += chance * moves.stays * total
                for k in range(n):
                    message[k] += chance * come[k]
            for k in range(n):
                message[k] = moves.stays * message[k] + jumped[k]


@kernel
def foreseen(
    public: FloatArray,
    starts: IntArray,
    kind: IntArray,
    other: IntArray,
    factors: FloatArray,
    others: FloatArray,
    totals: FloatArray,
    expected: FloatArray,
) -> None:
    """Add to ``expected`` (K, c) the expected number of each kind, of the moves from each state, ``totals`` (K, N).

    Stored moves (m,) of state i begin at ``starts[i]``; ``starts[N]`` is m. A move has the public probability times
    ``factors`` (K, c) of its ``kind`` times ``others`` (K, d) of its ``other`` kind, divided by the sum of its row.
    """
    for slot in range(len(totals)):
        for i in range(totals.shape[1]):
            first, last, total = starts[i], starts[i + 1], 0.0
            if totals[slot, i] == 0.0:
                continue
            for e in range(first, last):
                total += public[e] * factors[slot, kind[e]] * others[slot, other[e]]
            scale = totals[slot, i] / total
            for e in range(first, last):
                expected[slot, kind[e]] += scale * public[e] * factors[slot, kind[e]] * others[slot, other[e]]
