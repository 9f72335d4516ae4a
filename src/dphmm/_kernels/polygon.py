"""Loops over the corners of a symmetric planar body: its facets, and the triangles that it is made of.

Proofs: docs/proofs/hull.md, docs/proofs/protection.md (second moments).
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.points import convex_chain
from dphmm.types import IntArray


@kernel
def polygon_around(points: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Normals and offsets of half the facets, and all vertices (counter-clockwise), of the hull of symmetric points.

    Points (n, 2) must stay within ±2**28. No facets where they lie on a line.
    """
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
def fan_sums(vertices: IntArray) -> tuple[int, int, int, int]:
    """Of the triangles (0, a, b) of neighbouring vertices (v, 2): sum w, and sum w·(aaᵀ + bbᵀ + ttᵀ) as xx, xy, yy.

    w = |det(a, b)|, t = a + b. Vertices within ±2**14 keep all sums within 64 bits.
    """
    weight, xx, xy, yy = 0, 0, 0, 0
    for i in range(vertices.shape[0]):
        ax, ay, bx, by = vertices[i - 1, 0], vertices[i - 1, 1], vertices[i, 0], vertices[i, 1]
        w = abs(ax * by - ay * bx)
        weight += w
        xx += w * (ax * ax + bx * bx + (ax + bx) * (ax + bx))
        xy += w * (ax * ay + bx * by + (ax + bx) * (ay + by))
        yy += w * (ay * ay + by * by + (ay + by) * (ay + by))
    return weight, xx, xy, yy
