"""How likely an answer is from each state, in plain floats, and Bayes' rule with it.

A law falls with a norm: the largest of some ratios to facets. Loops go facet by facet over all states, so every state
has its number by the same operations however many states there are.
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.filter import condition
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
        raise_to_ratio(projected[i], centre[i], inverses[i], shifts[i], out)
    norm_profile(kind, rate, table, out)


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
