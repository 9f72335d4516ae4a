"""Volume and second moment of a body, exactly, and how far it reaches.

Sums over the simplices that its corners make with the centre. Over a simplex (0, v_1..v_k): E[u uᵀ] = (sum v_i v_iᵀ + t
tᵀ) / ((k+1)(k+2)), t = sum v_i, with weight |det| / k! (docs/theory.md F3; equal to the planar fan formula for k = 2).

How far a body reaches in a direction is a bound that is proved and not computed in floats.

Proofs: docs/proofs/protection.md, docs/proofs/sampling.md.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import factorial, prod
from operator import mul

import numpy as np

from dphmm import _kernels
from dphmm.errors import InvalidInput
from dphmm.sensitivity.exact_hull import Body
from dphmm.sensitivity.integers import determinant, solve
from dphmm.types import FloatArray

Moments = list[list[Fraction]]
#: Corners nearer than this have every sum of a planar body within 2**62.
PLANAR_SPAN = 2**14


def volume(body: Body) -> Fraction:
    """k-dimensional volume in lattice units of the span; of the box around it for a body known by facets alone."""
    k = body.normals.shape[1]
    if body.vertices is None:
        return Fraction(prod(2 * w for w in _box_widths(body)))
    if k == 2 and (planar := planar_sums(body)) is not None:
        return Fraction(planar[1], 2)
    total = sum(abs(determinant(simplex)) for simplex in _fan(body))
    return Fraction(total, factorial(k))


def second_moment(body: Body) -> Moments:
    """E[u uᵀ] (k, k) of u uniform on the hull of the corners; on the box around a body known by facets alone."""
    k = body.normals.shape[1]
    if body.vertices is None:
        widths = _box_widths(body)
        return [[Fraction(w * w, 3) if i == j else Fraction(0) for j in range(k)] for i, w in enumerate(widths)]
    planar = planar_sums(body) if k == 2 else None
    if planar is not None:
        (xx, xy, yy), weight = planar
        total = [[xx, xy], [xy, yy]]
    else:
        total, weight = _sums(body)
    if weight == 0:
        return [[Fraction(0)] * k for _ in range(k)]
    return [[Fraction(x, (k + 1) * (k + 2) * weight) for x in row] for row in total]


def planar_sums(body: Body) -> tuple[tuple[int, int, int], int] | None:
    """Of a planar body: sum w·(a aᵀ + b bᵀ + t tᵀ) as xx, xy, yy, and sum w = twice its area; None beyond 64 bits."""
    if body.vertices is None or body.vertices.dtype != np.int64:
        return None
    weight, xx, xy, yy = _kernels.points.fan_sums(body.vertices, PLANAR_SPAN)
    return None if weight < 0 else ((xx, xy, yy), weight)


def _sums(body: Body) -> tuple[list[list[int]], int]:
    """Over the simplices, sum w·(sum v_i v_iᵀ + t tᵀ) and sum w, w = |det|."""
    k = body.normals.shape[1]
    total = [[0] * k for _ in range(k)]
    weight = 0
    for simplex in _fan(body):
        w = abs(determinant(simplex))
        t = [sum(corner[i] for corner in simplex) for i in range(k)]
        for i in range(k):
            for j in range(k):
                total[i][j] += w * (sum(corner[i] * corner[j] for corner in simplex) + t[i] * t[j])
        weight += w
    return total, weight


def _fan(body: Body) -> list[list[list[int]]]:
    """The boundary simplices, each as k corners; with the centre they fill the body."""
    k, vertices = body.normals.shape[1], np.asarray(body.vertices).tolist()
    if k == 0:
        return []
    if k == 1:
        return [[vertices[0]], [vertices[1]]]
    if k == 2:
        return [[a, b] for a, b in zip(vertices, vertices[1:] + vertices[:1], strict=True)]
    if body.simplices is None:
        raise InvalidInput("body", "corners without simplices", "both")
    return [[vertices[i] for i in simplex] for simplex in body.simplices.tolist()]


def _box_widths(body: Body) -> list[int]:
    axes = np.abs(body.normals).sum(axis=1) == 1
    order = np.argmax(np.abs(body.normals[axes]), axis=1)
    return [int(b) for b in body.offsets[axes][np.argsort(order)]]


def certified_width(body: Body, direction: list[int]) -> Fraction:
    """max |c·y| over the body, or a bound just above it.

    In one and two dimensions the corners decide. In more, c is written exactly as a sum of k facet normals
    λ_i n_i; then |c·y| <= sum |λ_i| b_i for every y of the body, whatever choice of facets a float program suggested.
    """
    k = len(direction)
    if not any(direction):
        return Fraction(0)
    if k == 2 and body.vertices is not None:
        a, b = direction
        return Fraction(max([abs(a * x + b * y) for x, y in body.vertices.tolist()]))
    if k == 1 and body.vertices is not None:
        return Fraction(max(abs(sum(map(mul, direction, corner))) for corner in body.vertices.tolist()))
    bounds = []
    for facets in _suggestions(body, np.array(direction, dtype=np.float64)):
        weights = solve([body.normals[i].tolist() for i in facets], direction)
        if weights is not None:
            terms = [abs(w) * int(body.offsets[i]) for w, i in zip(weights, facets, strict=True)]
            bounds.append(sum(terms, Fraction(0)))
    return min(bounds)


def _suggestions(body: Body, direction: FloatArray) -> list[tuple[int, ...]]:
    """Sets of k facets, best first: those active at a float optimum, then any independent ones."""
    from scipy.optimize import linprog

    k = len(direction)
    # In coordinates where the facets are round: HiGHS gives up on thin and slanted bodies (rank 3 and more).
    scaled, change = np.linalg.qr(body.normals / body.offsets[:, None])
    objective = np.linalg.solve(change.T, direction)
    objective /= np.abs(objective).max()
    sides, limits = np.vstack([scaled, -scaled]), np.full(2 * len(scaled), np.abs(scaled).max())
    optimum = linprog(-objective, A_ub=sides, b_ub=limits, bounds=[(None, None)] * k, method="highs")
    order = np.argsort(optimum.ineqlin.marginals + 1e-12 * optimum.ineqlin.residual, kind="stable")
    ranked = list(dict.fromkeys(int(i) % len(scaled) for i in order))
    active = list(itertools.islice(itertools.combinations(ranked[: k + 3], k), 40))
    return [*active, _independent(body, ranked)]


def _independent(body: Body, ranked: list[int]) -> tuple[int, ...]:
    """The first k facets in the given order whose normals are linearly independent, decided exactly."""
    from dphmm.sensitivity.integers import column_hermite

    chosen: list[int] = []
    rows: list[list[int]] = []
    k = body.normals.shape[1]
    for i in ranked:
        candidate = [*rows, body.normals[i].tolist()]
        if column_hermite(candidate, k)[2] > len(rows):
            rows, chosen = candidate, [*chosen, i]
        if len(chosen) == k:
            break
    return tuple(chosen)
