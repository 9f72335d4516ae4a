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
#: Takes a largest ratio past its own rounding, and never past the next integer (proved in dphmm.session.likelihood).
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
        c, inverse, shift = centre[i], inverses[i], shifts[i]
        for s in range(len(out)):
            ratio = abs(c - projected[i, s]) * inverse + shift
            out[s] = ratio if ratio > out[s] else out[s]
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
def projections(normals: FloatArray, points: IntArray) -> tuple[FloatArray, float, float]:
    """normals·points (m, n) in floats, the largest |normal|₁, and the largest |coordinate| of the points."""
    n = points.shape[0]
    columns = np.empty((points.shape[1], n))
    farthest = 0.0
    for j in range(points.shape[1]):
        for s in range(n):
            columns[j, s] = points[s, j]
            farthest = max(farthest, abs(columns[j, s]))
    out = np.zeros((normals.shape[0], n))
    longest = 0.0
    for i in range(normals.shape[0]):
        length = 0.0
        for j in range(normals.shape[1]):
            factor = normals[i, j]
            length += abs(factor)
            for s in range(n):
                out[i, s] += factor * columns[j, s]
        longest = max(longest, length)
    return out, longest, farthest


@kernel
def places_of(plan: BoolArray, surrogate: IntArray) -> IntArray:
    """For each state (N,) how many plan states come before its surrogate."""
    before = np.empty(plan.size, np.int64)
    count = 0
    for state in range(plan.size):
        before[state] = count
        count += plan[state]
    return before[surrogate]


@kernel
def condition(prior: FloatArray, weights: FloatArray, support: BoolArray, posterior: FloatArray) -> bool:
    """Bayes' rule on the states of ``support``, 0 elsewhere; False if a product there is too small to trust."""
    n = len(prior)
    least = math.inf
    for s in range(n):
        product = prior[s] * weights[s] if support[s] else 0.0
        posterior[s] = product
        if support[s]:
            least = product if product < least else least
    if not least >= TRUSTED:
        return False
    scale = 1.0 / total(posterior)
    for s in range(n):
        posterior[s] *= scale
    return True


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
def move(
    indptr: Any,
    indices: Any,
    data: FloatArray,
    row: FloatArray,
    support: BoolArray,
    out: FloatArray,
    reached: BoolArray,
) -> bool:
    """p M of a row and what it reaches, from compressed columns of M; False if a reached sum is too small to trust."""
    for j in range(len(out)):
        first, last = indptr[j], indptr[j + 1]
        mass = 0.0
        for k in range(first, last):
            mass += row[indices[k]] * data[k]
        out[j] = mass
        reached[j] = True
        if not mass >= TRUSTED:
            for k in range(first, last):
                if support[indices[k]]:
                    return False
            out[j] = 0.0
            reached[j] = False
    return True


@kernel
def move_many(
    indptr: Any,
    indices: Any,
    data: FloatArray,
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
        if not move(indptr, indices, data, row, support, spare, reached):
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
