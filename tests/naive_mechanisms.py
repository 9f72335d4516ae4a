"""Hulls to try mechanisms on, and the law of a lattice mechanism by its definition, point by point."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from dphmm.sensitivity.exact_hull import PointDifferences
from dphmm.sensitivity.hull import hull_of
from dphmm.states.lattice import Lattice

SHAPES = {
    "interval": [(3,)],
    "odd interval": [(7,)],
    "square": [(1, 1), (1, -1)],
    "example": [(1, -1), (4, 1), (1, 1), (-3, 1)],
    "running": [(1, -1), (4, 1), (1, 1), (-3, 0)],
    "disc": [(3, 0), (2, 2), (0, 3), (-2, 2)],
    "thin": [(9, 10), (1, 0)],
    "flat": [(2, -4)],
    "flat slanted": [(2, -3), (4, -6)],
    "octahedron": [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
    "slanted box": [(1, 1, 0), (1, -1, 2), (0, 2, 1)],
    "plane in space": [(1, 2, 3), (1, 0, -1)],
}


def hull_of_points(points, pitch=None, origin=None):
    """The hull of ± integer points (m, d) on a lattice."""
    table = np.array(points, dtype=np.int64)
    d = table.shape[1]
    pitch = np.ones(d) if pitch is None else np.array(pitch)
    origin = np.zeros(d) if origin is None else np.array(origin)
    return hull_of(PointDifferences(table), Lattice(pitch, origin))


def shape(name):
    return hull_of_points(SHAPES[name])


def norm(hull, v):
    """‖v‖ of a lattice vector from the facets, one at a time; None off the span."""
    v = [int(x) for x in v]
    if any(sum(int(a) * x for a, x in zip(row, v, strict=True)) for row in hull.equations):
        return None
    y = [sum(int(a) * x for a, x in zip(row, v, strict=True)) for row in hull.coordinates]
    return max(
        Fraction(abs(sum(int(a) * c for a, c in zip(n, y, strict=True))), int(b))
        for n, b in zip(hull.normals, hull.offsets, strict=True)
    )


def exponent(mechanism, radius):
    """-log of the unnormalised probability of a noise of that norm, exactly."""
    if mechanism.name == "discrete-knorm":
        return radius * mechanism.epsilon
    return max(0, math.ceil(radius - mechanism.offset)) * mechanism.epsilon


def window(hull, radius):
    """Every lattice vector in a box around radius·K."""
    corners = np.asarray(hull.hull_vertices) @ hull.basis.T
    reach = [math.ceil(radius * int(m)) for m in np.abs(corners).max(axis=0)]
    return itertools.product(*(range(-r, r + 1) for r in reach))


def enumerated_loss(mechanism, v, radius):
    """max over z in a window of |log P(z|0) - log P(z|v)|, exactly."""
    hull, largest = mechanism.hull, Fraction(0)
    for z in window(hull, radius):
        here, there = norm(hull, z), norm(hull, np.subtract(z, v))
        if (here is None) != (there is None):
            return math.inf
        if here is not None:
            largest = max(largest, abs(exponent(mechanism, here) - exponent(mechanism, there)))
    return largest


def norm_table(hull, radius):
    """Lattice vectors (n, d) of norm at most ``radius``; their norms as integers (n,) over one denominator."""
    vectors = np.array(list(window(hull, radius)), dtype=np.int64)
    vectors = vectors[~(vectors @ hull.equations.T).any(axis=1)]
    common = math.lcm(*(int(b) for b in hull.offsets))
    scaled = hull.normals * (common // hull.offsets)[:, None]
    tops = np.abs(vectors @ hull.coordinates.T @ scaled.T).max(axis=1)
    near = tops <= radius * common
    return vectors[near], tops[near], common


def exponents(mechanism, tops, common):
    """`exponent` of many norms tops / common, rounded only at the end."""
    if mechanism.name == "discrete-knorm":
        return tops * float(mechanism.epsilon) / common
    g = mechanism.offset
    steps = -((g.numerator * common - tops * g.denominator) // (common * g.denominator))
    return np.maximum(steps, 0) * float(mechanism.epsilon)


def expected_error(mechanism, radius):
    """E‖noise‖² over norm at most ``radius``, in lattice units."""
    vectors, tops, common = norm_table(mechanism.hull, radius)
    weights = np.exp(-exponents(mechanism, tops, common))
    return float((weights * (vectors**2).sum(axis=1)).sum() / weights.sum())
