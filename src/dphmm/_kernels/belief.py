"""A step of a public belief in plain floats: likelihood, Bayes' rule, estimate, move.

Everything here works on one row (N,) of probabilities, none of a possible state below TRUSTED, and says when that no
longer holds: logs take over then. Sums are made in four parts, in a fixed order, because one long chain of additions
is slow; so a row comes out the same however many rows are worked on, and by however many threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.markov import TRUSTED
from dphmm.types import BoolArray, FloatArray, IntArray

#: What the likelihood is of the norm: in steps from a table, in steps by exp, or graded.
TABLE = 0
STEPS = 1
GRADED = 2
#: Takes a largest ratio past its own rounding, and never past the next integer (proved in dphmm.session.step).
UP = 1.0 + 2.0**-48


@kernel
def likelihood(
    projected: FloatArray,
    inverses: FloatArray,
    shifts: FloatArray,
    centre: FloatArray,
    kind: int,
    rate: float,
    table: FloatArray,
    out: FloatArray,
) -> None:
    """exp(-rate·E) of the states (N,): E = max |centre - projected|·inverse + shift over facets (m, N), or its floor.

    A table holds exp(-rate·0), exp(-rate·1), .., and ends with what all later steps have.
    """
    out[:] = 0.0
    for i in range(len(inverses)):
        reach(projected[i], centre[i], inverses[i], shifts[i], out)
    fall(kind, rate, table, out)


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
    """`likelihood` of the answer z (d,) for each of some points, given as ``columns`` (d, n), and facets (m, d)."""
    out = np.zeros(columns.shape[1])
    row = np.empty(columns.shape[1])
    for i in range(len(inverses)):
        centre = 0.0
        for j in range(len(z)):
            centre += normals[i, j] * z[j]
        project(normals[i], columns, row)
        reach(row, centre, inverses[i], shifts[i], out)
    fall(kind, rate, table, out)
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
def reach(row: FloatArray, centre: float, inverse: float, shift: float, out: FloatArray) -> None:
    """Raise ``out`` (n,) to |centre - row|·inverse + shift."""
    for s in range(len(out)):
        ratio = abs(centre - row[s]) * inverse + shift
        out[s] = ratio if ratio > out[s] else out[s]


@kernel
def fall(kind: int, rate: float, table: FloatArray, out: FloatArray) -> None:
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
def projections(normals: FloatArray, columns: FloatArray) -> FloatArray:
    """normals·point (m, n) of the points that are ``columns`` (d, n)."""
    out = np.empty((normals.shape[0], columns.shape[1]))
    for i in range(normals.shape[0]):
        project(normals[i], columns, out[i])
    return out


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


@kernel
def move(
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
    last = indptr[0]
    for j in range(len(out)):
        first, last = last, indptr[j + 1]
        mass = 0.0
        for k in range(first, last):
            mass += row[indices[k]] * data[k]
        out[j] = mass
    land(share, row, out)
    small = 0
    for j in range(len(out)):
        reached[j] = out[j] >= TRUSTED
        small += not reached[j]
    if small == 0:
        return True
    for j in range(len(out)):
        if not reached[j]:
            out[j] = 0.0
            if len(share) > 0:
                return False
            for k in range(indptr[j], indptr[j + 1]):
                if support[indices[k]]:
                    return False
    return True


@kernel
def land(share: FloatArray, row: FloatArray, moved: FloatArray) -> None:
    """Add to a moved row what jumped from anywhere in the row before it; nothing where the share is empty."""
    if len(share) > 0:
        whole = total(row)
        for j in range(len(share)):
            moved[j] += whole * share[j]


@kernel
def move_many(
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
    """`move` of a row and its support in place, so many steps, or until one moves nothing by more than ``settled``.

    Returns the steps that need no other move: fewer than asked for where floats can go no further. Settling is looked
    for at every eighth step, and never with ``settled`` below 0.
    """
    for passed in range(steps):
        if not move(indptr, indices, data, share, row, support, spare, reached):
            return passed
        most = math.inf
        if settled >= 0.0 and passed % 8 == 0:
            most = 0.0
            for s in range(len(row)):
                most = max(most, abs(spare[s] - row[s]) if reached[s] == support[s] else math.inf)
        row[:] = spare
        support[:] = reached
        if most <= settled:
            return steps
    return steps
