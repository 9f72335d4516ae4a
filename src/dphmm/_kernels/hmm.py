"""Loops of hidden Markov models: training, with expected counts of many records at once, and paths of hidden states.

There are S states and V symbols; ``likelihood`` (V, S) holds in row v the probability of symbol v in every state.
Records in order of falling length stand side by side: all first symbols, then all second ones, and so on, one row each.
``widths[t]`` records are more than t long, so the rows of position t begin at ``widths[:t].sum()``. Long records are
worked on in blocks of positions. Forward rows are scaled to sum to 1, and backward rows by the same factors, so their
product is the posterior. Where floats do not hold a row, the record goes through `dphmm._kernels.filter` by itself.
Many at once, and moves between all pairs of states, are why this forward pass is not the filter's: one row at a time
took 2.9 to 17 times as long (``python benchmarks/forward.py``).

The noisy fit needs integers that depend on one record and the parameters alone (`add_records`): it works on one record
after another, so every sum has one order of additions. They are at least 0, and each block sums to at most its limit,
whatever floats did. The sensitivity of a noisy iteration rests on that.

Paths: the likeliest one (Viterbi, in logs), one drawn from the posterior, and simulated ones.
`best_paths` is for records of symbols, one transition apart, with a dense or sparse matrix. `viterbi` is for a sparse
chain whose observations lie any number of moves apart: the path is the likeliest over all moves, those between two
observations too.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.filter import scale_logs, times_logs, times_sparse
from dphmm.types import FloatArray, IntArray, Predecessors

#: A backward entry above this may belong to a state whose forward entry has underflowed: logs must take over.
LARGEST = 1e290
#: A forward row whose sum is below this has lost terms to underflow, if it is possible at all.
SMALLEST = 1e-290
#: From this many rows on, a matrix product is worth its call.
_FEW_ROWS = 2


class Matrix(NamedTuple):
    """A square matrix: ``dense`` (S, S), or that of shape (0, 0) and compressed columns or rows."""

    dense: FloatArray
    indptr: Any
    indices: Any
    data: FloatArray


@kernel
def forward_records(
    predicted: FloatArray,
    transition: Matrix,
    likelihood: FloatArray,
    symbols: IntArray,
    widths: IntArray,
    alpha: FloatArray,
    scales: FloatArray,
    logs: FloatArray,
) -> bool:
    """Fill ``alpha`` (rows, S) from ``predicted`` (records, S), the distributions before the first symbols here.

    ``transition`` is dense, or compressed columns. Logs of the scales are added to ``logs`` (records,), if it is not
    empty. False if a symbol is impossible, or too unlikely for floats.
    """
    n, row, dense = likelihood.shape[1], 0, transition.dense
    for t in range(len(widths)):
        width = widths[t]
        if t == 0:
            alpha[:width] = predicted[:width]
        elif width == 1 and len(dense) > 0:
            times_dense(alpha[row - widths[t - 1]], dense, alpha[row])
        else:
            times(alpha, row - widths[t - 1], width, transition, alpha, row)
        for r in range(row, row + width):
            symbol, total = symbols[r], 0.0
            for j in range(n):
                alpha[r, j] *= likelihood[symbol, j]
                total += alpha[r, j]
            if not total >= SMALLEST:
                return False
            scales[r] = total
            inverse = 1.0 / total
            for j in range(n):
                alpha[r, j] *= inverse
        if len(logs) > 0:
            for k in range(width):
                logs[k] += math.log(scales[row + k])
        row += width
    return True


@kernel
def backward_records(
    transposed: Matrix,
    likelihood: FloatArray,
    symbols: IntArray,
    widths: IntArray,
    scales: FloatArray,
    weights: FloatArray,
    follows: FloatArray,
    n_follow: int,
    beta: FloatArray,
    after: FloatArray,
) -> bool:
    """Fill ``beta`` (rows, S) and ``after``: likelihood·beta/scale of the record's next position, 0 where it ends.

    ``transposed`` is the transposed transition matrix, or its compressed columns. A record's last row of beta is its
    weight: every count is linear in these rows. ``follows`` (records, S) holds what comes after the last position here,
    for the ``n_follow`` records that go on, and 0 for the others; in the end, what comes after the position before
    these. False if floats cannot hold a row.
    """
    n, row, held, dense = likelihood.shape[1], len(symbols), True, transposed.dense
    for t in range(len(widths) - 1, -1, -1):
        width = widths[t]
        row -= width
        if n_follow == 1 and len(dense) > 0:
            times_dense(follows[0], dense, beta[row])
        elif n_follow > 0:
            times(follows, 0, n_follow, transposed, beta, row)
        for k in range(n_follow, width):
            for j in range(n):
                beta[row + k, j] = weights[k]
        for k in range(width):
            r = row + k
            symbol, inverse = symbols[r], 1.0 / scales[r]
            for j in range(n):
                after[r, j] = follows[k, j]
                follows[k, j] = likelihood[symbol, j] * beta[r, j] * inverse
            for j in range(n):
                held &= beta[r, j] < LARGEST
        n_follow = width
    return held


@kernel
def times(rows: FloatArray, first: int, count: int, matrix: Matrix, out: FloatArray, out_first: int) -> None:
    """Rows first, first + 1, .. times a matrix, into those of ``out``: by BLAS where many are dense."""
    if len(matrix.dense) == 0:
        # Two rows at once, each with the sums of one: a fifth less time.
        pairs = count // 2 * 2
        for k in range(0, pairs, 2):
            for j in range(rows.shape[1]):
                a = b = 0.0
                for e in range(matrix.indptr[j], matrix.indptr[j + 1]):
                    a += rows[first + k, matrix.indices[e]] * matrix.data[e]
                    b += rows[first + k + 1, matrix.indices[e]] * matrix.data[e]
                out[out_first + k, j], out[out_first + k + 1, j] = a, b
        for k in range(pairs, count):
            times_sparse(matrix, rows[first + k], out[out_first + k])
    elif count >= _FEW_ROWS:
        np.dot(rows[first : first + count], matrix.dense, out[out_first : out_first + count])
    else:
        for k in range(count):
            times_dense(rows[first + k], matrix.dense, out[out_first + k])


@kernel
def times_dense(row: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """``out`` = row · matrix, by four rows of the matrix at a time: ``out`` is read and written a quarter as often."""
    n, whole = len(out), len(row) // 4 * 4
    for j in range(n):
        out[j] = 0.0
    for i in range(0, whole, 4):
        a, b, c, d = row[i], row[i + 1], row[i + 2], row[i + 3]
        for j in range(n):
            out[j] += (a * matrix[i, j] + b * matrix[i + 1, j]) + (c * matrix[i + 2, j] + d * matrix[i + 3, j])
    for i in range(whole, len(row)):
        a = row[i]
        for j in range(n):
            out[j] += a * matrix[i, j]


@kernel
def add_transitions(rows: Matrix, alpha: FloatArray, after: FloatArray, pairs: FloatArray) -> None:
    """Add alpha'·after at the stored entries of a sparse matrix, given by compressed rows, to ``pairs`` (E,)."""
    for r in range(len(alpha)):
        ahead, back = alpha[r], after[r]
        for i in range(len(ahead)):
            mass = ahead[i]
            for e in range(rows.indptr[i], rows.indptr[i + 1]):
                pairs[e] += mass * back[rows.indices[e]]


@kernel
def add_emissions(symbols: IntArray, alpha: FloatArray, beta: FloatArray, emissions: FloatArray) -> None:
    """Add the posteriors alpha·beta of every row to its symbol's in ``emissions`` (V, S)."""
    for r in range(len(symbols)):
        counts, ahead, back = emissions[symbols[r]], alpha[r], beta[r]
        for j in range(len(counts)):
            counts[j] += ahead[j] * back[j]


@kernel
def smooth_record(
    rows: Matrix,
    likelihood: FloatArray,
    symbols: IntArray,
    alpha: FloatArray,
    posteriors: FloatArray,
    expected: FloatArray,
) -> None:
    """Fill ``posteriors`` (T, S) of a record that `smoothing.forward_logs` has filtered, and add expected transitions.

    ``rows`` are the compressed rows of the transition matrix; ``expected`` (E,) has a number for each of their entries.
    ``likelihood`` (V, S) is in logs.
    """
    n, none = alpha.shape[1], np.zeros(0)
    later, spare, terms = np.zeros(n), np.empty(n), np.empty(len(expected))
    for t in range(len(symbols) - 1, -1, -1):
        spare[:] = alpha[t] + later
        scale_logs(spare)
        posteriors[t] = np.exp(spare)
        if t > 0:
            later += likelihood[symbols[t]]
            scale_logs(later)
            _add_pairs(rows, alpha[t - 1], later, terms, expected)
            times_logs(rows, none, none, later, spare)
            later[:] = spare


@kernel
def _add_pairs(rows: Matrix, ahead: FloatArray, later: FloatArray, terms: FloatArray, expected: FloatArray) -> None:
    """Add the distribution of one transition over the stored entries, from logs of the states before and after it."""
    top, whole = -math.inf, 0.0
    for i in range(len(ahead)):
        for e in range(rows.indptr[i], rows.indptr[i + 1]):
            terms[e] = ahead[i] + later[rows.indices[e]] + (math.log(rows.data[e]) if rows.data[e] > 0.0 else -math.inf)
            top = max(top, terms[e])
    for e in range(len(terms)):
        terms[e] = math.exp(terms[e] - top)
        whole += terms[e]
    for e in range(len(terms)):
        expected[e] += terms[e] / whole


@kernel
def add_whole(values: FloatArray, steps: float, limit: int, totals: IntArray) -> None:
    """Add floor(values·steps) to ``totals``, but in all at most ``limit``: more is cut.

    Values that are no numbers, or negative, count as 0.
    """
    left = limit
    for i in range(len(values)):
        scaled = values[i] * steps
        taken = 0
        if scaled >= left:
            taken = left
        elif scaled >= 1.0:
            taken = int(scaled)
        totals[i] += taken
        left -= taken


@kernel
def add_records(
    initial: FloatArray,
    transition: FloatArray,
    likelihood: FloatArray,
    symbols: IntArray,
    bounds: IntArray,
    steps: float,
    limits: IntArray,
    starts: IntArray,
    moves: IntArray,
    emissions: IntArray,
) -> None:
    """Add the expected counts of every record ``symbols[bounds[k]:bounds[k + 1]]``, in units of 1/steps.

    ``starts`` (S,), ``moves`` (S·S,) and ``emissions`` (V·S,) are the blocks, ``limits`` (3,) their bounds. A record
    that is impossible under the parameters, or beyond the range of floats, adds nothing.
    """
    n, n_symbols, longest = len(initial), likelihood.shape[0], 0
    for k in range(len(bounds) - 1):
        longest = max(longest, bounds[k + 1] - bounds[k])
    no_index, none = np.zeros(0, np.int64), np.zeros(0)
    forward = Matrix(transition, no_index, no_index, none)
    backward = Matrix(np.ascontiguousarray(transition.T), no_index, no_index, none)
    alpha, beta, after = np.empty((longest, n)), np.empty((longest, n)), np.empty((longest, n))
    scales, widths, weight = np.empty(longest), np.ones(longest, np.int64), np.ones(1)
    first, follows = initial.copy().reshape(1, n), np.empty((1, n))
    s, a, e = np.empty(n), np.empty((n, n)), np.empty((n_symbols, n))
    for k in range(len(bounds) - 1):
        record = symbols[bounds[k] : bounds[k + 1]]
        m = len(record)
        ahead, back, next_rows, width = alpha[:m], beta[:m], after[:m], widths[:m]
        follows[:] = 0.0
        if not forward_records(first, forward, likelihood, record, width, ahead, scales[:m], none):
            continue
        if not backward_records(backward, likelihood, record, width, scales[:m], weight, follows, 0, back, next_rows):
            continue
        s[:] = 0.0
        a[:] = 0.0
        e[:] = 0.0
        _add_counts(transition, record, ahead, back, next_rows, s, a, e)
        add_whole(s, steps, limits[0], starts)
        add_whole(a.ravel(), steps, limits[1], moves)
        add_whole(e.ravel(), steps, limits[2], emissions)


@kernel
def _add_counts(
    transition: FloatArray,
    symbols: IntArray,
    alpha: FloatArray,
    beta: FloatArray,
    after: FloatArray,
    starts: FloatArray,
    moves: FloatArray,
    emissions: FloatArray,
) -> None:
    """Add the expected counts of one record to starts (S,), moves (S, S) and emissions (V, S)."""
    n = alpha.shape[1]
    pairs = np.zeros((n, n))
    for t in range(len(symbols) - 1):
        ahead, back = alpha[t], after[t]
        for i in range(n):
            mass, sums = ahead[i], pairs[i]
            for j in range(n):
                sums[j] += mass * back[j]
    for i in range(n):
        starts[i] += alpha[0, i] * beta[0, i]
        for j in range(n):
            moves[i, j] += pairs[i, j] * transition[i, j]
    add_emissions(symbols, alpha, beta, emissions)


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
    reached, previous = np.empty(n), np.empty(n, dtype=np.int64)
    for t in range(len(symbols)):
        if t >= first:
            reached[:] = -math.inf
            previous[:] = 0
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
                        previous[j] = i if better else previous[j]
                else:
                    for e in range(moves.indptr[i], moves.indptr[i + 1]):
                        j = moves.indices[e]
                        if value + moves.data[e] > reached[j]:
                            reached[j] = value + moves.data[e]
                            previous[j] = i
            best[:] = reached
            pointers[t] = previous
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
    pointers: Any,
    path: IntArray,
    logs: FloatArray,
) -> int:
    """The likeliest paths of all sequences, each symbols ends[k] to ends[k + 1], in pieces that ``pointers`` can hold.

    Returns -1, or the place in ``symbols`` of a symbol that no path allows.
    """
    longest = np.max(np.diff(ends))
    starts = np.empty((-(-longest // len(pointers)), len(initial)))
    for k in range(len(logs)):
        obs, best = symbols[ends[k] : ends[k + 1]], initial.copy()
        cuts = np.arange(0, len(obs), len(pointers))
        for p, first in enumerate(cuts):
            starts[p] = best
            refused = best_paths(best, moves, likelihood, obs[first : first + len(pointers)], int(p == 0), pointers)
            if refused >= 0:
                return int(ends[k] + first + refused)
        state = int(np.argmax(best))
        logs[k] = best[state]
        for p in range(len(cuts) - 1, -1, -1):
            piece = slice(cuts[p], cuts[p] + len(pointers))
            # The last piece's pointers are there still.
            if p < len(cuts) - 1:
                best_paths(starts[p], moves, likelihood, obs[piece], int(p == 0), pointers)
            state = trace(pointers, state, path[ends[k] : ends[k + 1]][piece])
    return -1


@kernel
def observe(row: FloatArray, weights: FloatArray) -> float:
    """A row of logs made likelier by an observation, in place, its largest entry brought to 0; the largest it was."""
    top = -math.inf
    for s in range(len(row)):
        row[s] += weights[s]
        top = max(top, row[s])
    if top > -math.inf:
        for s in range(len(row)):
            row[s] -= top
    return top


@kernel
def viterbi(
    matrix: Predecessors,
    settled: float,
    rows: FloatArray,
    which: IntArray,
    moves: IntArray,
    row: FloatArray,
    moved: int,
    pointers: Any,
    cycles: IntArray,
    ends: IntArray,
) -> tuple[int, int, int]:
    """Likeliest paths move by move: at most len(pointers) moves, or to the last observation.

    ``rows`` (V, N) are logs of likelihoods; an observation has that of ``which`` (T,), or -1 for none, after so many
    ``moves`` (T,). ``row`` (N,) are logs of the likeliest path to each state, the largest 0; ``moved`` of the first
    observation's moves are done. Data and share of ``matrix`` are logs. Of each move, ``pointers`` (k, N) are the
    states before, and ``ends`` the observation that it led to or -1. In a long gap rows come again after some moves,
    which Brent's search finds: then ``cycles`` (k, 2) says that the last so many moves are taken so many times more.
    Returns the moves recorded, the observations reached, and ``moved`` of the next: -1 where no path allows that one.
    """
    n, at, count, jump = len(row), 0, 0, matrix.share
    spare, saved = np.empty_like(row), row.copy()
    saved_at, power = 0, 1
    while at < len(which) and count < len(pointers):
        top = -math.inf
        likeliest = np.int64(np.argmax(row)) if len(jump) > 0 else np.int64(0)
        for j in range(n):
            best, before = -math.inf, np.int64(-1)
            for k in range(matrix.indptr[j], matrix.indptr[j + 1]):
                candidate = row[matrix.indices[k]] + matrix.data[k]
                if candidate > best:
                    best, before = candidate, np.int64(matrix.indices[k])
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
            if which[at] >= 0 and observe(row, rows[which[at]]) == -math.inf:
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
