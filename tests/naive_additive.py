"""Brute-force twins of the optimal additive mechanism: its law by definition, point by point in fractions, and its
linear program with an unknown for every point of a box, no symmetry and no staircase to measure by.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from naive_mechanisms import norm, window


def weight(mechanism, v):
    """The weight of a lattice noise (d,), a fraction; 0 off the span."""
    law, hull = mechanism.law, mechanism.hull
    size = norm(hull, v)
    if size is None:
        return Fraction(0)
    if size > law.radius:
        return law.tail * Fraction(law.ratio, 2**law.bits) ** (math.ceil(size - law.radius) - 1)
    y = [sum(int(a) * int(x) for a, x in zip(row, v, strict=True)) for row in hull.coordinates]
    number = next(i for i, point in enumerate(law.points.tolist()) if point == y)
    return Fraction(law.weights[number])


def table(mechanism, radius):
    """Lattice noises (n, d) of norm at most ``radius``, and their weights."""
    hull = mechanism.hull
    near = {tuple((mechanism.hull.basis @ y).tolist()): w for y, w in _weighed(mechanism)}
    found = []
    for v in window(hull, radius):
        size = norm(hull, v)
        if size is not None and size <= radius:
            found.append((v, Fraction(near[v]) if size <= mechanism.law.radius else weight(mechanism, v)))
    return np.array([v for v, _ in found]), [w for _, w in found]


def _weighed(mechanism):
    return zip(mechanism.law.points, mechanism.law.weights, strict=True)


def worst_ratio(mechanism, v, radius):
    """The largest quotient of the weights of two noises that differ by v, one of them of norm at most ``radius``."""
    vectors, weights = table(mechanism, radius)
    known = dict(zip(map(tuple, vectors.tolist()), weights, strict=True))
    worst = Fraction(1)
    for x, here in known.items():
        there = tuple(int(a + b) for a, b in zip(x, v, strict=True))
        other = known[there] if there in known else weight(mechanism, there)
        worst = max(worst, here / other, other / here)
    return worst


def least_mean(hull, epsilon, radius, cost):
    """The least mean cost of noise on the lattice within a norm, which may stop there: a bound for all noise that keeps
    ε, but for the mass that it has farther out.
    """
    points = [v for v in window(hull, radius) if (norm(hull, v) or Fraction(0)) <= radius and norm(hull, v) is not None]
    number = {v: i for i, v in enumerate(points)}
    body = [v for v in window(hull, 1) if any(v) and norm(hull, v) is not None and norm(hull, v) <= 1]
    pairs = np.array(
        [
            (i, number[there])
            for v, i in number.items()
            for step in body
            if (there := tuple(a + b for a, b in zip(v, step, strict=True))) in number
        ]
    )
    rows = np.arange(len(pairs))
    shape = (len(pairs), len(points))
    a = sparse.csr_matrix((np.ones(len(pairs)), (rows, pairs[:, 0])), shape)
    a = a - sparse.csr_matrix((np.full(len(pairs), math.exp(epsilon)), (rows, pairs[:, 1])), shape)
    prices = np.array([cost(np.array(v, dtype=float)) for v in points])
    found = linprog(prices, a, np.zeros(len(pairs)), np.ones((1, len(points))), [1.0], method="highs-ds")
    return float(found.fun)
