"""The one filter of a Markov chain: predict, condition, and the evidence of later observations, in floats and in logs.

A *row* (N,) is a distribution over states, or what observations say of each. In floats it is 0 where a state is
impossible and nowhere else below TRUSTED; each function says when that no longer holds, and logs take over. In logs
(``logged``) it is -inf where a state is impossible and finite elsewhere. A row returns to floats as soon as they hold
it again, so nothing that is possible ever becomes 0.

A ``matrix`` is whatever has ``indptr``, ``indices`` and ``data``: compressed columns where a distribution is predicted
(`dphmm.types.Predecessors`), compressed rows where a message is passed back. A jump is a rank-one term beside it: it
adds (weights·row)·gains, both (N,). Without a jump ``gains`` is (0,); ``weights`` (0,) stands for all ones. Of a share
λu the gains are λu forward, and backward the weights are λu and the gains ones.

Sums have a fixed order, in four parts where one chain of additions would be slow. So a row comes out the same however
many rows are worked on, and by however many threads. Releases use `predict` and `condition`. What is no more than
described is smoothed and fitted by `dphmm._kernels.smoothing` and `dphmm._kernels.hmm`, and in logs where floats do not
hold it.

`likelihood_of_points` says how likely an answer is from each state, in plain floats, and `update` is Bayes' rule with
it. A law falls with a norm: the largest of some ratios to facets. Loops go facet by facet over all states, so every
state has its number by the same operations however many states there are.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import inlined_kernel, kernel
from dphmm._kernels.lattice import STEPS
from dphmm.types import BoolArray, FloatArray, FloatLaw, IntArray, Predecessors

#: In a scaled sum at least this large, terms that underflowed (each below 1e-323) are far beyond a double.
TRUSTED = 1e-290
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


@inlined_kernel
def times_sparse(matrix: Any, row: FloatArray, out: FloatArray) -> None:
    """Fill ``out`` with the row times a matrix, each entry a sum over the stored entries of its column."""
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    last = indptr[0]
    for j in range(len(out)):
        first, last = last, indptr[j + 1]
        mass = 0.0
        for k in range(first, last):
            mass += row[indices[k]] * data[k]
        out[j] = mass


@kernel
def add_jump(share: FloatArray, row: FloatArray, out: FloatArray) -> None:
    """Add the sum of a row times the share of a jump to ``out``; nothing where none is."""
    if len(share) > 0:
        mass = total(row)
        for j in range(len(share)):
            out[j] += mass * share[j]


@kernel
def only_unreached_are_small(matrix: Predecessors, possible: Any, least: float, moved: FloatArray) -> bool:
    """True if every sum below ``least`` is of a state that nothing possible leads to; such sums become 0.

    ``possible`` (N,) is a mask, or a row of floats that is 0 where a state is impossible.
    """
    for j in range(len(moved)):
        if not moved[j] >= least:
            if len(matrix.share) > 0:
                return False
            for k in range(matrix.indptr[j], matrix.indptr[j + 1]):
                if possible[matrix.indices[k]]:
                    return False
            moved[j] = 0.0
    return True


@kernel
def predict(matrix: Predecessors, row: FloatArray, support: BoolArray, out: FloatArray, reached: BoolArray) -> bool:
    """The product p M of a row and the states that it reaches; False if a reached sum is too small to trust."""
    times_sparse(matrix, row, out)
    add_jump(matrix.share, row, out)
    small = 0
    for j in range(len(out)):
        reached[j] = out[j] >= TRUSTED
        small += not reached[j]
    return small == 0 or only_unreached_are_small(matrix, support, TRUSTED, out)


@kernel
def predict_many(
    matrix: Predecessors,
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
        if not predict(matrix, row, support, spare, reached):
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
    """True if a move has left the support as it was, and each probability but for a share of it, ``settled``.

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
def times_logs(matrix: Any, weights: FloatArray, gains: FloatArray, logs: FloatArray, out: FloatArray) -> None:
    """Fill ``out`` with a row times a matrix and its jump, all in logs; finite wherever something possible leads to.

    Numbers scaled by the largest are summed as floats. A sum that is too small to trust is made again in logs. With a
    jump there is none: its gains are at least 1e-250.
    """
    n, top, indptr, indices, data = len(out), -math.inf, matrix.indptr, matrix.indices, matrix.data
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
        out[j] = top + math.log(mass) if mass >= TRUSTED else _log_sum(matrix, logs, j)


@kernel
def predict_logs(matrix: Predecessors, logs: FloatArray) -> FloatArray:
    """The vector log(p M) (N,) from log p, finite exactly at the states that the possible ones lead to."""
    out = np.empty_like(logs)
    times_logs(matrix, matrix.share[:0], matrix.share, logs, out)
    return out


@kernel
def _log_sum(matrix: Any, logs: FloatArray, j: int) -> float:
    """One entry of a row times a matrix, in logs: no term of the sum is lost."""
    largest, mass, indices, data = -math.inf, 0.0, matrix.indices, matrix.data
    for k in range(matrix.indptr[j], matrix.indptr[j + 1]):
        if logs[indices[k]] > -math.inf and data[k] > 0.0:
            largest = max(largest, logs[indices[k]] + math.log(data[k]))
    if largest == -math.inf:
        return largest
    for k in range(matrix.indptr[j], matrix.indptr[j + 1]):
        if logs[indices[k]] > -math.inf and data[k] > 0.0:
            mass += math.exp(logs[indices[k]] + math.log(data[k]) - largest)
    return largest + math.log(mass)


@kernel
def scale_logs(row: FloatArray) -> float:
    """Scale a row in logs to sum 1, in place; returns the log of its former sum."""
    top, whole = -math.inf, 0.0
    for s in range(len(row)):
        top = max(top, row[s])
    if top == -math.inf:
        return top
    for s in range(len(row)):
        whole += math.exp(row[s] - top)
    whole = top + math.log(whole)
    for s in range(len(row)):
        row[s] -= whole
    return whole


@kernel
def same(one: FloatArray, other: FloatArray, settled: float, passed: int) -> bool:
    """True if two rows in logs have the same possible states, and differ by no more than a share: as `at_rest`."""
    least = math.log(RARE) if passed >= MANY else -math.inf
    for s in range(len(one)):
        if (one[s] > -math.inf) != (other[s] > -math.inf):
            return False
        if one[s] > -math.inf and abs(one[s] - other[s]) > settled and max(one[s], other[s]) > least:
            return False
    return True


@kernel
def move_logs(matrix: Any, weights: FloatArray, gains: FloatArray, settled: float, moves: int, row: FloatArray) -> None:
    """A row in logs times a matrix and its jump, so many times, in place.

    It stops once nothing changes by more than ``settled`` of itself, looked for at every eighth move. A row of weights
    says what later observations say: a state that they all but exclude may be where the earlier ones are sure the
    subject was, so that nothing is too rare to count.
    """
    spare = np.empty_like(row)
    for moved in range(moves):
        times_logs(matrix, weights, gains, row, spare)
        quiet = moved % 8 == 1 and same(row, spare, settled, moved if len(weights) == 0 else 0)
        row[:] = spare
        if quiet:
            break


@kernel
def sum_latent(row: FloatArray, support: BoolArray, secrets: IntArray, masses: FloatArray, possible: BoolArray) -> None:
    """The masses (S,) of secrets, sums over their latent states (N,) in order, and which of them are possible."""
    masses[:], possible[:] = 0.0, False
    for x in range(len(secrets)):
        masses[secrets[x]] += row[x]
        possible[secrets[x]] |= support[x]


#: What the likelihood is of the norm: in steps from a table, or by exp in `STEPS`, or `GRADED`.
TABLE = 0
#: Takes a largest ratio past its own rounding, and never past the next integer (proved in dphmm.session.plan).
UP = 1.0 + 2.0**-48


class Facets(NamedTuple):
    """A `FloatLaw` in floats: ``normals`` (m, d), ``inverses`` (m,), 1/offset, and ``shifts`` (m,) of a staircase.

    A table holds exp(-rate·0), exp(-rate·1), .., and ends with what all later steps have.
    """

    normals: FloatArray
    inverses: FloatArray
    shifts: FloatArray
    kind: int
    rate: float
    table: FloatArray


@kernel
def likelihood_of_points(columns: FloatArray, facets: Facets, z: IntArray) -> FloatArray:
    """exp(-rate·E) of the answer z (d,) for each of some points, given as ``columns`` (d, n).

    E = max |normal·(z - point)|·inverse + shift over facets, or its floor.
    """
    out = np.zeros(columns.shape[1])
    row = np.empty(columns.shape[1])
    for i in range(len(facets.inverses)):
        centre = 0.0
        for j in range(len(z)):
            centre += facets.normals[i, j] * z[j]
        project(facets.normals[i], columns, row)
        raise_to_ratio(row, centre, facets.inverses[i], facets.shifts[i], out)
    norm_profile(facets.kind, facets.rate, facets.table, out)
    return out


@kernel
def likelihood_of_answers(columns: FloatArray, facets: Facets, answers: IntArray) -> FloatArray:
    """`likelihood_of_points` of each of some answers (k, d), in rows (k, n)."""
    rows = np.empty((len(answers), columns.shape[1]))
    for k in range(len(answers)):
        rows[k] = likelihood_of_points(columns, facets, answers[k])
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
    """Turn norms (n,) into the values that a law of this kind has there."""
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
def facets_of(law: FloatLaw) -> tuple[Facets, float, float]:
    """The facets of a law in floats, the longest normal and the largest offset.

    A normal is as long as the sum of its |coordinates|.
    """
    m = len(law.offsets)
    normals, inverses, shifts = np.empty(law.normals.shape), np.empty(m), np.empty(m)
    longest = largest = 0.0
    for i in range(m):
        length = 0.0
        for j in range(law.normals.shape[1]):
            normals[i, j] = law.normals[i, j]
            length += abs(normals[i, j])
        offset = float(law.offsets[i])
        inverses[i] = 1.0 / offset
        shifts[i] = (offset - 1.0 - law.allowances[i]) / offset
        longest, largest = max(longest, length), max(largest, offset)
    return Facets(normals, inverses, shifts, law.kind, law.rate, law.table), longest, largest


@kernel
def as_released(values: FloatArray, plan_states: IntArray, surrogate: IntArray) -> FloatArray:
    """The value (N,) of each state: that of the plan state (P,) which it is released as."""
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
    law: FloatLaw,
    most: float,
    posterior: FloatArray,
    remaining: BoolArray,
) -> bool:
    """`condition` on an answer z (d,), where states (N,) with answers ``points`` (N, d) are released as surrogates.

    False, too, where the numbers that the likelihood compares may reach ``most``.
    """
    columns, farthest = columns_of(points, plan_states)
    facets, longest, largest = facets_of(law)
    if longest * farthest >= most or largest >= most:
        return False
    for j in range(len(z)):
        if not abs(z[j]) < most / longest:
            return False
    released = as_released(likelihood_of_points(columns, facets, z), plan_states, surrogate)
    return condition(prior, released, support, within, posterior, remaining)
