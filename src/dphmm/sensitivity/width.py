"""How far a body reaches in a direction, as a bound that is proved and not computed in floats.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from operator import mul

import numpy as np

from dphmm.sensitivity.integers import solve
from dphmm.sensitivity.spatial import Body
from dphmm.types import FloatArray


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
