"""The linear program of the best additive noise on a lattice.

It minimises the mean of a cost, where points that differ by a vector of the body weigh at most e^ε times as much as
each other.

Points near the origin have weights of their own; all beyond are tied to the first shell outside (see `AdditiveLaw`).
Weights are written relative to those of a staircase, which is one of the program's points, and points that a symmetry
of body and costs maps onto each other are one variable. What comes out are floats: a proposal, nothing more.

Linear programs for noise on the integers are Ghosh, Roughgarden and Sundararajan's (STOC 2009).

Proof: docs/proofs/optimal-additive.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.samplers.rows import Facets
from dphmm.types import FloatArray, IntArray

#: Above this ε the staircase is proposed as it is: all but about e^-12 of the mass is on its first level.
LARGEST_PROGRAM = 12
#: Floats of costs that differ by less, relative to the largest, are the same.
_SAME = 1e-9
_MOST_OFFSETS = 32


@dataclass(frozen=True, eq=False)
class Window:
    """``points`` (n, k) near the origin by orbit: ``orbits`` (n,) numbers 0 .. r - 1; r is the first shell beyond.

    ``levels`` (r + 1,): the staircase's exponents. ``pairs`` (p, 2): orbits with points that differ by a vector of the
    body, each pair once.
    """

    facets: Facets
    radius: Fraction
    points: IntArray
    orbits: IntArray
    levels: IntArray
    pairs: IntArray

    @classmethod
    def of(cls, facets: Facets, radius: Fraction, costs: FloatArray) -> Window:
        """The window of a radius; ``costs`` (n,) of its points decide which symmetries there are."""
        k = facets.normals.shape[1]
        points = facets.within(radius).points(k)
        orbits = _orbits(facets, points, costs)
        count = int(orbits.max()) + 1
        levels = np.empty(count + 1, dtype=np.int64)
        levels[orbits] = facets.steps(points, radius - math.floor(radius))
        levels[count] = math.floor(radius) + 1
        return cls(facets, radius, points, orbits, levels, _pairs(facets, points, orbits))


def proposed(window: Window, epsilon: Fraction, costs: FloatArray, beyond: tuple[float, float]) -> FloatArray:
    """Weights (r + 1,) of the orbits and the first shell beyond, relative to the staircase's.

    ``costs`` (n,) of the points; ``beyond``: how much the shells beyond weigh, and cost, when the first point of them
    weighs 1 each.
    """
    if epsilon > LARGEST_PROGRAM:
        return np.ones(len(window.levels))
    from scipy import sparse
    from scipy.optimize import linprog

    falls = np.exp(-float(epsilon) * window.levels)
    masses = np.append(np.bincount(window.orbits), beyond[0]) * falls
    prices = np.append(np.bincount(window.orbits, weights=costs), beyond[1]) * falls
    if not prices.any():
        return np.ones(len(prices))
    both = np.concatenate([window.pairs, window.pairs[:, ::-1]])
    rises = np.exp(float(epsilon) * (1 + window.levels[both[:, 0]] - window.levels[both[:, 1]]))
    rows = np.arange(len(both))
    shape = (len(both), len(masses))
    ratios = sparse.csr_matrix((np.ones(len(both)), (rows, both[:, 0])), shape)
    ratios = ratios - sparse.csr_matrix((rises, (rows, both[:, 1])), shape)
    total = masses.sum()
    found = linprog(
        prices / prices.sum(),
        A_ub=ratios,
        b_ub=np.zeros(len(both)),
        A_eq=masses[None] / total,
        b_eq=[1.0],
        bounds=(0, None),
        method="highs-ipm",
    )
    better = found.x is not None and prices @ found.x * total < prices.sum() * (masses @ found.x)
    return np.asarray(found.x) if better else np.ones(len(masses))


def best_offset(facets: Facets, epsilon: Fraction, points: IntArray, costs: FloatArray) -> Fraction:
    """The offset of the staircase of least mean cost over ``points`` (n, k), among at most 32 breakpoints."""
    near = points[facets.steps(points, Fraction(2)) == 0]
    values = np.abs(near @ facets.normals.T).tolist()
    norms = {max(Fraction(v, b) for v, b in zip(row, facets.offsets, strict=True)) % 1 for row in values}
    offsets = sorted(norms)[:: -(-len(norms) // _MOST_OFFSETS)]
    means = []
    for offset in offsets:
        weights = np.exp(-float(epsilon) * facets.steps(points, offset).astype(np.float64))
        means.append(float(weights @ costs / weights.sum()))
    return offsets[int(np.argmin(np.round(np.array(means) / max(*means, 1e-300), 9)))]


def _pairs(facets: Facets, points: IntArray, orbits: IntArray) -> IntArray:
    """Orbits (p, 2) of points that differ by a vector of the body; those beyond the window have the last number."""
    k = points.shape[1]
    body = facets.within(Fraction(1)).points(k)
    beyond = int(orbits.max()) + 1
    reach = np.abs(points).max(axis=0) + np.abs(body).max(axis=0)
    table = np.full(tuple(2 * reach + 1), beyond, dtype=np.int64)
    table[tuple((points + reach).T)] = orbits
    some = points[np.unique(orbits, return_index=True)[1]]
    there = table[tuple((some[:, None, :] + body[None] + reach).reshape(-1, k).T)]
    pairs = np.sort(np.stack([np.repeat(np.arange(beyond), len(body)), there], axis=1), axis=1)
    pairs = np.unique(pairs, axis=0)
    return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]])


def _orbits(facets: Facets, points: IntArray, costs: FloatArray) -> IntArray:
    """Numbers (n,) of the orbits of points, in the order of their first points."""
    reach = np.abs(points).max()
    keys = _keys(points, reach)
    order = np.argsort(keys)
    least = np.arange(len(points))
    for symmetry in _motions(facets):
        images = order[np.searchsorted(keys[order], _keys(points @ symmetry.T, reach))]
        if np.abs(costs[images] - costs).max() <= _SAME * np.abs(costs).max():
            least = np.minimum(least, images)
    return np.unique(least, return_inverse=True)[1].reshape(-1)


def _keys(points: IntArray, reach: int) -> IntArray:
    return np.asarray((points + reach) @ (2 * int(reach) + 1) ** np.arange(points.shape[1])[::-1])


def symmetries(facets: Facets, costs: Callable[[IntArray], FloatArray]) -> int:
    """How many symmetries body and costs have together, by the points of twice the body."""
    points = facets.within(Fraction(2)).points(facets.normals.shape[1])
    own = costs(points)
    return sum(bool(np.abs(costs(points @ s.T) - own).max() <= _SAME * np.abs(own).max()) for s in _motions(facets))


def _motions(facets: Facets) -> list[IntArray]:
    """Signed permutations of the coordinates that map the body onto itself, as matrices."""
    k = facets.normals.shape[1]
    body = _facet_set(facets.normals, facets.offsets)
    found = []
    for order in itertools.permutations(range(k)):
        for signs in itertools.product((1, -1), repeat=k):
            matrix = np.eye(k, dtype=np.int64)[list(order)] * np.array(signs)[:, None]
            if _facet_set(facets.normals @ matrix, facets.offsets) == body:
                found.append(matrix)
    return found


def _facet_set(normals: IntArray, offsets: tuple[int, ...]) -> set[tuple[tuple[int, ...], int]]:
    rows = [tuple(row) for row in normals.tolist()]
    return {(max(row, tuple(-x for x in row)), b) for row, b in zip(rows, offsets, strict=True)}
