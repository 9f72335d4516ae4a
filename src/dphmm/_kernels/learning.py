"""The E-step of learning: expected moves of many people side by side, each move in a slot of its own matrix.

Numbers of n people at N states are one array (N, n). People beside each other in one slot are one loop, fastest if
they are a multiple of `BESIDE`. Sums over people are made in the order of the compiled code, over steps from the last.
So equal observations give equal bytes on one kind of processor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dphmm._kernels.compiled import kernel, summing_kernel
from dphmm.types import FloatArray, IntArray

#: Numbers that a loop over people takes in whole runs.
BESIDE = 16


class SlotMoves(NamedTuple):
    """K matrices of one structure, in compressed rows ``ahead`` (K, m), and in compressed columns ``back`` (K, m).

    With probability ``stays`` a move is one of the matrix; ``share`` (N,) is that of a jump into each state.
    """

    indptr: IntArray
    indices: IntArray
    ahead: FloatArray
    column_indptr: IntArray
    column_indices: IntArray
    back: FloatArray
    stays: float
    share: FloatArray


@kernel
def _alike(slots: IntArray, first: int) -> int:
    """The end of the run of people in one slot that begins with ``first``."""
    end = first + 1
    while end < len(slots) and slots[end] == slots[first]:
        end += 1
    return end


@kernel
def _come(
    moves: SlotMoves, j: int, chances: FloatArray, before: FloatArray, belief: FloatArray, first: int, end: int
) -> None:
    """Add the chances that come into state j by stored moves: ``belief`` (n,) of people from ``first`` to ``end``."""
    row = belief[first:end]
    for e in range(moves.column_indptr[j], moves.column_indptr[j + 1]):
        come, chance = before[moves.column_indices[e]][first:end], chances[e]
        for k in range(len(row)):
            row[k] += chance * come[k]


@kernel
def forward(
    moves: SlotMoves, slots: IntArray, table: FloatArray, which: IntArray, alpha: FloatArray, sums: FloatArray
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
            now[:] = 0.0
            first = 0
            while first < n:
                slot, end = slots[t - 1, first], _alike(slots[t - 1], first)
                for j in range(n_states):
                    _come(moves, j, moves.back[slot], alpha[t - 1], now[j], first, end)
                first = end
            for j in range(n_states):
                row = now[j]
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


@summing_kernel
def _passed(
    moves: SlotMoves,
    i: int,
    chances: FloatArray,
    before: FloatArray,
    gain: FloatArray,
    message: FloatArray,
    counts: FloatArray,
    first: int,
    end: int,
) -> None:
    """Stored moves from state i: what later steps tell, into ``message`` (n,), of people from ``first`` up to ``end``.

    The expected number of each move is added to ``counts`` (m,). ``before`` (n,), ``gain`` (N, n).
    """
    belief, row = before[first:end], message[first:end]
    for e in range(moves.indptr[i], moves.indptr[i + 1]):
        come, chance, total = gain[moves.indices[e]][first:end], chances[e], 0.0
        for k in range(len(row)):
            total += belief[k] * come[k]
            row[k] += chance * come[k]
        counts[e] += chance * total


@kernel
def backward(
    moves: SlotMoves,
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
    jumped = np.empty(n)
    for t in range(steps - 1, -1, -1):
        for k in range(n):
            if ends[k] == t:
                later[:, k] = 1.0
        jumped[:] = 0.0
        for s in range(n_states):
            row, at, message = gain[s], alpha[t, s], later[s]
            for k in range(n):
                seen = t <= ends[k]
                later_on = message[k] * table[which[t, k], s] / sums[t, k] if seen else 0.0
                at[k] = at[k] * message[k] if seen else at[k]
                jumped[k] += moves.share[s] * later_on
                row[k] = moves.stays * later_on
        if t == 0:
            starts += alpha[0]
            return
        for i in range(n_states):
            later[i] = jumped
        first = 0
        while first < n:
            slot, end = slots[t - 1, first], _alike(slots[t - 1], first)
            for i in range(n_states):
                _passed(moves, i, moves.ahead[slot], alpha[t - 1, i], gain, later[i], counts[slot], first, end)
            first = end


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
    weights = np.empty(len(public))
    for slot in range(len(totals)):
        factor, beside, total_of = factors[slot], others[slot], expected[slot]
        for i in range(totals.shape[1]):
            first, last, total = starts[i], starts[i + 1], 0.0
            if totals[slot, i] == 0.0:
                continue
            for e in range(first, last):
                weights[e] = public[e] * factor[kind[e]] * beside[other[e]]
                total += weights[e]
            scale = totals[slot, i] / total
            for e in range(first, last):
                total_of[kind[e]] += scale * weights[e]
