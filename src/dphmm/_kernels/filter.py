"""The one filter of a Markov chain: predict, condition, and what later observations say, in floats and in logs.

A *row* (N,) is a distribution over states, or what observations say of each. In floats it is 0 where a state is
impossible and nowhere else below TRUSTED; each function says when that no longer holds, and logs take over. In logs
(``logged``) it is -inf where a state is impossible and finite elsewhere. A row returns to floats as soon as they hold
it again, so nothing that is possible ever becomes 0.

A matrix is compressed columns where a distribution is predicted, compressed rows where a message is passed back. A jump
is a rank-one term beside it: it adds (weights·row)·gains, both (N,). Without a jump ``gains`` is (0,); ``weights``
(0,) stands for all ones. Of a share λu the gains are λu forward, and backward the weights are λu and the gains ones.

Sums have a fixed order, in four parts where one chain of additions would be slow. So a row comes out the same however
many rows are worked on, and by however many threads. Releases use `predict` and `condition`; smoothing and fits of
hidden models use `forward` and `backward`.

`likelihood_of_points` says how likely an answer is from each state, in plain floats, and `update` is Bayes' rule with
it. A law falls with a norm: the largest of some ratios to facets. Loops go facet by facet over all states, so every
state has its number by the same operations however many states there are.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import inlined_kernel, kernel
from dphmm.types import BoolArray, FloatArray, IntArray

#: In a scaled sum at least this large, terms that underflowed (each below 1e-323) are far beyond a double.
TRUSTED = 1e-290
_LOG_TRUSTED = math.log(TRUSTED)
#: A prediction of many moves stops without regard to smaller probabilities than this: they may shrink for ever.
RARE, MANY = 1e-100, 1024


@kernel
def successors(indptr: Any, indices: Any, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Columns with a stored entry in some row of ``mask``; (indptr, indices) are compressed rows."""
    reached = np.zeros(len(mask), dtype=np.bool_)
    for row in range(len(mask)):
        if mask[row]:
            for k in range(indptr[row], indptr[row + 1]):
                reached[indices[k]] = True
    return reached


@kernel
def reachable(indptr: Any, indices: Any, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows of ``mask`` and everything any number of moves away from them."""
    seen = mask.copy()
    stack = np.empty(len(mask), dtype=np.int64)
    depth = 0
    for row in range(len(mask)):
        if mask[row]:
            stack[depth] = row
            depth += 1
    while depth > 0:
        depth -= 1
        row = stack[depth]
        for k in range(indptr[row], indptr[row + 1]):
            if not seen[indices[k]]:
                seen[indices[k]] = True
                stack[depth] = indices[k]
                depth += 1
    return seen


@kernel
def total(row: FloatArray) -> float:
    """The sum of a row."""
    a = b = c = d = 0.0
    whole = len(row) // 4 * 4
    for s in range(0, whole, 4):
        a += row[s]
        b += row[s + 1]
        c += row[s + 2]
        d += row[s + 3]
    for s in range(whole, len(row)):
        a += row[s]
    return (a + b) + (c + d)


@kernel
def expectation(row: FloatArray, values: FloatArray) -> float:
    """The sum of row·values."""
    a = b = c = d = 0.0
    whole = len(row) // 4 * 4
    for s in range(0, whole, 4):
        a += row[s] * values[s]
        b += row[s + 1] * values[s + 1]
        c += row[s + 2] * values[s + 2]
        d += row[s + 3] * values[s + 3]
    for s in range(whole, len(row)):
        a += row[s] * values[s]
    return (a + b) + (c + d)


@kernel
def likeliest(row: FloatArray) -> int:
    """The lowest state that is within 1e-12 of the largest probability."""
    a = b = c = d = 0.0
    whole = len(row) // 4 * 4
    for s in range(0, whole, 4):
        a = max(a, row[s])
        b = max(b, row[s + 1])
        c = max(c, row[s + 2])
        d = max(d, row[s + 3])
    for s in range(whole, len(row)):
        a = max(a, row[s])
    largest = max(max(a, b), max(c, d))
    least = largest * (1.0 - 1e-12)
    for s in range(len(row)):
        if row[s] >= least:
            return s
    return 0


@kernel
def summary(row: FloatArray, values: FloatArray, means: FloatArray) -> int:
    """Fill ``means`` (d,) with the expectations of values (N, d); the likeliest state."""
    for j in range(len(means)):
        means[j] = expectation(row, values[:, j])
    return likeliest(row)


@inlined_kernel
def times_sparse(indptr: Any, indices: Any, data: FloatArray, row: FloatArray, out: FloatArray) -> None:
    """Fill ``out`` with the row times a matrix, each entry a sum over the stored entries of its column."""
    last = indptr[0]
    for j in range(len(out)):
        first, last = last, indptr[j + 1]
        mass = 0.0
        for k in range(first, last):
            mass += row[indices[k]] * data[k]
        out[j] = mass


@kernel
def times_interleaved(
    indptr: Any, indices: Any, data: FloatArray, rows: FloatArray, moved: FloatArray, least: float
) -> bool:
    """p M of the columns of ``rows`` (N, 8), into ``moved`` (8, N); False if some sum is too small to trust.

    Without what jumps: with that a sum may be larger.
    """
    trusted = True
    for j in range(moved.shape[1]):
        a = b = c = d = e = f = g = h = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            i, chance = indices[k], data[k]
            a += rows[i, 0] * chance
            b += rows[i, 1] * chance
            c += rows[i, 2] * chance
            d += rows[i, 3] * chance
            e += rows[i, 4] * chance
            f += rows[i, 5] * chance
            g += rows[i, 6] * chance
            h += rows[i, 7] * chance
        moved[0, j], moved[1, j], moved[2, j], moved[3, j] = a, b, c, d
        moved[4, j], moved[5, j], moved[6, j], moved[7, j] = e, f, g, h
        trusted &= min(min(min(a, b), min(c, d)), min(min(e, f), min(g, h))) >= least
    return trusted


@kernel
def add_jump(weights: FloatArray, gains: FloatArray, row: FloatArray, out: FloatArray) -> None:
    """Add (weights·row)·gains to ``out``; nothing where there are no gains."""
    if len(gains) > 0:
        mass = total(row) if len(weights) == 0 else expectation(row, weights)
        for j in range(len(gains)):
            out[j] += mass * gains[j]


@kernel
def only_unreached_are_small(
    indptr: Any, indices: Any, jumps: bool, possible: Any, least: float, moved: FloatArray
) -> bool:
    """Whether every sum below ``least`` is of a state that nothing possible leads to; such sums become 0.

    ``possible`` (N,) is a mask, or a row of floats that is 0 where a state is impossible.
    """
    for j in range(len(moved)):
        if not moved[j] >= least:
            if jumps:
                return False
            for k in range(indptr[j], indptr[j + 1]):
                if possible[indices[k]]:
                    return False
            moved[j] = 0.0
    return True


@kernel
def predict(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    share: FloatArray,
    row: FloatArray,
    support: BoolArray,
    out: FloatArray,
    reached: BoolArray,
) -> bool:
    """p M of a row and what it reaches, from compressed columns of M; False if a reached sum is too small to trust.

    ``share`` is that of a jump, (N,), or (0,) where none is.
    """
    times_sparse(indptr, indices, data, row, out)
    add_jump(share[:0], share, row, out)
    small = 0
    for j in range(len(out)):
        reached[j] = out[j] >= TRUSTED
        small += not reached[j]
    return small == 0 or only_unreached_are_small(indptr, indices, len(share) > 0, support, TRUSTED, out)


@kernel
def predict_many(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    share: FloatArray,
    row: FloatArray,
    support: BoolArray,
    steps: int,
    settled: float,
    spare: FloatArray,
    reached: BoolArray,
) -> int:
    """`predict` of a row and its support in place, so many steps, or until one leaves it `at_rest`.

    Returns the steps that need no logs: fewer than asked for where floats can go no further. Rest is looked for at
    every eighth step, and never with ``settled`` below 0.
    """
    for passed in range(steps):
        if not predict(indptr, indices, data, share, row, support, spare, reached):
            return passed
        rests = settled >= 0.0 and passed % 8 == 0 and at_rest(row, support, spare, reached, settled, passed)
        row[:] = spare
        support[:] = reached
        if rests:
            return steps
    return steps


@kernel
def at_rest(
    row: FloatArray, support: BoolArray, moved: FloatArray, reached: BoolArray, settled: float, passed: int
) -> bool:
    """Whether a move has left the support as it was, and each probability but for a share of it, ``settled``.

    A share, because an answer may make likely what was as good as impossible. After MANY moves, ``passed``, the share
    of a probability below RARE is one of RARE: what is left behind for good shrinks at every move.
    """
    least = RARE if passed >= MANY else 0.0
    for s in range(len(row)):
        if reached[s] != support[s] or abs(moved[s] - row[s]) > settled * max(row[s], least):
            return False
    return True


@kernel
def condition(
    prior: FloatArray,
    weights: FloatArray,
    support: BoolArray,
    within: BoolArray,
    posterior: FloatArray,
    remaining: BoolArray,
) -> bool:
    """Bayes' rule on the states of a support that are ``within``, 0 elsewhere; False if some product cannot be trusted.

    Fills the posterior and which states remain.
    """
    lost = 0
    for s in range(len(prior)):
        remaining[s] = support[s] & within[s]
        posterior[s] = prior[s] * weights[s] if remaining[s] else 0.0
        lost += remaining[s] & (not posterior[s] >= TRUSTED)
    if lost > 0:
        return False
    scale = 1.0 / total(posterior)
    for s in range(len(prior)):
        posterior[s] *= scale
    return True


@kernel
def times_logs(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    logs: FloatArray,
    out: FloatArray,
) -> None:
    """Fill ``out`` with a row times a matrix and its jump, all in logs; finite wherever something possible leads to.

    Numbers scaled by the largest are summed as floats. A sum that is too small to trust is made again in logs. With a
    jump there is none: its gains are at least 1e-250.
    """
    n, top = len(out), -math.inf
    for s in range(n):
        top = max(top, logs[s])
    scaled, gained = np.zeros(n), 0.0
    for s in range(n):
        if logs[s] > -math.inf:
            scaled[s] = math.exp(logs[s] - top)
    if len(gains) > 0:
        for s in range(n):
            gained += scaled[s] if len(weights) == 0 else weights[s] * scaled[s]
    for j in range(n):
        mass = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            mass += scaled[indices[k]] * data[k]
        if len(gains) > 0:
            mass += gained * gains[j]
        out[j] = top + math.log(mass) if mass >= TRUSTED else _log_sum(indptr, indices, data, logs, j)


@kernel
def predict_logs(indptr: Any, indices: Any, data: FloatArray, share: FloatArray, logs: FloatArray) -> FloatArray:
    """log(p M) (N,) from log p, finite exactly on what the possible states lead to; arguments as of `predict`."""
    out = np.empty_like(logs)
    times_logs(indptr, indices, data, share[:0], share, logs, out)
    return out


@kernel
def _log_sum(indptr: Any, indices: Any, data: FloatArray, logs: FloatArray, j: int) -> float:
    """One entry of a row times a matrix, in logs: no term of the sum is lost."""
    largest, mass = -math.inf, 0.0
    for k in range(indptr[j], indptr[j + 1]):
        if logs[indices[k]] > -math.inf and data[k] > 0.0:
            largest = max(largest, logs[indices[k]] + math.log(data[k]))
    if largest == -math.inf:
        return largest
    for k in range(indptr[j], indptr[j + 1]):
        if logs[indices[k]] > -math.inf and data[k] > 0.0:
            mass += math.exp(logs[indices[k]] + math.log(data[k]) - largest)
    return largest + math.log(mass)


@kernel
def to_logs(row: FloatArray) -> None:
    """A row of floats as logs, in place."""
    for s in range(len(row)):
        row[s] = math.log(row[s]) if row[s] > 0.0 else -math.inf


@kernel
def normalise(row: FloatArray, logged: bool) -> tuple[bool, float]:
    """Scale a row to sum 1, in place; whether it is in logs now, and the log of what its sum was."""
    n = len(row)
    if not logged:
        whole = total(row)
        if whole == 0.0:
            return False, -math.inf
        scale, least = 1.0 / whole, math.inf
        for s in range(n):
            if 0.0 < row[s] < least:
                least = row[s]
        if least * scale >= TRUSTED:
            for s in range(n):
                row[s] *= scale
            return False, math.log(whole)
        to_logs(row)
    top = -math.inf
    for s in range(n):
        top = max(top, row[s])
    if top == -math.inf:
        return True, top
    whole, least = 0.0, math.inf
    for s in range(n):
        if row[s] > -math.inf:
            whole += math.exp(row[s] - top)
            least = min(least, row[s])
    whole = top + math.log(whole)
    fits = least - whole >= _LOG_TRUSTED
    for s in range(n):
        row[s] = math.exp(row[s] - whole) if fits else row[s] - whole
    return not fits, whole


@kernel
def multiply(row: FloatArray, logged: bool, weights: FloatArray, logged_weights: bool, out: FloatArray) -> bool:
    """The products of two rows; whether ``out`` is in logs. Nothing is scaled."""
    n = len(row)
    if not logged and not logged_weights:
        trusted = True
        for s in range(n):
            out[s] = row[s] * weights[s]
            if not out[s] >= TRUSTED and row[s] > 0.0 and weights[s] > 0.0:
                trusted = False
        if trusted:
            return False
    for s in range(n):
        a = row[s] if logged else (math.log(row[s]) if row[s] > 0.0 else -math.inf)
        b = weights[s] if logged_weights else (math.log(weights[s]) if weights[s] > 0.0 else -math.inf)
        out[s] = a + b
    return True


@kernel
def propagate(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    row: FloatArray,
    logged: bool,
    out: FloatArray,
) -> bool:
    """Fill ``out`` with a row times one matrix and its jump; whether it is in logs."""
    if not logged:
        times_sparse(indptr, indices, data, row, out)
        add_jump(weights, gains, row, out)
        if only_unreached_are_small(indptr, indices, len(gains) > 0, row, TRUSTED, out):
            return False
    logs = row.copy()
    if not logged:
        to_logs(logs)
    times_logs(indptr, indices, data, weights, gains, logs, out)
    most, least = -math.inf, math.inf
    for j in range(len(out)):
        most = max(most, out[j])
        if -math.inf < out[j] < least:
            least = out[j]
    if most > 1e-9 or least < _LOG_TRUSTED:
        return True
    for j in range(len(out)):
        out[j] = math.exp(out[j])
    return False


@kernel
def predict_through(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    row: FloatArray,
    logged: bool,
    moves: int,
    settled: float,
) -> tuple[bool, float]:
    """A distribution predicted so many times, in place; whether it is in logs, and the log of what it was divided by.

    Between the first move and the last it stops moving once nothing changes by more than ``settled`` of itself, looked
    for at every eighth move: the very steps that a session takes through a gap.
    """
    spare = np.empty_like(row)
    for moved in range(moves):
        after = propagate(indptr, indices, data, weights, gains, row, logged, spare)
        inner = 0 < moved < moves - 1
        quiet = inner and (moved - 1) % 8 == 0 and same(row, logged, spare, after, settled, moved - 1)
        row[:] = spare
        logged = after
        if quiet:
            logged = propagate(indptr, indices, data, weights, gains, row, logged, spare)
            row[:] = spare
            break
    if logged:
        return normalise(row, logged)
    return False, 0.0


@kernel
def same(one: FloatArray, logged: bool, other: FloatArray, logged_other: bool, settled: float, passed: int) -> bool:
    """Whether two distributions have the same possible states, and differ by no more than a share: as `at_rest`."""
    least = math.log(RARE) if passed >= MANY else -math.inf
    for s in range(len(one)):
        a = one[s] if logged else (math.log(one[s]) if one[s] > 0.0 else -math.inf)
        b = other[s] if logged_other else (math.log(other[s]) if other[s] > 0.0 else -math.inf)
        if (a > -math.inf) != (b > -math.inf):
            return False
        if a > -math.inf and abs(a - b) > settled and max(a, b) > least:
            return False
    return True


@kernel
def pass_back(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    row: FloatArray,
    logged: bool,
    moves: int,
    settled: float,
) -> bool:
    """What later observations say of each state, moved back so many times, in place; whether it is in logs.

    It stops once nothing changes by more than ``settled`` of itself: a state that later observations all but exclude
    may be where the earlier ones are sure the subject was.
    """
    spare = np.empty_like(row)
    for _ in range(moves):
        after = propagate(indptr, indices, data, weights, gains, row, logged, spare)
        quiet = logged == after
        for s in range(len(row)):
            if not quiet:
                break
            quiet = row[s] == spare[s] or abs(row[s] - spare[s]) <= settled * (1.0 if logged else row[s])
        row[:] = spare
        logged = after
        if quiet:
            break
    logged, _ = normalise(row, logged)
    return logged


@kernel
def forward(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    settled: float,
    rows: FloatArray,
    logged_rows: BoolArray,
    which: IntArray,
    moves: IntArray,
    row: FloatArray,
    logged: bool,
    alpha: FloatArray,
    logged_alpha: BoolArray,
    scales: FloatArray,
) -> tuple[int, bool]:
    """Filter a block: ``alpha`` (T, N) are the states given all observations so far, from compressed columns.

    ``rows`` (V, N) are likelihoods, each in either form as ``logged_rows`` (V,) says; ``which`` (T,) is the row of each
    observation, -1 where nothing was observed. So a table of symbols and a likelihood of its own for every step are the
    same here. ``moves`` (T,) is how many moves of the chain lie before each observation.

    ``row`` is the distribution before the moves of the first observation, and at the end the last of ``alpha``.
    ``scales`` (T,) are the logs of each observation's probability given those before. Returns -1, or the first
    observation that no possible state allows; and whether ``row`` is in logs.
    """
    for t in range(len(which)):
        logged, predicted = predict_through(indptr, indices, data, weights, gains, row, logged, moves[t], settled)
        scales[t] = predicted
        if which[t] < 0:
            alpha[t] = row
        else:
            logged = multiply(row, logged, rows[which[t]], logged_rows[which[t]], alpha[t])
            logged, observed = normalise(alpha[t], logged)
            if observed == -math.inf:
                return t, logged
            scales[t] += observed
            row[:] = alpha[t]
        logged_alpha[t] = logged
    return -1, logged


@kernel
def backward(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    weights: FloatArray,
    gains: FloatArray,
    settled: float,
    rows: FloatArray,
    logged_rows: BoolArray,
    which: IntArray,
    moves: IntArray,
    row: FloatArray,
    logged: bool,
    alpha: FloatArray,
    logged_alpha: BoolArray,
    marginals: FloatArray,
) -> bool:
    """Smooth a block that `forward` has filtered: ``marginals`` (T, N) given all observations, from compressed rows.

    ``row`` is what the observations after the block say of the states of its last step (all 1 where there are none),
    and at the end what those of the block and after it say of the states before the block's first moves. Returns
    whether it is in logs. ``marginals`` may be ``alpha``.
    """
    spare = np.empty_like(row)
    for t in range(len(which) - 1, -1, -1):
        in_logs = multiply(alpha[t], logged_alpha[t], row, logged, spare)
        in_logs, _ = normalise(spare, in_logs)
        for s in range(len(row)):
            marginals[t, s] = math.exp(spare[s]) if in_logs else spare[s]
        if which[t] >= 0:
            logged = multiply(row, logged, rows[which[t]], logged_rows[which[t]], spare)
            logged, _ = normalise(spare, logged)
            row[:] = spare
        logged = pass_back(indptr, indices, data, weights, gains, row, logged, moves[t], settled)
    return logged


#: What the likelihood is of the norm: in steps from a table, in steps by exp, or graded.
TABLE = 0
STEPS = 1
GRADED = 2
#: Takes a largest ratio past its own rounding, and never past the next integer (proved in dphmm.session.plan).
UP = 1.0 + 2.0**-48


@kernel
def likelihood_of_points(
    columns: FloatArray,
    normals: FloatArray,
    inverses: FloatArray,
    shifts: FloatArray,
    z: IntArray,
    kind: int,
    rate: float,
    table: FloatArray,
) -> FloatArray:
    """exp(-rate·E) of the answer z (d,) for each of some points, given as ``columns`` (d, n).

    E = max |normal·(z - point)|·inverse + shift over facets (m, d), or its floor. A table holds exp(-rate·0),
    exp(-rate·1), .., and ends with what all later steps have.
    """
    out = np.zeros(columns.shape[1])
    row = np.empty(columns.shape[1])
    for i in range(len(inverses)):
        centre = 0.0
        for j in range(len(z)):
            centre += normals[i, j] * z[j]
        project(normals[i], columns, row)
        raise_to_ratio(row, centre, inverses[i], shifts[i], out)
    norm_profile(kind, rate, table, out)
    return out


@kernel
def likelihood_of_answers(
    columns: FloatArray,
    normals: FloatArray,
    inverses: FloatArray,
    shifts: FloatArray,
    answers: IntArray,
    kind: int,
    rate: float,
    table: FloatArray,
) -> FloatArray:
    """`likelihood_of_points` of each of some answers (k, d), in rows (k, n)."""
    rows = np.empty((len(answers), columns.shape[1]))
    for k in range(len(answers)):
        rows[k] = likelihood_of_points(columns, normals, inverses, shifts, answers[k], kind, rate, table)
    return rows


@kernel
def project(normal: FloatArray, columns: FloatArray, row: FloatArray) -> None:
    """Fill a row (n,) with normal·point of the points that are ``columns`` (d, n)."""
    row[:] = 0.0
    for j in range(len(normal)):
        factor, column = normal[j], columns[j]
        for s in range(len(row)):
            row[s] += factor * column[s]


@kernel
def raise_to_ratio(row: FloatArray, centre: float, inverse: float, shift: float, out: FloatArray) -> None:
    """Raise ``out`` (n,) to |centre - row|·inverse + shift."""
    for s in range(len(out)):
        ratio = abs(centre - row[s]) * inverse + shift
        out[s] = ratio if ratio > out[s] else out[s]


@kernel
def norm_profile(kind: int, rate: float, table: FloatArray, out: FloatArray) -> None:
    """Turn norms (n,) into what a law of this kind has there."""
    if kind == TABLE:
        last = len(table) - 1
        for s in range(len(out)):
            out[s] = table[min(int(out[s] * UP), last)]
    elif kind == STEPS:
        for s in range(len(out)):
            out[s] = math.exp(-rate * math.floor(out[s] * UP))
    else:
        for s in range(len(out)):
            out[s] = math.exp(-rate * out[s])


@kernel
def columns_of(points: IntArray, some: IntArray) -> tuple[FloatArray, float]:
    """Coordinate by coordinate the points (N, d) numbered ``some``, in floats, and their largest |coordinate|."""
    columns = np.empty((points.shape[1], len(some)))
    farthest = 0
    for s in range(len(some)):
        for j in range(points.shape[1]):
            coordinate = points[some[s], j]
            columns[j, s] = coordinate
            farthest = max(farthest, abs(coordinate))
    return columns, float(farthest)


@kernel
def facets_of(
    normals: IntArray, offsets: IntArray, allowances: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
    """Facets (m, d) in floats: normals, 1/offset, the shifts of a staircase; the longest normal, the largest offset.

    A normal is as long as the sum of its |coordinates|.
    """
    m = len(offsets)
    factors, inverses, shifts = np.empty(normals.shape), np.empty(m), np.empty(m)
    longest = largest = 0.0
    for i in range(m):
        length = 0.0
        for j in range(normals.shape[1]):
            factors[i, j] = normals[i, j]
            length += abs(factors[i, j])
        offset = float(offsets[i])
        inverses[i] = 1.0 / offset
        shifts[i] = (offset - 1.0 - allowances[i]) / offset
        longest, largest = max(longest, length), max(largest, offset)
    return factors, inverses, shifts, longest, largest


@kernel
def as_released(values: FloatArray, plan_states: IntArray, surrogate: IntArray) -> FloatArray:
    """For each state (N,) the value (P,) of the plan state that it is released as."""
    n = len(surrogate)
    of_state, released = np.empty(n), np.empty(n)
    for k in range(len(plan_states)):
        of_state[plan_states[k]] = values[k]
    for s in range(n):
        released[s] = of_state[surrogate[s]]
    return released


@kernel
def update(
    prior: FloatArray,
    support: BoolArray,
    z: IntArray,
    points: IntArray,
    within: BoolArray,
    plan_states: IntArray,
    surrogate: IntArray,
    normals: IntArray,
    offsets: IntArray,
    allowances: IntArray,
    kind: int,
    rate: float,
    table: FloatArray,
    most: float,
    posterior: FloatArray,
    remaining: BoolArray,
) -> bool:
    """`condition` on an answer z (d,), where states (N,) with answers ``points`` (N, d) are released as surrogates.

    False, too, where the numbers that the likelihood compares may reach ``most``.
    """
    columns, farthest = columns_of(points, plan_states)
    factors, inverses, shifts, longest, largest = facets_of(normals, offsets, allowances)
    if longest * farthest >= most or largest >= most:
        return False
    for j in range(len(z)):
        if not abs(z[j]) < most / longest:
            return False
    values = likelihood_of_points(columns, factors, inverses, shifts, z, kind, rate, table)
    return condition(prior, as_released(values, plan_states, surrogate), support, within, posterior, remaining)
