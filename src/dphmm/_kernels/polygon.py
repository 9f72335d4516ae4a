"""Loops over the corners of a symmetric planar body: its facets, and the triangles that it is made of.

Proofs: docs/proofs/hull.md, docs/proofs/protection.md (second moments).
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.points import bounds, convex_chain, extents, outermost
from dphmm.types import IntArray

#: Each step makes a row shorter; no body with corners in 64 bits takes so many.
_MOST_STEPS = 10_000


@kernel
def polygon_around(half_points: IntArray, span: int) -> tuple[IntArray, IntArray, IntArray]:
    """Normals and offsets of half the facets, and all vertices (counter-clockwise), of the hull of ± points (n, 2).

    No facets where the points lie on a line, or where one is not within ±span, at most 2**28.
    """
    points = np.concatenate((half_points, -half_points))
    if points.max() >= span:
        return points[:0], points[:0, 0].copy(), points[:0]
    chain = convex_chain(points[:, 0].copy(), points[:, 1].copy())
    vertices = points[chain]
    half = chain.size // 2 if chain.size > 2 else 0
    normals = np.empty((half, 2), np.int64)
    offsets = np.zeros(half, np.int64)
    for i in range(half):
        dx = vertices[i + 1, 0] - vertices[i, 0]
        dy = vertices[i + 1, 1] - vertices[i, 1]
        divisor = math.gcd(dx, dy)
        normals[i, 0] = dy // divisor
        normals[i, 1] = -dx // divisor
        # Not of the facet's own vertex: the largest over all points certifies the facet against every one of them.
        for k in range(points.shape[0]):
            offsets[i] = max(offsets[i], normals[i, 0] * points[k, 0] + normals[i, 1] * points[k, 1])
    return normals, offsets, vertices


@kernel
def reduced_coordinates(normals: IntArray, vertices: IntArray, span: int) -> tuple[IntArray, IntArray, IntArray]:
    """Lagrange reduction: x = R·y, R unimodular, its rows short and nearly orthogonal as seen from the vertices (v, 2).

    Returns the normals (m, 2) in these coordinates, R⁻¹, and the largest |x_i| (2,) of the body: none of them where a
    vertex is not within ±span, at most 2**28.
    """
    seen = vertices.copy()
    inverse = np.eye(2, dtype=np.int64)
    if seen.max() >= span or seen.min() <= -span:
        return normals[:0], inverse[:0], seen[:0, 0].copy()
    for _ in range(_MOST_STEPS):
        xx, xy, yy = 0.0, 0.0, 0.0
        for i in range(len(seen)):
            x, y = float(seen[i, 0]), float(seen[i, 1])
            xx += x * x
            xy += x * y
            yy += y * y
        if xx > yy:
            seen = seen[:, ::-1].copy()
            inverse = inverse[:, ::-1].copy()
            xx, yy = yy, xx
        # Where it is a half both rows are as short as they get: rounding would go to and fro for ever.
        if abs(xy) <= (0.5 + 1e-9) * xx:
            break
        q = int(np.rint(xy / xx))
        seen[:, 1] -= q * seen[:, 0]
        inverse[:, 0] += q * inverse[:, 1]
    turned = np.empty_like(normals)
    for i in range(len(normals)):
        for j in range(2):
            turned[i, j] = normals[i, 0] * inverse[0, j] + normals[i, 1] * inverse[1, j]
    widths = np.array([np.abs(seen[:, 0]).max(), np.abs(seen[:, 1]).max()])
    return turned, inverse, widths


@kernel
def outer_extents(points: IntArray, directions: IntArray) -> IntArray:
    """As `extents`; of planar points in few columns the ends of the columns suffice, for the corners are there."""
    if points.shape[1] == 2 and len(points):
        low, high = bounds(points)
        width = high[0] - low[0] + 1
        if width < len(points):
            return extents(outermost(points, low[0], width), directions)
    return extents(points, directions)


@kernel
def fan_sums(vertices: IntArray, span: int) -> tuple[int, int, int, int]:
    """Of the triangles (0, a, b) of neighbouring vertices (v, 2): sum w, and sum w·(aaᵀ + bbᵀ + ttᵀ) as xx, xy, yy.

    w = |det(a, b)|, t = a + b. A weight of -1 where a vertex is not within ±span; 2**14 keeps all sums within 64 bits.
    """
    if vertices.max() >= span or vertices.min() <= -span:
        return -1, 0, 0, 0
    weight, xx, xy, yy = 0, 0, 0, 0
    for i in range(vertices.shape[0]):
        ax, ay, bx, by = vertices[i - 1, 0], vertices[i - 1, 1], vertices[i, 0], vertices[i, 1]
        w = abs(ax * by - ay * bx)
        weight += w
        xx += w * (ax * ax + bx * bx + (ax + bx) * (ax + bx))
        xy += w * (ax * ay + bx * by + (ax + bx) * (ay + by))
        yy += w * (ay * ay + by * by + (ay + by) * (ay + by))
    return weight, xx, xy, yy
